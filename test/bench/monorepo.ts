/** One repository with many folders: what a commit costs for each of them that it changes, and for each that it does not. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { median, medianRatio, rounded } from "#test/bench/figures.ts";
import { inTurns } from "#test/bench/in-turns.ts";
import { PushPace } from "#test/bench/push-pace.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";
import { Traffic, type TrafficCounts } from "#test/bench/traffic.ts";

/** Sources of one repository, each with a folder and a group. */
const defaultSources = 300;
const defaultRounds = 3;
const defaultClusters = 3;
/** The most templates of one group. */
const templates = 20;
const objectsInFolder = 5;
/** AWS ticks once a minute. More ticks would hide lost messages. */
const tickMs = 60_000;
const longestMs = 900_000;
const pollEveryMs = 20;

interface Change extends TrafficCounts {
  /** From the commit until every cluster has it. */
  readonly seconds: number;
}

/**
 * Measures a commit in one folder for a group with 20 templates, beside a group with one; and a push that changes the
 * folders of 300 Sources, beside one that changes the folder of one.
 */
export async function monorepo({
  clusters: [clusters = defaultClusters] = [],
  objects: sources = defaultSources,
  rounds = defaultRounds,
  say,
}: BenchOptions): Promise<BenchResult> {
  const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const traffic = new Traffic();
  const stack = await startStack({
    repositories: scratch,
    tickEveryMs: tickMs,
    onGitRequest: traffic.onGitRequest,
  });
  try {
    traffic.watch(stack);
    const added = Array.from({ length: clusters }, (_, index) => ({
      connection: stack.clusters.addCluster(`c-${index}`),
    }));
    await registerClusters(added, stack.machine, stack.session);
    const world = {
      stack,
      traffic,
      clusters: added.map(({ connection }) => connection.name),
      pace: new PushPace(),
      say,
    };
    const ofGroups = await compareGroups(world, rounds);
    const ofPushes = await comparePushes(world, { sources, rounds });
    return {
      target: `embedded ${await embeddedVersion(stack.clusters.connections())}`,
      ratios: { ...ofGroups.ratios, ...ofPushes.ratios },
      figures: { ...ofGroups.figures, ...ofPushes.figures },
      failures: [...ofGroups.failures, ...ofPushes.failures],
    };
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

interface World {
  readonly stack: Stack;
  readonly traffic: Traffic;
  readonly clusters: readonly string[];
  readonly pace: PushPace;
  readonly say: BenchOptions["say"];
}

type Compared = Pick<BenchResult, "ratios" | "figures" | "failures">;

/** Groups of all clusters whose repositories have as many folders: one uses all of them, one the first. */
async function compareGroups(world: World, rounds: number): Promise<Compared> {
  const { stack, say } = world;
  const used = { many: templates, one: 1 } as const;
  const versions = { many: 0, one: 0 };
  for (const [name, count] of Object.entries(used)) {
    await stack.git.createRepository(name, filesOf(name, templates, 0));
    await stack.session.apply([
      sourceOf(stack, name, { repository: name }),
      groupOf(name, { source: name, paths: Array.from({ length: count }, (_, index) => `f${index}`) }),
    ]);
    const folders = count * world.clusters.length;
    await untilSeen(world, { of: (folder) => folder.startsWith(`${name}-`), folders, version: 0 });
  }
  const change = (name: keyof typeof used) => () => {
    versions[name] += 1;
    const version = versions[name];
    const files = { "f0/a.yaml": objectsOf(`${name}-f0`, version) };
    return changed(world, {
      commit: () => stack.git.commitFiles(name, files, { message: `version ${version}` }),
      seen: { of: (folder) => folder === `${name}-f0`, folders: world.clusters.length, version },
    });
  };
  const { ours, theirs } = await inTurns(rounds, change("many"), change("one"));
  const figures = {
    [`a commit in 1 of ${templates} templates`]: middleOf(ours),
    "a commit in a group of one template": middleOf(theirs),
  };
  say(JSON.stringify(figures));
  const renders = Math.max(...ours.map(({ aws }) => aws.lambda));
  return {
    ratios: {
      awsFor20TemplatesVs1: ratioOf(ours, theirs, awsOf),
      clusterRequestsFor20TemplatesVs1: ratioOf(ours, theirs, ({ cluster }) => cluster),
      secondsFor20TemplatesVs1: ratioOf(ours, theirs, ({ seconds }) => seconds),
    },
    figures,
    failures: renders > 1 ? [`a commit in 1 of ${templates} templates was rendered ${renders} times`] : [],
  };
}

/** Sources of one repository, each with a folder, and a group on one cluster: a push into all folders, beside a push into one. */
async function comparePushes(
  world: World,
  { sources, rounds }: { readonly sources: number; readonly rounds: number },
): Promise<Compared> {
  const { stack, say } = world;
  const repository = "folders";
  const names = Array.from({ length: sources }, (_, index) => `f${index}`);
  await stack.git.createRepository(repository, filesOf(repository, sources, 0));
  await stack.session.apply(
    names.flatMap((name, index) => [
      sourceOf(stack, name, { repository, paths: [name] }),
      groupOf(name, {
        source: name,
        paths: [name],
        clusters: { names: world.clusters.slice(index % world.clusters.length).slice(0, 1) },
      }),
    ]),
  );
  await untilSeen(world, { of: (folder) => folder.startsWith(`${repository}-`), folders: sources, version: 0 });
  let version = 0;
  const push = (folders: readonly string[]) => async () => {
    version += 1;
    const own = new Set(folders.map((folder) => `${repository}-${folder}`));
    const files = folders.map((folder) => [`${folder}/a.yaml`, objectsOf(`${repository}-${folder}`, version)] as const);
    return changed(world, {
      commit: () => stack.git.commitFiles(repository, Object.fromEntries(files), { message: `version ${version}` }),
      seen: { of: (folder) => own.has(folder), folders: folders.length, version },
    });
  };
  const { ours, theirs } = await inTurns(rounds, push(names), push(names.slice(0, 1)));
  const figures = {
    [`a push into the folders of ${sources} Sources`]: middleOf(ours),
    "a push into the folder of one of them": middleOf(theirs),
  };
  say(JSON.stringify(figures));
  const each = (of: (change: Change) => number) => (change: Change) => of(change) / sources;
  return {
    ratios: {
      [`gitRequestsFor${sources}SourcesVs1`]: ratioOf(ours, theirs, ({ git }) => git),
      [`awsPerSourceOf${sources}Vs1`]: ratioOf(ours.map(each(awsOf)), theirs.map(awsOf), Number),
      [`messagesPerSourceOf${sources}Vs1`]: ratioOf(ours.map(each(messagesOf)), theirs.map(messagesOf), Number),
      [`clusterRequestsPerSourceOf${sources}Vs1`]: ratioOf(
        ours.map(each(({ cluster }) => cluster)),
        theirs.map(({ cluster }) => cluster),
        Number,
      ),
      [`secondsPerSourceOf${sources}Vs1`]: ratioOf(
        ours.map(each(({ seconds }) => seconds)),
        theirs.map(({ seconds }) => seconds),
        Number,
      ),
    },
    figures,
    failures: [],
  };
}

function awsOf({ aws }: TrafficCounts): number {
  return aws.dynamodb + aws.sqs + aws.s3;
}

function messagesOf({ messages }: TrafficCounts): number {
  return Object.values(messages).reduce((sum, count) => sum + count, 0);
}

function ratioOf<Of>(ours: readonly Of[], theirs: readonly Of[], of: (one: Of) => number): number {
  return medianRatio(ours.map(of), theirs.map(of));
}

/** The medians of all figures. */
function middleOf(changes: readonly Change[]): Figures {
  const middle = (of: (change: Change) => number) => rounded(median(changes.map(of)));
  const queues = new Set(changes.flatMap(({ messages }) => Object.keys(messages)));
  return {
    seconds: middle(({ seconds }) => seconds),
    renders: middle(({ aws }) => aws.lambda),
    dynamodb: middle(({ aws }) => aws.dynamodb),
    sqs: middle(({ aws }) => aws.sqs),
    s3: middle(({ aws }) => aws.s3),
    clusterRequests: middle(({ cluster }) => cluster),
    gitRequests: middle(({ git }) => git),
    messages: Object.fromEntries([...queues].map((queue) => [queue, middle(({ messages }) => messages[queue] ?? 0)])),
  };
}

interface Seen {
  readonly of: (folder: string) => boolean;
  /** Number of the folders, once for each cluster that has them. */
  readonly folders: number;
  readonly version: number;
}

/** Commits, waits for the clusters, and then until nothing happens any more. */
async function changed(
  world: World,
  { commit, seen }: { readonly commit: () => Promise<unknown>; readonly seen: Seen },
): Promise<Change> {
  const { traffic, pace } = world;
  await pace.next();
  traffic.reset();
  const started = performance.now();
  await commit();
  pace.pushed();
  await untilSeen(world, seen);
  return { seconds: rounded((traffic.lastClusterRequestAt() - started) / 1000), ...traffic.counts() };
}

async function untilSeen({ stack, traffic, clusters }: World, { of, folders, version }: Seen): Promise<void> {
  const deadline = performance.now() + longestMs;
  for (;;) {
    const seen = clusters.flatMap((name) =>
      stack.clusters.objects(name).filter(({ kind, metadata, data }) => {
        const isOwn = kind === "ConfigMap" && of(folderOf(metadata));
        return isOwn && (data as Data).version === String(version);
      }),
    );
    const expected = folders * objectsInFolder;
    if (seen.length === expected && traffic.isQuiet()) return;
    if (performance.now() > deadline)
      throw new Error(`${seen.length} of ${expected} objects have version ${version} after ${longestMs / 1000} s`);
    await sleep(pollEveryMs);
  }
}

interface Data {
  readonly version?: string;
}

/** `many-f3` of the object `many-f3.0`. */
function folderOf(metadata: unknown): string {
  return String((metadata as { readonly name?: string } | undefined)?.name).split(".", 1)[0] ?? "";
}

function filesOf(repository: string, folders: number, version: number): Record<string, string> {
  const names = Array.from({ length: folders }, (_, index) => `f${index}`);
  return Object.fromEntries(names.map((name) => [`${name}/a.yaml`, objectsOf(`${repository}-${name}`, version)]));
}

function objectsOf(name: string, version: number): string {
  return Array.from({ length: objectsInFolder }, (_, index) =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `${name}.${index}`, namespace: "default" },
      data: { version: String(version) },
    }),
  ).join("\n---\n");
}

function sourceOf(
  { git, gitSpec }: Stack,
  name: string,
  { repository, ...more }: { readonly repository: string; readonly paths?: readonly string[] },
): unknown {
  const spec = { git: { ...gitSpec(git.url(repository)), ref: { branch: "main" } }, interval: "1h", ...more };
  return { apiVersion: ourApiVersion, kind: "Source", metadata: { name, namespace: "bench" }, spec };
}

function groupOf(
  name: string,
  {
    source,
    paths,
    clusters = { all: true },
  }: { readonly source: string; readonly paths: readonly string[]; readonly clusters?: unknown },
): unknown {
  const templates = paths.map((path) => ({ name: path, source, path, apply: { interval: "1h" } }));
  const spec = { clusters, templates, rollout: { maxConcurrent: "100%" } };
  return { apiVersion: ourApiVersion, kind: "SyncGroup", metadata: { name, namespace: "bench" }, spec };
}
