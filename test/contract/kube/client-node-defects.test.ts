import { KubeConfig, KubernetesObjectApi, PatchStrategy } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";
import { aggregatedDiscovery, plainDiscovery } from "#test/support/discovery-documents.ts";
import { type RecordingServer, startRecordingServer } from "#test/support/recording-server.ts";

/**
 * The reasons for Starling's own client. Each test shows a defect of the object API of @kubernetes/client-node (2.0.1)
 * that Starling's client does not have. If a test fails because the defect is gone, check whether that client suffices.
 */

let server: RecordingServer;
let ours: ClusterClient;
let connection: KubeConnection;
let theirs: KubernetesObjectApi;

beforeAll(async () => {
  server = await startRecordingServer((request) => {
    const path = request.url.split("?")[0] ?? "";
    const isDiscovery = request.method === "GET";
    if (!isDiscovery) return { status: 200, body: request.body };
    const aggregated = String(request.headers.accept).includes("APIGroupDiscoveryList");
    if (aggregated && (path === "/api" || path === "/apis")) return { body: aggregatedDiscovery(path) };
    return { body: plainDiscovery(path) };
  });
  connection = new KubeConnection({
    server: server.url,
    caData: server.caData,
    credentials: { token: async () => "t" },
  });
  ours = connection.client({ deadlineMs: Date.now() + 60_000 });
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: "c", server: server.url, caData: server.caData }],
    users: [{ name: "u", token: "t" }],
    contexts: [{ name: "x", cluster: "c", user: "u" }],
    currentContext: "x",
  });
  theirs = KubernetesObjectApi.makeApiClient(config);
});

afterAll(async () => {
  connection.close();
  await server.stop();
});

async function sentByOurs(object: ManifestObject) {
  const found = await ours.lookup({ group: groupOf(object.apiVersion), kind: object.kind });
  if (found.outcome !== "found") throw new Error("not found");
  await ours.apply(found.info, object);
  return lastSent();
}

async function sentByTheirs(object: ManifestObject) {
  const spec = object as unknown as Parameters<KubernetesObjectApi["patch"]>[0];
  await theirs.patch(spec, undefined, undefined, "starling", true, PatchStrategy.ServerSideApply);
  return lastSent();
}

function lastSent() {
  const request = server.requests.at(-1);
  if (request === undefined) throw new Error("nothing was sent");
  return {
    path: request.url.split("?")[0] ?? "",
    body: JSON.parse(request.body) as Record<string, never>,
    text: request.body,
  };
}

const configMap = (rest: Record<string, unknown> = {}) =>
  ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a", namespace: "n" },
    ...rest,
  }) as unknown as ManifestObject;

describe("the object API of @kubernetes/client-node, unlike Starling's client,", () => {
  test("drops fields of built-in kinds that its models do not know", async () => {
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "n", newMetaField: 1 },
      spec: { brandNewField: true, template: { spec: { containers: [{ name: "c", futureField: "x" }] } } },
    } as unknown as ManifestObject;
    expect((await sentByTheirs(deployment)).text).not.toMatch(/brandNewField|futureField|newMetaField/);
    expect((await sentByOurs(deployment)).body).toEqual(deployment);
  });

  test("drops x-kubernetes-* and other keywords of definitions", async () => {
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "widgets.example.com" },
      spec: {
        group: "example.com",
        names: { kind: "Widget", plural: "widgets" },
        scope: "Namespaced",
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: "object",
                "x-kubernetes-preserve-unknown-fields": true,
                properties: { size: { type: "string", enum: ["s", "m"], default: "s" } },
              },
            },
          },
        ],
      },
    } as unknown as ManifestObject;
    expect((await sentByTheirs(definition)).text).not.toContain("x-kubernetes-preserve-unknown-fields");
    expect((await sentByOurs(definition)).body).toEqual(definition);
  });

  test("lower-cases names", async () => {
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "system:Reader+x" },
    } as unknown as ManifestObject;
    expect((await sentByTheirs(role)).path).toBe("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3areader%2bx");
    expect((await sentByOurs(role)).path).toBe("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3AReader%2Bx");
  });

  test("writes the namespace `default` into the object that it is given", async () => {
    const given = configMap({ metadata: { name: "a" } });
    await sentByTheirs(given);
    expect(given.metadata.namespace).toBe("default");

    const ourGiven = configMap({ metadata: { name: "a" } });
    await sentByOurs(ourGiven);
    expect(ourGiven).toEqual(configMap({ metadata: { name: "a" } }));
  });

  test("opens a connection for every request", async () => {
    const before = server.connections();
    for (let n = 0; n < 5; n += 1) await sentByTheirs(configMap());
    expect(server.connections() - before).toBeGreaterThanOrEqual(5);

    await sentByOurs(configMap());
    const between = server.connections();
    for (let n = 0; n < 5; n += 1) await sentByOurs(configMap());
    expect(server.connections() - between).toBe(0);
  });

  test("turns times into Dates, which lose microseconds", async () => {
    const time = "2026-05-01T12:00:00.123456Z";
    const lease = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", namespace: "n", creationTimestamp: time },
    } as unknown as ManifestObject;
    const spec = lease as unknown as Parameters<KubernetesObjectApi["patch"]>[0];
    const answer = await theirs.patch(spec, undefined, undefined, "starling", true, PatchStrategy.ServerSideApply);
    expect(answer.metadata?.creationTimestamp).toBeInstanceOf(Date);
    expect(JSON.stringify(answer)).not.toContain(time);

    const found = await ours.lookup({ group: "", kind: "ConfigMap" });
    if (found.outcome !== "found") throw new Error("not found");
    expect(JSON.stringify((await ours.apply(found.info, lease)).object)).toContain(time);
  });

  test("loses the digits of integers beyond 2^53", async () => {
    const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"n":9007199254740993}';
    const big = { ...configMap(), n: 9007199254740993n } as unknown as ManifestObject;
    expect(JSON.stringify(JSON.parse(text))).not.toContain("9007199254740993");
    expect((await sentByOurs(big)).text).toContain("9007199254740993");
  });
});
