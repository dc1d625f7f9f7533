import { createRandom, type Random } from "#local/base/random.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { parseJson, stringifyJson } from "#shared/base/json.ts";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { listAt, type ManifestObject, objectIdOf, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import type { BenchOptions, BenchResult } from "#test/bench/bench.ts";
import { median, medianRatio, spread } from "#test/bench/figures.ts";
import { applyRequest, type Ground, onGround } from "#test/bench/ground.ts";
import { measured } from "#test/bench/measure.ts";
import { benchObjects, definition } from "#test/bench/objects.ts";
import { type Plant, plants } from "#test/bench/plants.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";

export const namespace = "bench-starling";
/** kubectl diff exits with 0 without differences and with 1 otherwise. */
export const diffCodes = [0, 1];

interface Sample {
  readonly ms: number;
  readonly cpuMs: number;
}

interface CheckSample extends Sample {
  readonly requests: number;
  /** The number of drifted objects in the Sync's row. */
  readonly found: number;
}

interface Round {
  readonly unchanged: CheckSample;
  /** A check that a person requested while nothing had changed. */
  readonly asked: CheckSample;
  /** A check after controllers wrote to every Deployment, which is not drift. */
  readonly statusWritten: CheckSample;
  readonly drifted: CheckSample;
  readonly kubectl: Sample;
  readonly planted: ReadonlyMap<string, string>;
  readonly failures: readonly string[];
}

/**
 * A set in sync, of which some objects drift, each in one of the ways of `plants`: the apply function has to find those
 * and no others, and none when there are none. Compared with `kubectl diff --server-side` of the same set.
 */
export function drift(options: BenchOptions): Promise<BenchResult> {
  const { target, objects = 500, rounds = 5, changes = plants.length, seed = 1, say } = options;
  return onGround({ target, namespaces: [namespace] }, async (ground) => {
    const set = benchObjects(objects, { namespace, revision: "1" });
    const plan = {
      set,
      file: await ground.kubectl.write("set", set),
      changes,
      ways: plants,
      random: createRandom(seed),
    };
    const all: Round[] = [];
    for (let number = 0; number <= rounds; number += 1) {
      const round = await driftRound(ground, plan);
      all.push(round);
      say(`${number === 0 ? "first" : `round ${number}`}: ${round.planted.size} planted, ${round.drifted.found} found`);
    }
    await bringInSync(ground, set);
    const requests = await ground.kubectl.requestsOf(diffArgs(plan), diffCodes);
    // The first round opens connections and fills caches.
    const counted = all.slice(1);
    const times = (of: (round: Round) => Sample) => counted.map((round) => of(round).ms);
    const figuresOf = (of: (round: Round) => CheckSample) => ({
      ...sampleFigures(counted.map(of)),
      requests: median(counted.map((round) => of(round).requests)),
      found: counted.map((round) => of(round).found).join(" "),
    });
    return {
      target: ground.target,
      ratios: {
        vsKubectl: medianRatio(
          times(({ unchanged }) => unchanged),
          times(({ kubectl }) => kubectl),
        ),
      },
      figures: {
        unchanged: figuresOf((round) => round.unchanged),
        "asked for": figuresOf((round) => round.asked),
        "status written": figuresOf((round) => round.statusWritten),
        drifted: figuresOf((round) => round.drifted),
        "kubectl diff": { ...sampleFigures(counted.map(({ kubectl }) => kubectl)), requests },
        planted: { seed, objects, each: counted.map(({ planted }) => planted.size).join(" ") },
      },
      failures: all.flatMap(({ failures }) => failures),
    };
  });
}

function sampleFigures(samples: readonly Sample[]) {
  return { ...spread(samples.map(({ ms }) => ms)), cpuMs: Math.round(median(samples.map(({ cpuMs }) => cpuMs))) };
}

export interface Plan {
  readonly set: readonly ManifestObject[];
  /** A file with the set, for kubectl. */
  readonly file: string;
  readonly changes: number;
  /** The ways in which objects drift. */
  readonly ways: readonly Plant[];
  readonly random: Random;
}

async function driftRound(ground: Ground, plan: Plan): Promise<Round> {
  await bringInSync(ground, plan.set);
  await writeStatuses(ground, "seen again");
  const statusWritten = await measureCheck(ground);
  const unchanged = await measureCheck(ground);
  const asked = await measureCheck(ground, { isAsked: true });
  const kubectl = await ground.kubectl.run(diffArgs(plan), diffCodes);
  const planted = await plantDrift(ground, plan);
  const misjudged = await compareFound(ground, planted);
  const drifted = await measureCheck(ground);
  const failures = [
    ...miscount("status written", statusWritten, 0),
    ...miscount("unchanged", unchanged, 0),
    ...miscount("asked for", asked, 0),
    ...miscount("drifted", drifted, planted.size),
    ...misjudged,
  ];
  return { unchanged, asked, statusWritten, drifted, kubectl, planted, failures };
}

