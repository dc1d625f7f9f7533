import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringifyJson } from "#shared/base/json.ts";
import { fieldManager, type ManifestObject } from "#shared/kube/kube-object.ts";
import type { TargetName } from "#test/bench/bench.ts";
import { type ClusterAddress, type StartedTarget, startAwsProcess, startTarget } from "#test/bench/children.ts";
import { RawCluster, type RawRequest } from "#test/bench/kube-requests.ts";
import { Kubectl } from "#test/bench/kubectl.ts";
import { pathOfObject } from "#test/bench/object-paths.ts";
import { groundObjects } from "#test/bench/objects.ts";
import { serverVersion } from "#test/bench/server-version.ts";
import { BenchWorker } from "#test/bench/worker.ts";

/** One cluster that a worker knows, with other ways to access it. */
export interface Ground {
  /** For example `kube-apiserver v1.36.2`. */
  readonly target: string;
  readonly address: ClusterAddress;
  readonly worker: BenchWorker;
  readonly cluster: RawCluster;
  readonly kubectl: Kubectl;
  /** Sets the faults of an embedded cluster; undefined for a real one. */
  readonly setFaults: StartedTarget["setFaults"] | undefined;
}

/** Starts everything in separate processes, runs the work and ends them all. */
export async function onGround<T>(
  options: { readonly target: TargetName; readonly namespaces: readonly string[] },
  work: (ground: Ground) => Promise<T>,
): Promise<T> {
  const stops: (() => Promise<void> | void)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), "starling-bench-"));
    stops.unshift(() => rm(folder, { recursive: true, force: true }));
    const { address, stop, setFaults } = await startTarget(options.target);
    stops.unshift(stop);
    const aws = await startAwsProcess();
    stops.unshift(() => aws.stop());
    const cluster = new RawCluster(address);
    stops.unshift(() => cluster.close());
    const worker = new BenchWorker(aws.address, "set");
    stops.unshift(() => worker.close());
    await worker.register(address);
    for (const object of groundObjects(options.namespaces)) await cluster.send(applyRequest(object));
    const kubectl = await Kubectl.prepare(address, folder);
    const target = `${options.target} ${await serverVersion(cluster)}`;
    return await work({ target, address, worker, cluster, kubectl, setFaults });
  } finally {
    for (const stop of stops) await stop();
  }
}

/** The request with which Starling applies an object. */
export function applyRequest(object: ManifestObject): RawRequest {
  return {
    method: "PATCH",
    path: `${pathOfObject(object)}?fieldManager=${fieldManager}&force=true&fieldValidation=Strict`,
    contentType: "application/apply-patch+yaml",
    body: stringifyJson(object),
  };
}
