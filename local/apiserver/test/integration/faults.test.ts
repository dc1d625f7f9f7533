import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type ClusterConnection,
  type ClusterFaults,
  type ClusterHost,
  startClusterHost,
} from "#apiserver/cluster-host.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { applyTo, clusterRequest, objectOf, readFrom } from "#apiserver/test/support/cluster-request.ts";

let host: ClusterHost;
let cluster: ClusterConnection;

beforeEach(async () => {
  host = await startClusterHost({ controllers: "off" });
  host.addCluster("a");
  cluster = await host.openPort("a");
});

afterEach(() => host.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";

function configMap(name: string, data: Record<string, string> = { k: "1" }) {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

function put(name: string, path = configMaps) {
  return clusterRequest(cluster, { method: "POST", path, body: configMap(name) });
}

function exists(name: string): boolean {
  return host.objects("a").some((object) => stringAt(object, "metadata", "name") === name);
}

/** Sends a request over a new connection. Returns its status, or the code of the error that ended it. */
async function outcome(path = configMaps): Promise<string | number> {
  try {
    return (await clusterRequest(cluster, { path, headers: { connection: "close" } })).status;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

describe("ports of single clusters", () => {
  test("a cluster answers at its own port as well as at the shared one", async () => {
    const other = host.addCluster("b");
    const own = await host.openPort("b");
    expect(own.server).not.toBe(other.server);
    await applyTo(own, `${configMaps}/x`, configMap("x"));
    expect(await readFrom(other, `${configMaps}/x`)).toMatchObject({ data: { k: "1" } });
    expect(await host.openPort("b")).toEqual(own);
    expect(host.connections()).toContainEqual(own);
  });

  test("the port of a cluster closes when the cluster is removed", async () => {
    expect(await outcome()).toBe(200);
    host.removeCluster("a");
    expect(await outcome()).toBe("ECONNREFUSED");
  });

  test("network and certificate faults are refused for a cluster without its own port", async () => {
    host.addCluster("b");
    for (const faults of [{ network: "hangs" }, { certificate: "expired" }] satisfies ClusterFaults[]) {
      await expect(host.setFaults("b", faults)).rejects.toThrow('cluster "b" has no port of its own: call openPort');
    }
  });
});

describe("faulty answers", () => {
  test("an answer is late by the latency and its jitter", async () => {
    await host.setFaults("a", { latency: { ms: 30, jitterMs: 20 } });
    const before = performance.now();
    expect(await outcome()).toBe(200);
    expect(performance.now() - before).toBeGreaterThanOrEqual(29);
  });

  test("throttling answers the next requests with 429 and Retry-After", async () => {
    await host.setFaults("a", { throttle: { next: 2, retryAfterSeconds: 3 } });
    const busy = await put("x");
    expect([busy.status, busy.headers["retry-after"], busy.text]).toEqual([
      429,
      "3",
      "Too many requests, please try again later.\n",
    ]);
    expect(host.faults("a")).toEqual({ throttle: { next: 1, retryAfterSeconds: 3 } });
    expect([await outcome(), await outcome()]).toEqual([429, 200]);
    expect(host.faults("a")).toEqual({});
    expect(exists("x")).toBe(false);
  });

  test.each([
    ["before", false],
    ["after", true],
  ] as const)("an injected 5xx answer is sent %s the effect of the request", async (phase, effect) => {
    await host.setFaults("a", { errors: { status: 504, phase, methods: ["POST"] } });
    const failed = await put("x");
    expect([failed.status, objectOf(failed)]).toMatchObject([504, { kind: "Status", code: 504, reason: "Timeout" }]);
    expect(await outcome()).toBe(200);
    expect(exists("x")).toBe(effect);
    await host.setFaults("a", { errors: { status: 500 } });
    expect(objectOf(await put("y")).message).toBe("etcdserver: leader changed");
    await host.setFaults("a", { errors: { status: 502, message: "no backend" } });
    expect(objectOf(await put("y")).message).toBe("no backend");
  });

  test.each([
    ["before", false],
    ["after", true],
  ] as const)("a reset cuts the connection %s the effect of the request", async (phase, effect) => {
    await host.setFaults("a", { resets: { phase, pathIncludes: "/configmaps" } });
    await expect(put("x")).rejects.toThrow("socket hang up");
    expect(exists("x")).toBe(effect);
    expect(await outcome("/api/v1/namespaces")).toBe(200);
  });

  test("the same seed makes the same requests fail", async () => {
    const runs: (string | number)[][] = [];
    for (const seed of [7, 7, 8]) {
      await host.setFaults("a", { seed, errors: { status: 503, probability: 0.5 } });
      const run: (string | number)[] = [];
      for (let request = 0; request < 16; request++) run.push(await outcome());
      runs.push(run);
    }
    expect(runs[0]).toEqual(runs[1]);
    expect(runs[0]).not.toEqual(runs[2]);
    expect(new Set(runs[0])).toEqual(new Set([200, 503]));
  });

  test("faults of one cluster do not affect another", async () => {
    const other = host.addCluster("b");
    await host.setFaults("a", { errors: { status: 500 } });
    expect((await clusterRequest(other, { path: configMaps })).status).toBe(200);
    expect(host.faults("b")).toEqual({});
    await expect(host.setFaults("c", {})).rejects.toThrow('there is no cluster "c"');
    await expect(host.setFaults("a", { errors: { status: 404 } })).rejects.toThrow(/status/);
  });
});

describe("network faults", () => {
  test("a network that refused connections works again at the same address", async () => {
    await host.setFaults("a", { network: "refused" });
    expect(await outcome()).toBe("ECONNREFUSED");
    await host.setFaults("a", {});
    expect(await outcome()).toBe(200);
  });

  test("a hanging network accepts connections and never starts TLS", async () => {
    const other = host.addCluster("b");
    await host.setFaults("a", { network: "hangs" });
    const seen: string[] = [];
    const socket = tlsConnect({ port: Number(new URL(cluster.server).port), host: "127.0.0.1" });
    for (const event of ["connect", "secureConnect", "close"]) socket.on(event, () => seen.push(event));
    socket.on("error", () => {});
    expect((await clusterRequest(other, { path: configMaps })).status).toBe(200);
    expect(seen).toEqual(["connect"]);
    await host.setFaults("a", {});
    await expect.poll(() => seen).toEqual(["connect", "close"]);
    expect(await outcome()).toBe(200);
  });

  test("a hanging network answers nothing on existing connections at any address", async () => {
    const other = { ...cluster, server: host.addCluster("b").server.replace("/b", "/a") };
    expect((await clusterRequest(other, { path: configMaps })).status).toBe(200);
    await host.setFaults("a", { network: "hangs" });
    const silent = clusterRequest(other, { path: configMaps });
    while (host.requests().at(-1)?.status !== 0) await new Promise(setImmediate);
    await host.setFaults("a", {});
    await expect(silent).rejects.toThrow("socket hang up");
  });

  test("a client refuses an expired certificate", async () => {
    await host.setFaults("a", { certificate: "expired" });
    expect(await outcome()).toBe("CERT_HAS_EXPIRED");
    await host.setFaults("a", {});
    expect(await outcome()).toBe(200);
  });
});

describe("webhooks", () => {
  const deny = { name: "policy.example.com", does: "deny", message: "no data, no map" } as const;

  test("a webhook denies the objects that it selects and no others", async () => {
    await host.setFaults("a", { webhooks: [{ ...deny, kinds: ["ConfigMap"], namespaces: ["default"] }] });
    const refused = await put("x");
    expect([refused.status, objectOf(refused)]).toEqual([
      403,
      {
        ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason: "Forbidden", code: 403 },
        message: 'admission webhook "policy.example.com" denied the request: no data, no map',
      },
    ]);
    expect((await put("x", "/api/v1/namespaces/kube-public/configmaps")).status).toBe(201);
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "x" } };
    const path = "/api/v1/namespaces/default/secrets";
    expect((await clusterRequest(cluster, { method: "POST", path, body: secret })).status).toBe(201);
    await host.setFaults("a", { webhooks: [{ ...deny, message: "", code: 400 }] });
    const silent = objectOf(await put("x"));
    expect(silent).toMatchObject({
      code: 400,
      message: expect.stringMatching(/denied the request without explanation$/),
    });
    expect(silent).not.toHaveProperty("reason");
  });

  test("a webhook is called for updates, and for deletes only if it lists DELETE", async () => {
    await applyTo(cluster, `${configMaps}/x`, configMap("x"));
    await host.setFaults("a", { webhooks: [deny] });
    await expect(applyTo(cluster, `${configMaps}/x`, configMap("x", { k: "2" }))).rejects.toThrow("denied the request");
    const remove = (query = "") => clusterRequest(cluster, { method: "DELETE", path: `${configMaps}/x${query}` });
    await host.setFaults("a", { webhooks: [{ ...deny, operations: ["DELETE"] }] });
    expect((await remove()).status).toBe(403);
    expect(await readFrom(cluster, `${configMaps}/x`)).toMatchObject({ data: { k: "1" } });
    await host.setFaults("a", { webhooks: [deny] });
    expect((await remove("?dryRun=All")).status).toBe(200);
    expect((await remove()).status).toBe(200);
  });

  test("a webhook rewrites the stored object, and no manager owns the fields that it sets", async () => {
    const patch = [{ op: "add", path: "/data/injected", value: "yes" }];
    await host.setFaults("a", { webhooks: [{ name: "inject.example.com", does: "rewrite", patch }] });
    const stored = await applyTo(cluster, `${configMaps}/x`, configMap("x"));
    expect(stored.data).toEqual({ k: "1", injected: "yes" });
    expect(JSON.stringify(valueAt(stored, "metadata", "managedFields"))).not.toContain("injected");
    expect(await applyTo(cluster, `${configMaps}/x`, configMap("x"))).toEqual(stored);
  });

  test("a webhook that cannot be called fails the request unless its failure policy is Ignore", async () => {
    const webhook = {
      name: "away.example.com",
      does: "fail",
      error: 'no endpoints available for service "away"',
    } as const;
    await host.setFaults("a", { webhooks: [webhook] });
    const failed = objectOf(await put("x"));
    const call = `failed calling webhook "away.example.com": failed to call webhook: ${webhook.error}`;
    expect(failed).toMatchObject({
      ...{ code: 500, reason: "InternalError", message: `Internal error occurred: ${call}` },
      details: { causes: [{ message: call }] },
    });
    await host.setFaults("a", { webhooks: [{ ...webhook, failurePolicy: "Ignore" }] });
    expect((await put("x")).status).toBe(201);
  });

  test("a webhook with side effects makes dry runs fail", async () => {
    await host.setFaults("a", { webhooks: [{ ...deny, sideEffects: "Some" }] });
    const dry = await put("x", `${configMaps}?dryRun=All`);
    expect([dry.status, objectOf(dry).message]).toEqual([
      400,
      'admission webhook "policy.example.com" does not support dry run',
    ]);
  });
});

describe("aggregated APIs", () => {
  const aggregated = { accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" };

  test("an aggregated API that is down is listed as stale and answers 503", async () => {
    await host.setFaults("a", { unavailableApis: ["v1beta1.metrics.k8s.io", "v1.batch"] });
    const groups = listAt(objectOf(await clusterRequest(cluster, { path: "/apis", headers: aggregated })), "items");
    const group = (name: string) => groups.find((each) => stringAt(each, "metadata", "name") === name);
    expect(group("metrics.k8s.io")).toMatchObject({
      versions: [{ version: "v1beta1", freshness: "Stale", resources: [] }],
    });
    expect(listAt(group("batch"), "versions")).toMatchObject([{ freshness: "Stale" }]);
    expect(listAt(group("apps"), "versions")).toMatchObject([{ freshness: "Current" }]);
    expect(objectOf(await clusterRequest(cluster, { path: "/apis" })).groups).toContainEqual(
      expect.objectContaining({ name: "metrics.k8s.io" }),
    );
    for (const path of ["/apis/metrics.k8s.io/v1beta1", "/apis/metrics.k8s.io/v1beta1/pods", "/apis/batch/v1/jobs"]) {
      const answer = await clusterRequest(cluster, { path });
      expect([path, answer.status, answer.text]).toEqual([path, 503, "service unavailable\n"]);
    }
    await host.setFaults("a", {});
    expect([await outcome("/apis/batch/v1/jobs"), await outcome("/apis/metrics.k8s.io/v1beta1")]).toEqual([200, 404]);
  });
});

describe("replaced clusters", () => {
  test("a replaced cluster keeps its address and token, gets a new uid and is empty", async () => {
    await applyTo(cluster, `${configMaps}/x`, configMap("x"));
    await host.setFaults("a", { network: "refused" });
    const { uid, ...rest } = await host.replaceCluster("a");
    expect({ ...rest, uid: cluster.uid }).toEqual(cluster);
    expect(uid).not.toBe(cluster.uid);
    await expect.poll(() => outcome(`${configMaps}/x`)).toBe(404);
    expect(valueAt(await readFrom(cluster, "/api/v1/namespaces/kube-system"), "metadata", "uid")).toBe(uid);
    expect(host.faults("a")).toEqual({});
  });
});

test("a cluster from a state file has its own port again", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "clusters-"));
  try {
    const before = await startClusterHost({ stateDir, controllers: "off" });
    before.addCluster("a");
    const connection = await before.openPort("a");
    const port = Number(new URL(before.addCluster("b").server).port);
    await before.stop();
    const after = await startClusterHost({ stateDir, port, controllers: "off" });
    try {
      expect(after.connections()).toContainEqual(connection);
      expect((await clusterRequest(connection, { path: configMaps })).status).toBe(200);
    } finally {
      await after.stop();
    }
  } finally {
    await rm(stateDir, { recursive: true });
  }
});
