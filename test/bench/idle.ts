import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InvocationReport } from "#local/aws/lambda/event-source-loop.ts";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { registerEksClusters } from "#local/machine/register-eks-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { BenchOptions, BenchResult } from "#test/bench/bench.ts";
import { median, rounded } from "#test/bench/figures.ts";
import { billOf, type Spent, standingOf } from "#test/bench/idle-bill.ts";
import { roundRobin } from "#test/bench/round-robin.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";
import { threeZones } from "#test/bench/zones.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const defaultClusters = 20;
const defaultRounds = 3;
/** The rounds until Starling has recorded what controllers write after an apply. */
const warmRounds = 2;
const templates = ["app", "edge", "jobs", "metrics", "shared"] as const;
const objectsOfEach = 20;
const fleets = [100, 1_000, 10_000] as const;
/** More than an interval and its jitter. */
const roundMs = 660_000;
const longestMs = 900_000;
const pauseMs = 200;
const gib = 1024;
const memoryMiB: Readonly<Record<string, number>> = { apply: 1024, tick: 512 };

/**
 * The ways to access clusters: by a token in a secret, by IAM with workers in many sandboxes and a long distance, and by a
 * token from the workers of three zones.
 */
const ways = ["token", "eks", "zones"] as const;
type Way = (typeof ways)[number];
/** The number of the apply function's sandboxes. Any of them may run a check. */
const sandboxesOfEks = 20;
const latencyOfEks = { latency: { ms: 40, jitterMs: 20 } } as const;

interface Idle {
  readonly target: string;
  readonly check: Spent;
  readonly quiet: Spent;
}

/**
 * Measures the cost of a fleet in which nothing changes: clusters of five Syncs of 20 objects, in sync, checked every ten
 * minutes. Requests, units and times are measured for each round of checks. The bill follows by the formula of
 * docs/cost.md.
 */
export async function idle(options: BenchOptions): Promise<BenchResult> {
  const found = {
    token: await idleFleet("token", options),
    eks: await idleFleet("eks", options),
    zones: await idleFleet("zones", options),
  };
  const home = standingOf((await synthesizeTemplates()).resources);
  const inZones = standingOf((await synthesizeTemplates({ ...threeZones.zones })).resources);
  const standing = { token: home, eks: home, zones: inZones };
  const bills = ways.flatMap((way) => {
    const parts = { ...found[way], standing: standing[way] };
    return fleets.map((size) => [`USD a month, ${size} clusters x 5 Syncs, by ${way}`, billOf(size, parts)] as const);
  });
  const thousand = (way: Way) => billOf(1_000, { ...found[way], standing: standing[way] }).total;
  const inZonesVsToken = (figure: "readUnits" | "writeUnits" | "sqsRequests") =>
    rounded(found.zones.check[figure] / found.token.check[figure]);
  return {
    target: found.token.target,
    ratios: {
      usdPerMonth1000x5vs100: rounded(thousand("token") / 100),
      eksVsToken: rounded(thousand("eks") / thousand("token")),
      readUnitsIn3Zones: inZonesVsToken("readUnits"),
      writeUnitsIn3Zones: inZonesVsToken("writeUnits"),
      sqsRequestsIn3Zones: inZonesVsToken("sqsRequests"),
    },
    figures: {
      ...Object.fromEntries(ways.map((way) => [`a check of a cluster, by ${way}`, found[way].check])),
      "a tick": found.token.quiet,
      "what stands": home,
      "what stands with three zones": inZones,
      ...Object.fromEntries(bills),
    },
    failures: ways.flatMap((way) => failuresOf(way, found[way].check)),
  };
}

function failuresOf(way: Way, { applyInvocations, eksRequests }: Spent): readonly string[] {
  return [
    ...(applyInvocations === 1 ? [] : [`a cluster by ${way} had ${applyInvocations} invocations for one check`]),
    ...(eksRequests === 0
      ? []
      : [`a check of a cluster by ${way} asks EKS ${eksRequests} times; its row has the address`]),
  ];
}

