import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type ClusterHost, type ClusterHostOptions, startClusterHost } from "#apiserver/cluster-host.ts";
import { isJsonObject, parseJson } from "#apiserver/json.ts";
import { valueAt } from "#apiserver/object-fields.ts";
import { applyTo, clusterRequest, readFrom } from "#apiserver/test/support/cluster-request.ts";

const hosts: ClusterHost[] = [];

async function start(options: ClusterHostOptions = {}): Promise<ClusterHost> {
  const host = await startClusterHost({ controllers: "off", ...options });
  hosts.push(host);
  return host;
}

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.stop();
});

const configMaps = "/api/v1/namespaces/default/configmaps";

function configMap(
  name: string,
  value = "1",
): { apiVersion: string; kind: string; metadata: { name: string }; data: { k: string } } {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { k: value } };
}

test("clusters share a port and nothing else", async () => {
  const host = await start();
  const [first, second] = [host.addCluster("a"), host.addCluster("b", { uid: "11111111-1111-1111-1111-111111111111" })];
  await applyTo(first, `${configMaps}/x`, configMap("x"));
  expect(await readFrom(second, `${configMaps}/x`)).toBeUndefined();
  const system = await readFrom(second, "/api/v1/namespaces/kube-system");
  expect(valueAt(system, "metadata", "uid")).toBe(second.uid);
  expect((await clusterRequest(second, { path: configMaps, token: first.token })).status).toBe(401);
  host.removeCluster("a");
  expect((await clusterRequest(first, { path: configMaps })).status).toBe(404);
  expect(() => host.addCluster("b")).toThrow('cluster "b" exists already');
});

test("an authenticator accepts tokens that the cluster itself does not know", async () => {
  const authenticator = async (token: string, cluster: string) => {
    if (token === "broken") throw new Error("no answer");
    return token === `of-${cluster}` ? { username: "jane", groups: ["system:masters"] } : undefined;
  };
  const host = await start({ authenticator });
  const a = host.addCluster("a");
  const b = host.addCluster("b", { authenticator: async () => ({ username: "joe", groups: [] }) });
  const statusOf = async (cluster: typeof a, token: string) =>
    (await clusterRequest(cluster, { path: configMaps, token })).status;
  expect(await statusOf(a, "of-a")).toBe(200);
  expect(await statusOf(a, "of-b")).toBe(401);
  expect(await statusOf(a, "broken")).toBe(401);
  expect(await statusOf(b, "of-a")).toBe(403);
  expect(await statusOf(b, b.token)).toBe(200);
});

test("a kubeconfig has a context for each cluster", async () => {
  const host = await start();
  const { server, caData, token } = host.addCluster("a");
  host.addCluster("b");
  const config = parseJson(host.kubeconfig());
  expect(config).toMatchObject({
    "current-context": "a",
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }, { name: "b" }],
    users: [{ name: "a", user: { token } }, { name: "b" }],
  });
  expect(isJsonObject(config) && Array.isArray(config.clusters) ? config.clusters[0] : undefined).toEqual({
    name: "a",
    cluster: { server, "certificate-authority-data": caData },
  });
});

