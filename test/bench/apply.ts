import { parseJson } from "#shared/base/json.ts";
import { type ManifestObject, stringAt, stringMapAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { median, medianRatio, spread } from "#test/bench/figures.ts";
import { applyRequest, type Ground, onGround } from "#test/bench/ground.ts";
import { RawCluster } from "#test/bench/kube-requests.ts";
import type { Kubectl } from "#test/bench/kubectl.ts";
import { measured } from "#test/bench/measure.ts";
import { pathOfObject } from "#test/bench/object-paths.ts";
import { benchObjects, leavingObjects } from "#test/bench/objects.ts";

const namespaces = { starling: "bench-starling", raw: "bench-raw", kubectl: "bench-kubectl" } as const;
const concurrencies = [4, 8, 16, 32, 64] as const;

interface Sample {
  readonly ms: number;
  readonly cpuMs: number;
  readonly requests?: number;
  readonly steps?: readonly string[];
}

/** Applies a new revision of every object. Its preparation is not measured. */
interface Contender {
  readonly name: string;
  run(revision: string): Promise<Sample>;
}

/**
 * Measures how long it takes to apply a set whose objects all change. The contenders take turns, each with its own
 * objects.
 *
 * The apply function works on rows and blobs, too, and prunes five objects that left git. The best of five raw loops of
 * PATCHes over kept connections shows the limit of the server. The best of five raw loops with new connections has the
 * conditions of an invocation. The last contender is kubectl.
 */
export function apply({ target, objects = 500, rounds = 5, say }: BenchOptions): Promise<BenchResult> {
  return onGround({ target, namespaces: Object.values(namespaces) }, async (ground) => {
    const connecting = new RawCluster(ground.address);
    const raw: RawSet = { objects, setId: ground.worker.setId, recorded: new Map() };
    const contenders: readonly Contender[] = [
      starling(ground, objects),
      ...concurrencies.map((concurrency) => rawLoop(raw, { cluster: ground.cluster, concurrency })),
      ...concurrencies.map((concurrency) => connectingLoop(raw, { cluster: connecting, concurrency })),
      kubectlApply(ground.kubectl, objects),
    ];
    const samples = new Map<string, Sample[]>(contenders.map(({ name }) => [name, []]));
    for (let round = 0; round <= rounds; round += 1) {
      const turn = contenders.map((_, index) => (index + round) % contenders.length);
      for (const index of turn) {
        const contender = contenders[index];
        if (contender === undefined) continue;
        const sample = await contender.run(`${round}-${index}`);
        // The first round creates objects, connections and caches and does not count.
        if (round > 0) samples.get(contender.name)?.push(sample);
        say(`${round === 0 ? "first" : `round ${round}`}: ${contender.name} ${Math.round(sample.ms)} ms`);
      }
    }
    connecting.close();
    const byKubectl = await ground.kubectl.requestsOf(await kubectlArgs(ground.kubectl, { objects, revision: "last" }));
    return result(samples, { target: ground.target, byKubectl });
  });
}

function result(
  samples: ReadonlyMap<string, readonly Sample[]>,
  { target, byKubectl }: { readonly target: string; readonly byKubectl: number },
): BenchResult {
  const times = (name: string) => (samples.get(name) ?? []).map(({ ms }) => ms);
  const best = (names: readonly string[]) => {
    const [first = ""] = names.toSorted((a, b) => median(times(a)) - median(times(b)));
    return times(first);
  };
  const figures: Record<string, Figures> = {};
  for (const [name, of] of samples) {
    figures[name] = {
      ...spread(times(name)),
      cpuMs: Math.round(median(of.map(({ cpuMs }) => cpuMs))),
      requests: median(of.map(({ requests = byKubectl }) => requests)),
    };
  }
  const { steps = [] } = samples.get("starling")?.at(-1) ?? {};
  figures["steps that wait for each other"] = Object.fromEntries(
    // A numeric name would be sorted before other names.
    steps.map((step, index) => [`step ${String(index + 1).padStart(2, "0")}`, step]),
  );
  return {
    target,
    ratios: {
      vsRawPatch: medianRatio(times("starling"), best(concurrencies.map(rawName))),
      vsRawPatchConnecting: medianRatio(times("starling"), best(concurrencies.map(connectingName))),
      vsKubectl: medianRatio(times("starling"), times("kubectl")),
    },
    figures,
    failures: [],
  };
}

function starling({ worker, cluster, address }: Ground, objects: number): Contender {
  let before = "0";
  return {
    name: "starling",
    async run(revision) {
      const at = (of: string) => ({ namespace: namespaces.starling, revision: of });
      const leaving = leavingObjects(at(before));
      await worker.assign([...benchObjects(objects, at(before)), ...leaving]);
      await worker.invoke();
      await worker.checkApplied();
      await worker.assign(benchObjects(objects, at(revision)));
      before = revision;
      const { ms, cpuMs, requests, steps } = await measured(() => worker.invoke());
      await worker.checkApplied();
      for (const object of leaving) await checkGone(cluster, object);
      return { ms, cpuMs, requests: requests.get(new URL(address.server).host) ?? 0, steps };
    },
  };
}

async function checkGone(cluster: RawCluster, object: ManifestObject): Promise<void> {
  const gone = await cluster.send({ method: "GET", path: pathOfObject(object) }).then(
    () => false,
    (error: Error) => error.message.includes("answered 404"),
  );
  if (!gone) throw new Error(`${object.kind} ${object.metadata.name} left the source and was not pruned`);
}

/** One set that all raw loops share. */
interface RawSet {
  readonly objects: number;
  readonly setId: string;
  /** The last answers about each object by path: the content of an inventory. */
  readonly recorded: Map<string, { readonly uid: string; readonly resourceVersion: string }>;
}

interface Loop {
  readonly cluster: RawCluster;
  readonly concurrency: number;
}

/** The bodies are those of the apply function, with the set's label, the uid and the recorded version. */
function rawLoop(raw: RawSet, { cluster, concurrency }: Loop): Contender {
  return {
    name: rawName(concurrency),
    async run(revision) {
      const set = benchObjects(raw.objects, { namespace: namespaces.raw, revision });
      const requests = set.map((object) => applyRequest(asRecorded(object, raw)));
      const { ms, cpuMs, value: answers } = await measured(() => cluster.sendAll(requests, concurrency));
      record(answers, raw);
      return { ms, cpuMs, requests: requests.length };
    },
  };
}

/** An invocation ends its connections, and the next one resumes their TLS sessions. */
function connectingLoop(raw: RawSet, loop: Loop): Contender {
  const { run } = rawLoop(raw, loop);
  return {
    name: connectingName(loop.concurrency),
    async run(revision) {
      loop.cluster.close();
      return run(revision);
    },
  };
}

function rawName(concurrency: number): string {
  return `raw PATCH x${concurrency}`;
}

function connectingName(concurrency: number): string {
  return `${rawName(concurrency)}, connecting`;
}

function asRecorded(object: ManifestObject, { setId, recorded }: RawSet): ManifestObject {
  const labels = { ...stringMapAt(object, "metadata", "labels"), [partOfLabel]: setId };
  return { ...object, metadata: { ...object.metadata, labels, ...recorded.get(pathOfObject(object)) } };
}

function record(answers: readonly string[], { recorded }: RawSet): void {
  for (const answer of answers) {
    const object = parseJson(answer) as ManifestObject;
    const uid = stringAt(object, "metadata", "uid") ?? "";
    const resourceVersion = stringAt(object, "metadata", "resourceVersion") ?? "";
    recorded.set(pathOfObject(object), { uid, resourceVersion });
  }
}

function kubectlApply(kubectl: Kubectl, objects: number): Contender {
  return {
    name: "kubectl",
    async run(revision) {
      return kubectl.run(await kubectlArgs(kubectl, { objects, revision }));
    },
  };
}

async function kubectlArgs(
  kubectl: Kubectl,
  { objects, revision }: { readonly objects: number; readonly revision: string },
): Promise<readonly string[]> {
  const file = await kubectl.write("set", benchObjects(objects, { namespace: namespaces.kubectl, revision }));
  return ["apply", "--server-side", "--force-conflicts", "-f", file];
}
