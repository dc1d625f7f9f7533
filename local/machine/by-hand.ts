/** Changes to a cluster of this machine that a person makes, without Starling. */
import type { ClusterConnection, ClusterHost } from "@starling/embedded-apiserver";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type KubeObject, type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";

const deadlineMs = 30_000;
const namespaced = /\/namespaces\/([^/]+)\/[^/]+\/[^/]+$/;

/** The ConfigMap of a cluster, as it is now. */
export function configMapIn(
  clusters: ClusterHost,
  cluster: string,
  key: { readonly namespace: string; readonly name: string },
): KubeObject | undefined {
  return clusters.objects(cluster).find((object) => {
    const { kind, namespace, name } = objectIdOf(object);
    return kind === "ConfigMap" && namespace === key.namespace && name === key.name;
  });
}

/** Works like `kubectl delete configmap`. */
export async function deleteConfigMap(
  connection: ClusterConnection,
  key: { readonly namespace: string; readonly name: string },
): Promise<void> {
  await withClient(connection, async (client) => {
    const kind = await kindOf(client, "ConfigMap");
    const uid = stringAt(await client.get(kind, key), "metadata", "uid");
    if (uid !== undefined) await client.delete(kind, key, { uid });
  });
}

/**
 * Creates missing namespaces when a worker needs them, as `kubectl create namespace` does. Many repositories expect
 * that their user has created the namespaces. Starling never creates them, but it repeats the failed write. @returns a
 * function that stops this.
 */
export function provideNamespaces(clusters: ClusterHost, made: (namespace: string) => void): () => void {
  const asked = new Set<string>();
  const reported = new Set<string>();
  return clusters.onRequest(({ cluster, method, path, status }) => {
    const namespace = namespaced.exec(path)?.[1];
    const connection = clusters.connections().find(({ name }) => name === cluster);
    if (status !== 404 || method !== "PATCH" || namespace === undefined || connection === undefined) return;
    if (asked.has(`${cluster}/${namespace}`)) return;
    asked.add(`${cluster}/${namespace}`);
    createNamespace(connection, namespace).then(
      (isNew) => {
        if (isNew && !reported.has(namespace)) made(namespace);
        reported.add(namespace);
      },
      // The Sync reports the missing namespace.
      () => asked.delete(`${cluster}/${namespace}`),
    );
  });
}

/** @returns false when the namespace exists; then the request failed for another reason. */
function createNamespace(connection: ClusterConnection, name: string): Promise<boolean> {
  return createObject(connection, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
}

/** Works like `kubectl create clusterrolebinding GROUP --clusterrole=cluster-admin --group=GROUP`. */
export async function letGroupAdminister(connection: ClusterConnection, group: string): Promise<void> {
  await createObject(connection, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: group },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group }],
  });
}

/** @returns false when an object of this name exists. */
async function createObject(connection: ClusterConnection, object: ManifestObject): Promise<boolean> {
  const slash = object.apiVersion.indexOf("/");
  const group = slash < 0 ? "" : object.apiVersion.slice(0, slash);
  return withClient(connection, async (client) => {
    try {
      await client.create(await kindOf(client, object.kind, group), object);
      return true;
    } catch (error) {
      if (error instanceof KubeError && error.status === 409) return false;
      throw error;
    }
  });
}

async function kindOf(client: ClusterClient, kind: string, group = ""): Promise<KindInfo> {
  const found = await client.lookup({ group, kind });
  if (found.outcome !== "found") throw new Error(`the cluster serves no ${kind}`);
  return found.info;
}

async function withClient<T>(connection: ClusterConnection, act: (client: ClusterClient) => Promise<T>): Promise<T> {
  const { server, caData, token } = connection;
  const kube = new KubeConnection({ server, caData, credentials: { token: async () => token } });
  try {
    return await act(kube.client({ deadlineMs: Date.now() + deadlineMs }));
  } finally {
    kube.close();
  }
}