export function diffArgs({ file }: Plan): readonly string[] {
  return ["diff", "--server-side", "--force-conflicts", "-f", file];
}

function miscount(name: string, { found }: CheckSample, desired: number): readonly string[] {
  return found === desired ? [] : [`${name}: ${found} objects found, ${desired} expected`];
}

/** Applies everything again and plays the controller of Deployments, until the Sync is Ready. */
export async function bringInSync(ground: Ground, set: readonly ManifestObject[]): Promise<void> {
  const { worker, cluster } = ground;
  await cluster.send(applyRequest(definition("Gauge", ["size", "extra"])));
  await worker.assign(set, "report");
  await worker.invoke();
  await worker.checkApplied();
  await writeStatuses(ground, "available");
  await worker.requestCheck();
  await worker.invoke();
  const { phase, reason, message } = await worker.observed();
  if (phase !== "Ready") throw new Error(`the set did not become ready: ${phase}, ${reason}: ${message}`);
}

/** A Deployment without replicas is available as soon as its controller has reported that. */
async function writeStatuses({ cluster }: Ground, message: string): Promise<void> {
  const time = new Date().toISOString().replace(/\.\d+/, "");
  const condition = (type: string, reason: string) => ({
    ...{ type, reason, message, status: "True", lastUpdateTime: time, lastTransitionTime: time },
  });
  const conditions = [
    condition("Available", "MinimumReplicasAvailable"),
    condition("Progressing", "NewReplicaSetAvailable"),
  ];
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const list = parseJson(await cluster.send({ method: "GET", path: deployments }));
  const requests = listAt(list, "items").map((item) => ({
    method: "PATCH" as const,
    path: `${deployments}/${stringAt(item, "metadata", "name")}/status?fieldManager=kube-controller-manager`,
    contentType: "application/merge-patch+json",
    body: stringifyJson({ status: { observedGeneration: valueAt(item, "metadata", "generation"), conditions } }),
  }));
  await cluster.sendAll(requests, 8);
}

/** Measures a routine check, or a requested one. A requested check also searches for members that nothing records. */
async function measureCheck({ worker, address }: Ground, { isAsked = false } = {}): Promise<CheckSample> {
  const before = (await worker.observed()).drift?.at;
  await (isAsked ? worker.requestCheck() : worker.passInterval());
  const { ms, cpuMs, requests } = await measured(() => worker.invoke());
  const { drift: after } = await worker.observed();
  const found = after === undefined || after.at === before ? 0 : after.objects;
  return { ms, cpuMs, found, requests: requests.get(new URL(address.server).host) ?? 0 };
}

/** Uses every way once before it repeats one. @returns the way of each drifted object, by `describeObject`. */
export async function plantDrift(
  ground: Ground,
  { set, changes, ways: all, random }: Plan,
): Promise<ReadonlyMap<string, string>> {
  const planted = new Map<string, string>();
  const left = shuffled(set, random);
  let ways: Plant[] = [];
  let first = true;
  while (planted.size < changes) {
    if (ways.length === 0) {
      ways = shuffled(all, random).filter(({ once }) => first || once === undefined);
      first = false;
      if (!ways.some(({ kinds }) => left.some(({ kind }) => kinds.includes(kind)))) break;
    }
    const way = ways.pop();
    const index = left.findIndex(({ kind }) => way?.kinds.includes(kind));
    const [object] = index < 0 ? [] : left.splice(index, 1);
    if (way === undefined || object === undefined) continue;
    await way.plant(ground, object);
    planted.set(describeObject(objectIdOf(object)), way.name);
  }
  return planted;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items];
  const order: T[] = [];
  while (rest.length > 0) order.push(...rest.splice(random.integer(0, rest.length - 1), 1));
  return order;
}

/** Compares names by the check that the function uses, because the Sync's row has only the number of drifted objects. */
async function compareFound(
  { address, worker }: Ground,
  planted: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  const connection = new KubeConnection(endpointOf(address));
  try {
    const client = connection.client({ deadlineMs: Date.now() + 60_000 });
    const report = await detectDrift(client, await worker.inventory());
    const found = new Set(report.drifted.map(({ id }) => describeObject(id)));
    return [
      ...[...planted].filter(([name]) => !found.has(name)).map(([name, way]) => `not found: ${name}, where ${way}`),
      ...[...found].filter((name) => !planted.has(name)).map((name) => `found without a cause: ${name}`),
      ...report.unread.map(({ kind, failure }) => `not read: ${kind}: ${failure.message}`),
    ];
  } finally {
    connection.close();
  }
}