async function idleFleet(way: Way, options: BenchOptions): Promise<Idle> {
  const { clusters: [clusters = defaultClusters] = [], rounds = defaultRounds, say } = options;
  const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const reports: InvocationReport[] = [];
  let aheadMs = 0;
  const clock = { rate: 1, now: () => new Date(Date.now() + aheadMs), sleep: (ms: number) => sleep(ms) };
  const stack = await startStack({
    repositories: scratch,
    tickEveryMs: "manual",
    capacity: "measured",
    clock,
    onInvocation: (report) => reports.push(report),
    ...(way === "zones" ? threeZones.zones : {}),
    ...(way === "eks" ? { sandboxes: roundRobin("apply", sandboxesOfEks) } : {}),
  });
  try {
    await bringInSync(stack, { clusters, way });
    const checks: Spent[] = [];
    const quiet = await spent(stack, reports, () => timeOf(() => stack.machine.tick()));
    for (let round = 1; round <= warmRounds + rounds; round++) {
      aheadMs += roundMs;
      const cost = await spent(stack, reports, () => checkAll(stack, { clusters, reports }));
      const others = reports.filter((report) => !isCheckOperation(report)).map(({ functionName }) => functionName);
      say(
        `${way} ${round}: ${JSON.stringify(cost)} ${others.join(" ")} ${JSON.stringify(stack.machine.proxy.calls())}`,
      );
      if (round > warmRounds) checks.push(perCluster(cost, { quiet, clusters }));
    }
    const target = `embedded ${await embeddedVersion(stack.clusters.connections())}`;
    return { target, check: medianOf(checks), quiet };
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function bringInSync(
  stack: Stack,
  { clusters, way }: { readonly clusters: number; readonly way: Way },
): Promise<void> {
  const added = Array.from({ length: clusters }, (_, index) => ({
    connection: stack.clusters.addCluster(`c-${index}`),
    zone: way === "zones" ? threeZones.zoneAt(index) : undefined,
  }));
  await (way === "eks" ? registerEksClusters : registerClusters)(added, stack.machine, stack.session);
  if (way === "eks") {
    for (const { connection } of added) await stack.clusters.setFaults(connection.name, latencyOfEks);
  }
  await stack.git.createRepository(
    "app",
    Object.fromEntries(templates.map((name) => [`${name}/objects.yaml`, objectsIn(name)])),
  );
  await stack.session.apply(documents(stack));
  const deadline = performance.now() + longestMs;
  while (performance.now() < deadline) {
    await stack.machine.tick();
    const { status } = await stack.session.call<GroupAnswer>("GET", "/v1/namespaces/bench/syncgroups/app");
    if (status?.state === "Complete") return settled(stack);
    await sleep(pauseMs * 5);
  }
  throw new Error(`the fleet was not in sync in ${longestMs / 1000} s`);
}

interface GroupAnswer {
  readonly status?: { readonly state?: string };
}

/** Runs one tick and waits for the checks that follow. @returns the milliseconds of the tick. */
async function checkAll(
  stack: Stack,
  { clusters, reports }: { readonly clusters: number; readonly reports: readonly InvocationReport[] },
): Promise<number> {
  const before = reports.filter(isCheckOperation).length;
  const tickMs = await timeOf(() => stack.machine.tick());
  const deadline = performance.now() + longestMs;
  while (reports.filter(isCheckOperation).length < before + clusters) {
    if (performance.now() > deadline) throw new Error("not every cluster was checked");
    await sleep(pauseMs);
  }
  await settled(stack);
  return tickMs;
}

function isCheckOperation({ functionName }: InvocationReport): boolean {
  return /apply/i.test(functionName);
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Waits until no function has worked for a while. */
async function settled({ machine }: Stack): Promise<void> {
  const running = () => [...machine.sources.values()].flat().reduce((sum, source) => sum + source.running(), 0);
  for (let still = 0; still < 10; still = running() === 0 ? still + 1 : 0) await sleep(pauseMs);
}

/** @param work - returns the milliseconds of the tick. */
async function spent(stack: Stack, reports: InvocationReport[], work: () => Promise<number>): Promise<Spent> {
  const { proxy, eks } = stack.machine;
  proxy.resetCalls();
  const askedBefore = eks.calls().length;
  stack.clusters.clearRequests();
  reports.length = 0;
  const tickMs = await work();
  const { "sqs:ReceiveMessage:empty": empty = 0, ...calls } = proxy.calls();
  const sum = (prefix: string) =>
    Object.entries(calls).reduce((total, [name, count]) => total + (name.startsWith(prefix) ? count : 0), 0);
  const asked = eks.calls().slice(askedBefore);
  const applied = reports.filter(isCheckOperation);
  const applyMs = applied.reduce((total, { billedMs = 0 }) => total + billedMs, 0);
  const gbSeconds = (name: string, ms: number) => rounded((ms / 1000) * ((memoryMiB[name] ?? gib) / gib));
  return {
    ...proxy.capacity(),
    sqsRequests: sum("sqs:") - empty,
    s3Reads: sum("s3:Get") + sum("s3:Head"),
    s3Writes: sum("s3:Put"),
    secretReads: sum("secretsmanager:"),
    eksRequests: asked.filter(({ service }) => service === "eks").length,
    stsRequests: asked.filter(({ operation }) => operation === "AssumeRole").length,
    kubeRequests: stack.clusters.requests().length,
    applyInvocations: applied.length,
    otherInvocations: reports.length - applied.length,
    applyGbSeconds: gbSeconds("apply", applyMs),
    tickGbSeconds: gbSeconds("tick", tickMs),
  };
}

function perCluster(round: Spent, { quiet, clusters }: { readonly quiet: Spent; readonly clusters: number }): Spent {
  const entries = Object.entries(round).map(([name, value]) => {
    const fixed = quiet[name];
    return [name, rounded((Number(value) - Number(fixed)) / clusters)] as const;
  });
  return Object.fromEntries(entries) as Spent;
}

function medianOf(checks: readonly Spent[]): Spent {
  const [first = {} as Spent] = checks;
  return Object.fromEntries(
    Object.keys(first).map((name) => [name, median(checks.map((check) => Number(check[name])))]),
  ) as Spent;
}

function documents(stack: Pick<Stack, "git" | "gitSpec">): readonly unknown[] {
  const metadata = { name: "app", namespace: "bench" };
  const git = { ...stack.gitSpec(stack.git.url("app")), ref: { branch: "main" } };
  return [
    { apiVersion: ourApiVersion, kind: "Source", metadata, spec: { git, interval: "24h" } },
    {
      apiVersion: ourApiVersion,
      kind: "SyncGroup",
      metadata,
      spec: {
        clusters: { all: true },
        templates: templates.map((name) => ({ name, source: "app", path: name })),
        rollout: { maxConcurrent: "100%" },
      },
    },
  ];
}

/** Objects in a namespace of their own. */
function objectsIn(namespace: string): string {
  const configs = Array.from({ length: objectsOfEach - 4 }, (_, index) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `settings-${index}`, namespace },
    data: { value: String(index) },
  }));
  const workloads = ["web", "worker"].map((name) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name, image: `r.example/${name}:1` }] } },
    },
  }));
  const objects = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "web", namespace } },
    ...configs,
    ...workloads,
  ];
  return objects.map((object) => JSON.stringify(object)).join("\n---\n");
}
