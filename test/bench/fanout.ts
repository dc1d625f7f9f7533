import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import { AwsLedger, type LedgerLine } from "#test/bench/aws-ledger.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { startFleetProcess } from "#test/bench/children.ts";
import { rounded } from "#test/bench/figures.ts";
import { fleetDocuments, twentyObjects } from "#test/bench/fleet-documents.ts";
import { watchProcess } from "#test/bench/process-use.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";
import { type BenchZones, onlyHome, threeZones } from "#test/bench/zones.ts";

const defaultSizes = [10, 100, 300] as const;
/** AWS ticks once a minute. A rollout that needs more ticks would hide lost messages. */
const tickMs = 60_000;
/** The time limit of a rollout. A large fleet gets more, because the machine may be busy. */
const longestMs = (clusters: number) => Math.max(600_000, clusters * 2_000);
/**
 * The account of a fleet of a thousand clusters, for small fleets, too. More concurrency would only wait for the
 * machine's two cores.
 */
const account = { clusters: "1000", concurrency: "1000" } as const;
const pollEveryMs = 500;

interface Fanout extends Figures {
  readonly clusters: number;
  readonly seconds: number;
  readonly targetsPerSecond: number;
  /** The processor time of the process with the functions and all emulators except DynamoDB's. */
  readonly processorSecondsPerTarget: number;
  /** The part of this time in which garbage collection stopped the process. */
  readonly garbageSecondsPerTarget: number;
  /** The same figure of the process with the clusters. */
  readonly clustersProcessorSecondsPerTarget: number;
  readonly clustersGarbageSecondsPerTarget: number;
  /** Calls per target from the push to the end, by service, without empty receives. */
  readonly callsPerTarget: Readonly<Record<"dynamodb" | "sqs" | "s3", number>>;
  readonly writeUnitsPerTarget: number;
  readonly readUnitsPerTarget: number;
  /** Calls per target, by operation. */
  readonly operations: Readonly<Record<string, number>>;
}

interface Measured {
  readonly version: string;
  readonly figures: Fanout;
  /** Calls and write units per target, by function, operation and resource. */
  readonly ledger: Readonly<Record<string, LedgerLine>>;
}

/**
 * One Sync of 20 objects, two of them Deployments, to 10, 100 and 300 clusters at once: what a target costs in calls,
 * and that it costs the same in a large fleet as in a small one, and in three zones as in one.
 */
export async function fanout({ clusters: sizes = defaultSizes, say }: BenchOptions): Promise<BenchResult> {
  const measured: Measured[] = [];
  for (const clusters of sizes) {
    const of = await measure(clusters, onlyHome);
    say(`${clusters} clusters: ${JSON.stringify(of.figures)}`);
    measured.push(of);
  }
  const inZones = await measure(sizes.at(-1) ?? 1, threeZones);
  say(`${inZones.figures.clusters} clusters in three zones: ${JSON.stringify(inZones.figures)}`);
  const figures = measured.map((of) => of.figures);
  const largest = figures.at(-1);
  const ratios = figures
    .filter((of) => of !== largest)
    .flatMap((of) => {
      const sizes = `${largest?.clusters}vs${of.clusters}`;
      return [
        [`callsPerTarget${sizes}`, rounded(total(largest) / total(of))],
        [`targetsPerSecond${sizes}`, rounded((largest?.targetsPerSecond ?? 0) / of.targetsPerSecond)],
        [
          `processorPerTarget${sizes}`,
          rounded((largest?.processorSecondsPerTarget ?? 0) / of.processorSecondsPerTarget),
        ],
      ] as const;
    });
  return {
    target: `embedded ${measured.at(-1)?.version}`,
    ratios: { ...Object.fromEntries(ratios), ...zoneRatios(inZones.figures, largest) },
    figures: Object.fromEntries([
      ...figures.map((of) => [String(of.clusters), of]),
      [`${inZones.figures.clusters} in three zones`, inZones.figures],
      [`ledger of ${inZones.figures.clusters} in three zones`, inZones.ledger],
      ...measured.map(({ ledger, figures: { clusters } }) => [`ledger of ${clusters}`, ledger]),
    ]),
    failures: [],
  };
}

/** A target in three zones by one in `home` alone. */
function zoneRatios(inZones: Fanout, atHome: Fanout | undefined): Readonly<Record<string, number>> {
  const ratio = (figure: "writeUnitsPerTarget" | "readUnitsPerTarget") =>
    rounded(inZones[figure] / (atHome?.[figure] ?? 0));
  return {
    callsPerTargetIn3Zones: rounded(total(inZones) / total(atHome)),
    writeUnitsPerTargetIn3Zones: ratio("writeUnitsPerTarget"),
    readUnitsPerTargetIn3Zones: ratio("readUnitsPerTarget"),
  };
}

