import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { timerAttributes } from "#shared/fleet/rows/due.ts";
import { keys, type Owner, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { median, medianRatio, rounded } from "#test/bench/figures.ts";
import { fleetDocuments, twentyObjects } from "#test/bench/fleet-documents.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";

const defaultClusters = 100;
const defaultRounds = 3;
const readyAfterMs = 1000;
/** The stages, as shares of the fleet. */
const stages = [
  { name: "canary", share: 0.2 },
  { name: "early", share: 0.3 },
  { name: "rest", share: 0.5 },
] as const;
const share = 0.5;
/** AWS ticks once a minute. A rollout that needs more ticks would hide lost messages. */
const tickMs = 60_000;
const longestMs = 600_000;
const pollEveryMs = 250;

const owner: Owner = { namespace: "bench", kind: "SyncGroup", name: "app" };

interface Round extends Figures {
  /** The time from the commit until the last stage has passed. */
  readonly seconds: number;
  /** The time that the clusters alone need: for each wave, an apply and the time until it is ready. */
  readonly criticalSeconds: number;
  readonly stages: Readonly<Record<string, Times>>;
}

/** Medians over the clusters of a stage, in seconds. */
interface Times extends Figures {
  readonly waves: number;
  /** For the first stage from the commit, for others from the end of the stage before. */
  readonly untilAssigned: number;
  /** Measured at the API server, until the first request. */
  readonly untilBegun: number;
  readonly untilApplied: number;
  readonly untilReady: number;
  /** From the moment when the last cluster was ready. */
  readonly untilPassed: number;
}

/**
 * Measures a group with three stages, half of the fleet at once: how much longer a rollout takes than its clusters need,
 * and how much longer it takes if all messages, leases and due times are lost in the middle.
 */
export async function rollout({
  clusters: [size = defaultClusters] = [],
  rounds = defaultRounds,
  say,
}: BenchOptions): Promise<BenchResult> {
  const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const stack = await startStack({ repositories: scratch, tickEveryMs: tickMs, readyAfterMs });
  try {
    const table = new DynamoTable(stack.machine.aws.dynamo, stack.machine.environment.table);
    const fleet = { stack, table, clusters: stageOfEach(size) };
    await registerClusters(
      fleet.clusters.map(({ name, ring }) => ({ connection: stack.clusters.addCluster(name), labels: { ring } })),
      stack.machine,
      stack.session,
    );
    await stack.git.createRepository("app", { "deploy/objects.yaml": twentyObjects("0") });
    await stack.session.apply(
      fleetDocuments(stack, {
        maxConcurrent: `${share * 100}%`,
        stages: stages.map(({ name }, index) =>
          index === stages.length - 1 ? { name } : { name, clusters: { selector: { matchLabels: { ring: name } } } },
        ),
      }),
    );
    // The first rollout opens connections and discovers APIs, so only later ones are measured.
    await untilThrough(fleet, 1);
    const [quiet, disturbed]: [Round[], Round[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      quiet.push(await rollOut(fleet, 2 * round + 2));
      say(`round ${round + 1}, quiet: ${JSON.stringify(quiet.at(-1))}`);
      disturbed.push(await rollOut(fleet, 2 * round + 3, () => eraseInTheMiddle(fleet)));
      say(`round ${round + 1}, disturbed: ${JSON.stringify(disturbed.at(-1))}`);
    }
    const seconds = (of: readonly Round[]) => of.map((one) => one.seconds);
    const middle = (of: readonly Round[]) => of.toSorted((a, b) => a.seconds - b.seconds)[(of.length - 1) >> 1];
    const critical = quiet.map(({ criticalSeconds }) => criticalSeconds);
    return {
      target: `embedded ${await embeddedVersion(stack.clusters.connections())}`,
      ratios: {
        overCriticalPath: medianRatio(seconds(quiet), critical),
        recoveryVsQuiet: medianRatio(seconds(disturbed), seconds(quiet)),
      },
      figures: { quiet: middle(quiet) ?? {}, disturbed: middle(disturbed) ?? {} },
      failures: [],
    };
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

interface BenchFleet {
  readonly stack: Stack;
  readonly table: Table;
  readonly clusters: readonly { readonly name: string; readonly ring: string }[];
}

function stageOfEach(size: number): BenchFleet["clusters"] {
  const [canaries, early] = stages.map(({ share: part }) => Math.max(1, Math.round(size * part)));
  return Array.from({ length: size }, (_, index) => ({
    name: `c-${String(index).padStart(3, "0")}`,
    ring: index < (canaries ?? 0) ? "canary" : index < (canaries ?? 0) + (early ?? 0) ? "early" : "rest",
  }));
}

/** @param meanwhile - runs after the push, before the rollout is awaited. */
async function rollOut(fleet: BenchFleet, rollout: number, meanwhile?: () => Promise<void>): Promise<Round> {
  fleet.stack.clusters.clearRequests();
  const started = Date.now();
  const files = { "deploy/objects.yaml": twentyObjects(String(rollout)) };
  await fleet.stack.git.commitFiles("app", files, { message: `rollout ${rollout}` });
  await meanwhile?.();
  await untilThrough(fleet, rollout);
  return timesOf(fleet, started);
}

async function untilThrough({ stack, table }: BenchFleet, rollout: number): Promise<void> {
  const deadline = performance.now() + longestMs;
  while (performance.now() < deadline) {
    const rolloutState = await table.get(keys.rolloutState(owner));
    if (rolloutState?.stages.every(({ current }) => current === rollout)) return;
    await sleep(pollEveryMs);
  }
  const { status } = await stack.session.call<{ readonly status?: unknown }>("GET", groupPath);
  throw new Error(`rollout ${rollout} did not pass all stages in ${longestMs / 1000} s: ${JSON.stringify(status)}`);
}

const groupPath = "/v1/namespaces/bench/syncgroups/app";

/** Erases all messages, leases and due times when the second stage has begun. Then requests one `reconcile`. */
async function eraseInTheMiddle({ stack, table, clusters }: BenchFleet): Promise<void> {
  const deadline = performance.now() + longestMs;
  for (;;) {
    const rolloutState = await table.get(keys.rolloutState(owner));
    const early = rolloutState?.stages[1];
    if (early?.updatingTo !== undefined && early.changing > 0) break;
    if (performance.now() > deadline) throw new Error(`the second stage did not begin in ${longestMs / 1000} s`);
    await sleep(pollEveryMs);
  }
  await stack.machine.purgeQueues();
  const remove = ["owner", "leaseUntil", "begun", "failed", ...timerAttributes];
  for (const { name } of clusters) {
    await table.update({ update: keys.lease(name), remove });
    await table.update({ update: syncKey(name), remove: timerAttributes, add: { version: 1 } });
  }
  for (const key of [
    keys.rolloutState(owner),
    keys.object("bench", "SyncGroup", "app"),
    keys.object("bench", "Source", "app"),
  ])
    await table.update({ update: key, remove: timerAttributes, add: { version: 1 } });
  await stack.machine.purgeQueues();
  await stack.session.call("POST", `${groupPath}/reconcile`);
}

function syncKey(cluster: string) {
  return keys.sync(cluster, "bench", syncName(owner, "app"));
}

async function timesOf({ stack, table, clusters }: BenchFleet, started: number): Promise<Round> {
  const rolloutState = await table.get(keys.rolloutState(owner));
  const rows = await table.getMany(clusters.map(({ name }) => syncKey(name)));
  const syncs = new Map(rows.map((row) => [row.cluster, row]));
  const requests = Map.groupBy(stack.clusters.requests(), ({ cluster }) => cluster);
  const times: Record<string, Times> = {};
  let [before, criticalSeconds] = [started, 0];
  const bound = Math.max(1, Math.floor(clusters.length * share));
  for (const [index, { name, members, passed }] of (rolloutState?.stages ?? []).entries()) {
    if (passed === undefined) throw new Error(`stage ${name} has passed nothing`);
    const stageRun = await table.get(keys.stageRun(owner, passed));
    const targets = await Array.fromAsync(
      allItems((page) => table.query({ ...ranges.targets(owner, passed), ...page })),
    );
    const seen = targets.flatMap(({ cluster, assignedAt = "" }) => {
      const begun = requests.get(cluster)?.find(({ at }) => at >= Date.parse(assignedAt))?.at;
      return momentsOf(syncs.get(cluster), { assigned: Date.parse(assignedAt), begun }) ?? [];
    });
    const between = (from: (of: Moments) => number, to: (of: Moments) => number) =>
      rounded(median(seen.map((of) => to(of) - from(of))) / 1000);
    const ended = Date.parse(stageRun?.endedAt ?? "");
    // One slot is reserved for the first stage, so that a fix finds a free one. The last stage therefore needs two waves.
    const waves = Math.ceil(members / Math.max(1, index === 0 ? bound : bound - 1));
    times[name] = {
      waves,
      untilAssigned: rounded((Math.min(...seen.map(({ assigned }) => assigned)) - before) / 1000),
      untilBegun: between(
        (of) => of.assigned,
        (of) => of.begun,
      ),
      untilApplied: between(
        (of) => of.begun,
        (of) => of.applied,
      ),
      untilReady: between(
        (of) => of.applied,
        (of) => of.ready,
      ),
      untilPassed: rounded((ended - Math.max(...seen.map(({ ready }) => ready))) / 1000),
    };
    criticalSeconds += waves * (times[name].untilApplied + times[name].untilReady);
    before = ended;
  }
  return { seconds: rounded((before - started) / 1000), criticalSeconds: rounded(criticalSeconds), stages: times };
}

interface Moments {
  readonly assigned: number;
  readonly begun: number;
  readonly applied: number;
  readonly ready: number;
}

function momentsOf(
  sync: SyncRow | undefined,
  { assigned, begun }: { readonly assigned: number; readonly begun: number | undefined },
): Moments | undefined {
  const { applied, readyAt } = sync?.observed ?? {};
  if (begun === undefined || applied === undefined || readyAt === undefined) return undefined;
  return { assigned, begun, applied: Date.parse(applied.at), ready: Date.parse(readyAt) };
}