test("every request is recorded and passed to listeners", async () => {
  const host = await start();
  const cluster = host.addCluster("a");
  const heard: string[] = [];
  const stop = host.onRequest(({ method, status }) => heard.push(`${method} ${status}`));
  await applyTo(cluster, `${configMaps}/x`, configMap("x"));
  await clusterRequest(cluster, {
    method: "DELETE",
    path: `${configMaps}/x?dryRun=All`,
    headers: { "user-agent": "me" },
  });
  stop();
  await readFrom(cluster, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3AMyRole");
  expect(heard).toEqual(["PATCH 201", "DELETE 200"]);
  expect(host.requests()).toMatchObject([
    {
      cluster: "a",
      path: `${configMaps}/x`,
      query: "fieldManager=test&force=true",
      dryRun: false,
      object: "/ConfigMap default/x",
    },
    { method: "DELETE", userAgent: "me", dryRun: true },
    { method: "GET", status: 404, object: "rbac.authorization.k8s.io/ClusterRole /system:MyRole" },
  ]);
  host.clearRequests();
  expect(host.requests()).toEqual([]);
});

test("an interceptor can cut a connection before or after the effect, and can answer itself", async () => {
  const host = await start();
  const cluster = host.addCluster("a");
  for (const [phase, effect] of [
    ["before", false],
    ["after", true],
  ] as const) {
    host.intercept((request) => (request.method === "PATCH" && request.phase === phase ? "reset" : "pass"));
    await expect(applyTo(cluster, `${configMaps}/${phase}`, configMap(phase))).rejects.toThrow("socket hang up");
    expect((await readFrom(cluster, `${configMaps}/${phase}`)) !== undefined).toBe(effect);
  }
  host.intercept(({ phase }) =>
    phase === "before" ? { status: 429, body: { kind: "Status" }, headers: { "retry-after": "1" } } : "pass",
  );
  const busy = await clusterRequest(cluster, { path: configMaps });
  expect([busy.status, busy.headers["retry-after"]]).toEqual([429, "1"]);
  host.intercept(undefined);
  expect((await clusterRequest(cluster, { path: configMaps })).status).toBe(200);
});

test("clusters start from their state files with the same tokens and objects", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "clusters-"));
  try {
    const before = await startClusterHost({ stateDir, controllers: "off" });
    const cluster = before.addCluster("a");
    const stored = await applyTo(cluster, `${configMaps}/x`, configMap("x"));
    const port = Number(new URL(cluster.server).port);
    await before.stop();
    const after = await start({ stateDir, port });
    expect(after.connections()).toEqual([cluster]);
    expect(await readFrom(cluster, `${configMaps}/x`)).toEqual(stored);
    const next = await applyTo(cluster, `${configMaps}/y`, configMap("y"));
    expect(Number(valueAt(next, "metadata", "resourceVersion"))).toBe(
      Number(valueAt(stored, "metadata", "resourceVersion")) + 1,
    );
  } finally {
    await rm(stateDir, { recursive: true });
  }
});

test.each(["a.cluster.json", "tls.json"])("the error for a damaged state file %s contains its path", async (file) => {
  const stateDir = await mkdtemp(join(tmpdir(), "clusters-"));
  try {
    await writeFile(join(stateDir, file), "{");
    await expect(startClusterHost({ stateDir, controllers: "off" })).rejects.toThrow(join(stateDir, file));
  } finally {
    await rm(stateDir, { recursive: true });
  }
});

test("a request without credentials may read only the health and the version", async () => {
  const host = await start();
  const cluster = host.addCluster("a");
  const statuses = await Promise.all(
    ["/readyz", "/version", "/apis", configMaps].map(
      async (path) => (await clusterRequest(cluster, { path, token: null })).status,
    ),
  );
  expect(statuses).toEqual([200, 200, 403, 403]);
});

test("a watch streams every change until it ends", async () => {
  const host = await start();
  const cluster = host.addCluster("a");
  const watching = clusterRequest(cluster, { path: `${configMaps}?watch=true&timeoutSeconds=1` });
  while (!host.requests().some(({ query }) => query.includes("watch")))
    await new Promise((resolve) => setTimeout(resolve, 5));
  await applyTo(cluster, `${configMaps}/x`, configMap("x"));
  await applyTo(cluster, `${configMaps}/x`, configMap("x", "2"));
  await clusterRequest(cluster, { method: "DELETE", path: `${configMaps}/x` });
  const events = (await watching).text
    .trim()
    .split("\n")
    .map((line) => valueAt(parseJson(line), "type"));
  expect(events).toEqual(["ADDED", "MODIFIED", "DELETED"]);
});
