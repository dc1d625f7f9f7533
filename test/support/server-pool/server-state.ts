/** The objects on a real API server, and how to restore its state of the start. */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import { type KubeObject, listAt, stringAt } from "#shared/kube/kube-object.ts";
import { type ClusterFixture, clusterFixture, endpointOf } from "#test/support/cluster-fixture.ts";

interface Found {
  readonly kind: KindInfo;
  readonly object: KubeObject;
}

/** Objects by kind and uid. */
export interface ServerState {
  readonly contents: ReadonlyMap<string, string>;
}

/** Namespaces and kinds that the server itself keeps writing, or creates a moment after it is ready. */
const ownNamespaces = new Set(["kube-system", "kube-public", "kube-node-lease"]);
const ownKinds = new Set(["FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR", "IPAddress", "ComponentStatus"]);
/** Discovery keeps the kinds of these for a while, so a server that had one is not used again. */
const lastingKinds = new Set(["CustomResourceDefinition", "APIService"]);

export async function stateOf(server: KubeApiServer): Promise<ServerState> {
  return withFixture(server, async (fixture) => ({ contents: contentsOf(await everything(fixture)) }));
}

/** @returns whether the server is as it was; if not, it is of no more use. */
export async function restoreServer(server: KubeApiServer, state: ServerState): Promise<boolean> {
  return withFixture(server, async (fixture) => {
    for (let round = 0; round < rounds; round += 1) {
      const found = await everything(fixture);
      const now = contentsOf(found);
      for (const [id, content] of state.contents) if (now.get(id) !== content) return false;
      const added = found.filter((each) => !state.contents.has(idOf(each)));
      if (added.length === 0) return true;
      if (added.some(({ kind }) => lastingKinds.has(kind.kind))) return false;
      if (round > 0) await sleep(pauseMs);
      // Objects in a namespace are deleted first, because no controller empties it.
      for (const each of added) if (each.kind.kind !== "Namespace") await remove(fixture, each);
      for (const each of added) if (each.kind.kind === "Namespace") await remove(fixture, each);
    }
    return false;
  }).catch(() => false);
}

const rounds = 5;
const pauseMs = 100;

async function withFixture<T>(server: KubeApiServer, use: (fixture: ClusterFixture) => Promise<T>): Promise<T> {
  const fixture = clusterFixture({ endpoint: endpointOf(server) });
  try {
    return await use(fixture);
  } finally {
    await fixture.stop();
  }
}

async function everything({ client }: ClusterFixture): Promise<readonly Found[]> {
  const kinds = (await client.listableKinds()).filter(({ kind }) => !ownKinds.has(kind));
  const lists = await Promise.all(
    kinds.map(async (kind) => (await client.list(kind, {})).map((object) => ({ kind, object }))),
  );
  return lists.flat().filter((found) => !isOwn(found));
}

function isOwn({ object }: Found): boolean {
  const [namespace = "", name = ""] = [stringAt(object, "metadata", "namespace"), stringAt(object, "metadata", "name")];
  return ownNamespaces.has(namespace) || (namespace === "default" && /^kubernetes\b/.test(name));
}

function idOf({ kind, object }: Found): string {
  return `${kind.kind}.${kind.group} ${stringAt(object, "metadata", "uid")}`;
}

/** The objects without the fields that change by themselves. */
function contentsOf(found: readonly Found[]): ReadonlyMap<string, string> {
  return new Map(
    found.map((each) => {
      const { status: _status, metadata, ...rest } = each.object;
      const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata as Record<string, never>;
      return [idOf(each), digestOf({ ...rest, metadata: kept })];
    }),
  );
}

async function remove({ raw }: ClusterFixture, { kind, object }: Found): Promise<void> {
  const [namespace = "", name = "", uid = ""] = ["namespace", "name", "uid"].map((key) =>
    stringAt(object, "metadata", key),
  );
  const folder = `${kind.group === "" ? "/api" : `/apis/${kind.group}`}/${kind.version}`;
  const path = `${folder}${namespace === "" ? "" : `/namespaces/${namespace}`}/${kind.plural}/${encodeURIComponent(name)}`;
  if (listAt(object, "metadata", "finalizers").length > 0)
    await raw("PATCH", path, { body: { metadata: { finalizers: null } }, as: "merge-patch" });
  const options = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    gracePeriodSeconds: 0,
    propagationPolicy: "Background",
    preconditions: { uid },
  };
  await raw("DELETE", path, { body: options }).catch(() => {});
  if (kind.kind === "Namespace") {
    // Without controllers it would stay for ever.
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name, uid }, spec: { finalizers: [] } };
    await raw("PUT", `${path}/finalize`, { body }).catch(() => {});
  }
}