function total(of: Fanout | undefined): number {
  return Object.values(of?.callsPerTarget ?? {}).reduce((sum, calls) => sum + calls, 0);
}

async function measure(clusters: number, { zones, zoneAt }: BenchZones): Promise<Measured> {
  const stops: (() => Promise<void>)[] = [];
  try {
    const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
    stops.unshift(() => rm(scratch, { recursive: true, force: true }));
    const stack = await startStack({
      repositories: scratch,
      tickEveryMs: tickMs,
      capacity: "measured",
      account,
      ...zones,
    });
    stops.unshift(() => stack.stop());
    // The clusters have a process of their own. Garbage of a thousand clusters slowed the functions in the same process.
    const fleet = await startFleetProcess(clusters);
    stops.unshift(() => fleet.stop());
    await registerClusters(
      fleet.address.map((connection, index) => ({ connection, zone: zoneAt(index) })),
      stack.machine,
      stack.session,
    );
    await stack.git.createRepository("app", { "deploy/objects.yaml": twentyObjects("1") });
    await rollOut(stack, { number: 1, clusters });
    // The first revision opens connections and discovers APIs, so the second one is measured, as most revisions are like it.
    const { proxy } = stack.machine;
    const ledger = new AwsLedger(stack.machine);
    proxy.resetCalls();
    const unitsBefore = proxy.capacity();
    await fleet.used();
    const use = watchProcess();
    const readsBefore = ownReads;
    const started = performance.now();
    await stack.git.commitFiles("app", { "deploy/objects.yaml": twentyObjects("2") }, { message: "second" });
    await rollOut(stack, { number: 2, clusters });
    const seconds = (performance.now() - started) / 1000;
    const ours = use.read();
    const theirs = await fleet.used();
    const calls = costOf(proxy.calls(), { ownReads: ownReads - readsBefore });
    const units = proxy.capacity();
    const perTarget = (service: string) =>
      rounded(sum(calls, (operation) => operation.startsWith(`${service}:`)) / clusters);
    const figures = {
      clusters,
      seconds: rounded(seconds),
      targetsPerSecond: rounded(clusters / seconds),
      processorSecondsPerTarget: rounded(ours.processorSeconds / clusters),
      garbageSecondsPerTarget: rounded(ours.garbageSeconds / clusters),
      clustersProcessorSecondsPerTarget: rounded(theirs.processorSeconds / clusters),
      clustersGarbageSecondsPerTarget: rounded(theirs.garbageSeconds / clusters),
      callsPerTarget: { dynamodb: perTarget("dynamodb"), sqs: perTarget("sqs"), s3: perTarget("s3") },
      writeUnitsPerTarget: rounded((units.writeUnits - unitsBefore.writeUnits) / clusters),
      readUnitsPerTarget: rounded((units.readUnits - unitsBefore.readUnits) / clusters),
      operations: Object.fromEntries(
        Object.entries(calls).map(([operation, count]) => [operation, rounded(count / clusters)]),
      ),
    };
    return { version: await embeddedVersion(fleet.address), figures, ledger: ledger.read(clusters) };
  } finally {
    for (const stop of stops) await stop();
  }
}

/** This benchmark's own reads of the group. Each is one BatchGetItem of the api function, and no cost of a target. */
let ownReads = 0;

/** Calls by operation, without empty receives and without the benchmark's own reads of the group. */
function costOf(
  calls: Readonly<Record<string, number>>,
  own: { readonly ownReads: number },
): Readonly<Record<string, number>> {
  const { "sqs:ReceiveMessage:empty": empty = 0, ...rest } = calls;
  return {
    ...rest,
    "sqs:ReceiveMessage": (rest["sqs:ReceiveMessage"] ?? 0) - empty,
    "dynamodb:BatchGetItem": (rest["dynamodb:BatchGetItem"] ?? 0) - own.ownReads,
  };
}

function sum(calls: Readonly<Record<string, number>>, desired: (operation: string) => boolean): number {
  let total = 0;
  for (const [operation, count] of Object.entries(calls)) if (desired(operation)) total += count;
  return total;
}

async function rollOut(
  stack: Stack,
  { number, clusters }: { readonly number: number; readonly clusters: number },
): Promise<void> {
  if (number === 1) await stack.session.apply(fleetDocuments(stack, { maxConcurrent: "100%" }));
  const deadline = performance.now() + longestMs(clusters);
  while (performance.now() < deadline) {
    const { status } = await stack.session.call<GroupAnswer>("GET", "/v1/namespaces/bench/syncgroups/app");
    if (status?.rollout === number && status.state === "Complete") return;
    if (status?.state === "Halted") throw new Error(`rollout ${number} halted`);
    await sleep(pollEveryMs);
    ownReads++;
  }
  throw new Error(`rollout ${number} did not end in ${longestMs(clusters) / 1000} s`);
}

interface GroupAnswer {
  readonly status?: { readonly rollout?: number; readonly state?: string };
}
