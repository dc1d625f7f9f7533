/** Simulated controllers, and a worker that can die at any write. */
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { stringAt, valueAt } from "#shared/kube/kube-object.ts";
import type { WorkerWorld } from "#test/support/worker-world.ts";

const at = "2026-11-20T08:00:00Z";

/** The end of a Job; undefined leaves it running. */
export type JobEnd = "Complete" | "Failed" | undefined;

/** Completes Jobs and makes Deployments ready, as their controllers do. */
export async function playControllers(
  objects: readonly JsonObject[],
  patch: (path: string, body: JsonObject) => Promise<unknown>,
  endOf: (name: string) => JobEnd = () => "Complete",
): Promise<void> {
  for (const object of objects) {
    const [kind, name = "", namespace] = ["kind", "metadata.name", "metadata.namespace"].map((path) =>
      stringAt(object, ...path.split(".")),
    );
    const status =
      kind === "Job" ? jobStatus(object, endOf(name)) : kind === "Deployment" ? deploymentStatus(object) : undefined;
    if (status === undefined) continue;
    const [group, plural] = kind === "Job" ? ["batch", "jobs"] : ["apps", "deployments"];
    const path = `/apis/${group}/v1/namespaces/${namespace}/${plural}/${name}/status`;
    await patch(path, { status });
  }
}

function jobStatus(job: JsonObject, end: JobEnd): JsonObject | undefined {
  if (end === undefined || valueAt(job, "status", "conditions") !== undefined) return undefined;
  const types = end === "Complete" ? ["SuccessCriteriaMet", "Complete"] : ["FailureTarget", "Failed"];
  const conditions = types.map((type) => ({ type, status: "True", reason: "Played", lastTransitionTime: at }));
  const times = end === "Complete" ? { completionTime: at, succeeded: 1 } : { failed: 1 };
  return { startTime: at, ...times, conditions };
}

function deploymentStatus(deployment: JsonObject): JsonObject | undefined {
  const generation = valueAt(deployment, "metadata", "generation");
  if (valueAt(deployment, "status", "observedGeneration") === generation) return undefined;
  const replicas = valueAt(deployment, "spec", "replicas") ?? 1;
  const conditions = ["Available", "Progressing"].map((type) => ({
    ...{ type, status: "True", lastUpdateTime: at, lastTransitionTime: at },
    reason: type === "Progressing" ? "NewReplicaSetAvailable" : "MinimumReplicasAvailable",
  }));
  const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
  return parseJson(stringifyJson({ observedGeneration: generation ?? 1, ...counts, conditions })) as JsonObject;
}

/**
 * The write at which a worker dies, counted from 1 over table, blobs and cluster, and whether this write takes effect.
 */
export interface Death {
  readonly at: number;
  readonly when: "before" | "after";
  /** Receives the number of writes. */
  readonly heard?: (count: number) => void;
}

const writes: ReadonlySet<string> = new Set([
  ...["write", "update", "overwrite"],
  ...["apply", "create", "replace", "patch", "delete"],
]);

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

/** Runs a worker once, up to its death. @returns whether it died. */
export function workUntil(world: WorkerWorld, connector: ClusterConnector, death: Death): Promise<boolean> {
  let written = 0;
  let isDead = false;
  return new Promise((resolve, reject) => {
    const never = new Promise<never>(() => {});
    const mortal = <T extends object>(inner: T): T =>
      new Proxy(inner, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name);
          if (typeof member !== "function") return member;
          if (name === "guardedBy")
            return (...args: unknown[]) => mortal(Reflect.apply(member, target, args) as ClusterClient);
          return (...args: unknown[]) => {
            if (isDead) return never;
            const call = member.bind(target) as AnyMethod;
            return writes.has(String(name)) ? dying(() => call(...args)) : call(...args);
          };
        },
      });
    async function dying(call: () => Promise<unknown>): Promise<unknown> {
      written += 1;
      if (written !== death.at) return call();
      isDead = true;
      if (death.when === "after") await call();
      resolve(true);
      return never;
    }
    const mortalConnector: ClusterConnector = {
      connect: async (...args) => mortal(await connector.connect(...args)),
      distrust: (cluster) => connector.distrust(cluster),
    };
    const instead = { table: mortal(world.table), blobs: mortal(world.blobs), connector: mortalConnector };
    world.work(instead).then(() => {
      death.heard?.(written);
      resolve(false);
    }, reject);
  });
}
