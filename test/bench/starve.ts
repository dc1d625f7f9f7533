import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterFaults } from "@starling/embedded-apiserver";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { median, medianRatio, rounded } from "#test/bench/figures.ts";
import { fleetDocuments, twentyObjects } from "#test/bench/fleet-documents.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";

const defaultClusters = 100;
const defaultRounds = 3;
/** The share of the fleet that each way has. */
const badShare = 0.02;
/** AWS ticks once a minute. A rollout that needs more ticks would hide lost messages. */
const tickMs = 60_000;
const longestMs = 900_000;
const pollEveryMs = 100;
/** A new account, in which workers work on two clusters at once. */
const account = { clusters: "100", concurrency: "10" } as const;

/** The faults of some clusters. Each way has its own clusters, so that Starling has recorded none of its faults before. */
const ways = {
  slow: { latency: { ms: 27_000 } },
  silent: { network: "hangs" },
  failing: { errors: { status: 503 } },
  refusing: { throttle: { retryAfterSeconds: 30 } },
} as const satisfies Readonly<Record<string, ClusterFaults>>;

/** Seconds from the push until all honest clusters have the change. */
interface Way extends Figures {
  /** While every cluster is in order. */
  readonly honest: number;
  /** The first change after the fault began. */
  readonly first: number;
  /** The changes after it. */
  readonly later: number;
}

/**
 * Measures how much longer honest clusters wait for a change if 2 % of the fleet are slow, silent, failing or refusing,
 * compared with the same change to the same fleet in order.
 */
export async function starve({
  clusters: [size = defaultClusters] = [],
  rounds = defaultRounds,
  say,
}: BenchOptions): Promise<BenchResult> {
  const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const stack = await startStack({ repositories: scratch, tickEveryMs: tickMs, account });
  try {
    const bad = Object.keys(ways).flatMap((way) =>
      Array.from({ length: Math.max(1, Math.round(size * badShare)) }, (_, index) => ({
        name: `${way}-${index}`,
        part: way,
      })),
    );
    const fine = Array.from({ length: size }, (_, index) => ({ name: `fine-${index}`, part: "fine" }));
    const registered = [...bad, ...fine].map(async ({ name, part }) => {
      stack.clusters.addCluster(name);
      // Each cluster has a port of its own, because the fault `silent` is one of its network.
      return { connection: await stack.clusters.openPort(name), labels: { part } };
    });
    await registerClusters(await Promise.all(registered), stack.machine, stack.session);
    await stack.git.createRepository("app", { "deploy/objects.yaml": twentyObjects("0") });
    await stack.session.apply(documents(stack));
    const fleet = { stack, honest: fine.map(({ name }) => name), changes: { made: 0 } };
    // The first change opens connections and discovers APIs.
    await untilChanged(stack, { revision: "0", among: [...bad, ...fine].map(({ name }) => name) });
    const figures: Record<string, Way> = {};
    const ratios: Record<string, number> = {};
    for (const [way, faults] of Object.entries(ways)) {
      const among = bad.filter(({ part }) => part === way).map(({ name }) => name);
      const honest = await secondsOfChanges(fleet, rounds);
      for (const name of among) await stack.clusters.setFaults(name, faults);
      const [first = 0] = await secondsOfChanges(fleet, 1);
      const later = await secondsOfChanges(fleet, rounds);
      for (const name of among) await stack.clusters.setFaults(name, {});
      say(`${way}, ${among.length} beside ${size}: ${JSON.stringify({ honest, first, later })}`);
      figures[way] = { honest: rounded(median(honest)), first, later: rounded(median(later)) };
      ratios[way] = medianRatio(later, honest);
      ratios[`${way}First`] = rounded(first / median(honest));
    }
    const target = `embedded ${await embeddedVersion(stack.clusters.connections())}`;
    return { target, ratios, figures, failures: [] };
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Each part has its own group, because a rollout that waits for a bad cluster delays the next rollout of its group. */
function documents(stack: Stack): readonly unknown[] {
  const [source, group] = fleetDocuments(stack, { maxConcurrent: "100%" }) as [object, { readonly spec: object }];
  const parts = ["fine", ...Object.keys(ways)].map((part) => ({
    ...group,
    metadata: { name: part, namespace: "bench" },
    spec: { ...group.spec, clusters: { selector: { matchLabels: { part } } } },
  }));
  return [source, ...parts];
}

interface Fleet {
  readonly stack: Stack;
  /** The names of clusters that are in order all the time. */
  readonly honest: readonly string[];
  readonly changes: { made: number };
}

async function secondsOfChanges({ stack, honest, changes }: Fleet, rounds: number): Promise<readonly number[]> {
  const seconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    changes.made += 1;
    const revision = String(changes.made);
    const started = performance.now();
    const files = { "deploy/objects.yaml": twentyObjects(revision) };
    await stack.git.commitFiles("app", files, { message: `change ${revision}` });
    await untilChanged(stack, { revision, among: honest });
    seconds.push(rounded((performance.now() - started) / 1000));
  }
  return seconds;
}

/** Waits until the clusters themselves hold the change, regardless of the rows. */
async function untilChanged(
  stack: Stack,
  { revision, among }: { readonly revision: string; readonly among: readonly string[] },
): Promise<void> {
  const deadline = performance.now() + longestMs;
  let waiting = among;
  while (waiting.length > 0) {
    waiting = waiting.filter((name) => !holds(stack, name, revision));
    if (performance.now() > deadline) {
      const late = `${waiting.length} clusters, ${waiting[0]} among them`;
      throw new Error(`change ${revision} was not in ${late} after ${longestMs / 1000} s`);
    }
    await sleep(pollEveryMs);
  }
}

/** Compares the image of the Deployments, which are applied last. */
function holds({ clusters }: Stack, name: string, revision: string): boolean {
  const image = JSON.stringify(`registry.example/worker:${revision}`);
  return clusters
    .objects(name)
    .some((object) => object.kind === "Deployment" && JSON.stringify(object.spec).includes(image));
}
