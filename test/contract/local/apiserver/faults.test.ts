/** The faults of embedded clusters, compared with a real API server that has real webhooks and a real APIService. */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { type ClusterFaults, startClusterHost } from "@starling/embedded-apiserver";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "#local/base/free-port.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { KubeTransport, type TransportRequest } from "#shared/adapters/kube/kube-transport.ts";
import { type Json, type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import { listAt, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { type ClusterFixture, clusterFixture, endpointOf } from "#test/support/cluster-fixture.ts";

type Webhook = NonNullable<ClusterFaults["webhooks"]>[number];

interface FaultyCluster {
  readonly cluster: ClusterFixture;
  /** Replaces all faults with these. */
  setFaults(faults: Pick<ClusterFaults, "webhooks" | "unavailableApis">): Promise<void>;
  stop(): Promise<void>;
}

async function startEmbedded(): Promise<FaultyCluster> {
  const host = await startClusterHost({ controllers: "off" });
  const cluster = clusterFixture({ endpoint: endpointOf(host.addCluster("test")), stop: () => host.stop() });
  return {
    cluster,
    setFaults: (faults) => host.setFaults("test", faults),
    stop: () => cluster.stop(),
  };
}

/** A real server, whose webhooks this process answers. */
async function startReal(assets: KubeAssets): Promise<FaultyCluster> {
  const [server, tls] = await Promise.all([startKubeApiServer({ assets }), createTlsCertificate()]);
  const cluster = clusterFixture({ endpoint: endpointOf(server), stop: server.stop });
  let webhooks: readonly Webhook[] = [];
  const answers = createServer(tls, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const review = parseJson(Buffer.concat(chunks).toString()) as JsonObject;
      const webhook = webhooks.find(({ name }) => request.url?.startsWith(`/${name}`));
      const uid = stringAt(review, "request", "uid") ?? "";
      const body = { ...review, response: { uid, ...(webhook === undefined ? { allowed: true } : verdict(webhook)) } };
      response.writeHead(200, { "content-type": "application/json" }).end(stringifyJson(body));
    });
  });
  await new Promise<void>((resolve) => answers.listen(0, "127.0.0.1", resolve));
  return {
    cluster,
    async setFaults(faults) {
      webhooks = faults.webhooks ?? [];
      await configure(cluster, { webhooks, answers, caBundle: Buffer.from(tls.cert).toString("base64") });
      await announce(cluster, faults.unavailableApis ?? []);
    },
    async stop() {
      answers.close();
      answers.closeAllConnections();
      await cluster.stop();
    },
  };
}

function verdict(webhook: Webhook): JsonObject {
  if (webhook.does === "deny") {
    const { message, code = 403 } = webhook;
    return { allowed: false, status: { message, code, ...(code === 403 ? { reason: "Forbidden" } : {}) } };
  }
  if (webhook.does === "fail") return { allowed: true };
  const patch = Buffer.from(stringifyJson(webhook.patch as Json)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch };
}

const registration = "/apis/admissionregistration.k8s.io/v1";

/** Writes one configuration for each webhook. The server follows them a moment later. */
async function configure(
  cluster: ClusterFixture,
  {
    webhooks,
    answers,
    caBundle,
  }: { readonly webhooks: readonly Webhook[]; readonly answers: Server; readonly caBundle: string },
): Promise<void> {
  const { port } = answers.address() as AddressInfo;
  for (const plural of ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]) {
    await cluster.raw("DELETE", `${registration}/${plural}`);
  }
  for (const webhook of webhooks) {
    const mutates = webhook.does === "rewrite";
    const url = `https://127.0.0.1:${webhook.does === "fail" ? await freePort() : port}/${webhook.name}`;
    await cluster.raw("POST", `${registration}/${mutates ? "mutating" : "validating"}webhookconfigurations`, {
      body: {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: mutates ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration",
        metadata: { name: webhook.name },
        webhooks: [
          {
            name: webhook.name,
            clientConfig: { url, caBundle },
            rules: [
              {
                apiGroups: [""],
                apiVersions: ["v1"],
                resources: ["configmaps"],
                operations: webhook.operations ?? ["CREATE", "UPDATE"],
              },
            ],
            failurePolicy: webhook.does === "fail" ? (webhook.failurePolicy ?? "Fail") : "Fail",
            sideEffects: "None",
            admissionReviewVersions: ["v1"],
            timeoutSeconds: 5,
          },
        ],
      },
    });
  }
}

/** Writes an APIService for each name; its Service does not exist. */
async function announce(cluster: ClusterFixture, names: readonly string[]): Promise<void> {
  const services = "/apis/apiregistration.k8s.io/v1/apiservices";
  for (const item of listAt(await cluster.raw("GET", services), "items")) {
    const name = stringAt(item, "metadata", "name") ?? "";
    if (valueAt(item, "spec", "service") !== undefined) await cluster.raw("DELETE", `${services}/${name}`);
  }
  for (const name of names) {
    const dot = name.indexOf(".");
    const spec = {
      ...{ group: name.slice(dot + 1), version: name.slice(0, dot) },
      ...{ groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true },
      service: { namespace: "default", name: "nowhere" },
    };
    const body = { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name }, spec };
    await cluster.raw("POST", services, { body });
  }
}

const targets: readonly (readonly [string, () => Promise<FaultyCluster>])[] = [
  ["the embedded API server", startEmbedded],
  ...[kubeAssets].flatMap((assets) =>
    assets === undefined ? [] : [["kube-apiserver", () => startReal(assets)] as const],
  ),
];

const configMaps = "/api/v1/namespaces/default/configmaps";
const kinds = ["ConfigMap"];
const forbidden = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason: "Forbidden", code: 403 };
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

describe.each(targets)(
  "faults on %s",
  (_name, start) => {
    let faulty: FaultyCluster;
    let transport: KubeTransport;
    let count = 0;
    beforeAll(async () => {
      faulty = await start();
      transport = new KubeTransport(faulty.cluster.endpoint);
    }, 120_000);
    afterEach(() => faulty.setFaults({}));
    afterAll(async () => {
      transport.close();
      await faulty.stop();
    });

    async function send(method: "GET" | "PATCH" | "DELETE", path: string, sent: Partial<TransportRequest> = {}) {
      const { status, text } = await transport.send({ method, path, timeoutMs: 20_000, maxBodyBytes: 1e8, ...sent });
      return { status, text, body: text.startsWith("{") ? parseJson(text) : undefined };
    }

    /** Applies a new object each time, so that the test tolerates objects from before the server knows the webhook. */
    function apply(data: JsonObject = { k: "1" }, name = `x-${count++}`) {
      const body = stringifyJson({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
      const headers = { "content-type": "application/apply-patch+yaml" };
      return send("PATCH", `${configMaps}/${name}?fieldManager=me&force=true`, { body, headers });
    }

    function eventually<T>(read: () => Promise<T>) {
      return expect.poll(read, { timeout: 20_000, interval: 100 });
    }

    test("the error of a denied request has the name and the message of the webhook", async () => {
      await faulty.setFaults({ webhooks: [{ name: "deny.example.com", kinds, does: "deny", message: "not today" }] });
      const message = 'admission webhook "deny.example.com" denied the request: not today';
      await eventually(async () => (await apply()).body).toEqual({ ...forbidden, message });
    });

    test("a webhook may deny with another code, and without a message", async () => {
      await faulty.setFaults({ webhooks: [{ name: "mute.example.com", kinds, does: "deny", message: "", code: 400 }] });
      const { reason: _, ...status } = forbidden;
      const message = 'admission webhook "mute.example.com" denied the request without explanation';
      await eventually(async () => (await apply()).body).toEqual({ ...status, message, code: 400 });
    });

    test("a webhook that denies deletions also denies the deletion of a collection", async () => {
      await apply({}, "stays");
      const operations = ["DELETE" as const];
      await faulty.setFaults({
        webhooks: [{ name: "keep.example.com", kinds, operations, does: "deny", message: "no" }],
      });
      await eventually(async () => (await send("DELETE", `${configMaps}/stays?dryRun=All`)).status).toBe(403);
      const message = 'admission webhook "keep.example.com" denied the request: no';
      expect((await send("DELETE", `${configMaps}/stays`)).body).toEqual({ ...forbidden, message });
      expect((await send("DELETE", configMaps)).body).toEqual({ ...forbidden, message });
      expect((await send("GET", `${configMaps}/stays`)).status).toBe(200);
    });

    test("a webhook that cannot be called causes an internal error, or is ignored, as its failurePolicy says", async () => {
      await faulty.setFaults({ webhooks: [{ name: "away.example.com", kinds, does: "fail" }] });
      const called =
        /failed calling webhook "away\.example\.com": failed to call webhook: Post "https:.*connection refused$/;
      const message = expect.stringMatching(called);
      await eventually(async () => (await apply()).body).toEqual({
        ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code: 500, reason: "InternalError" },
        message: expect.stringMatching(/^Internal error occurred: failed calling/),
        details: { causes: [{ message }] },
      });
      await faulty.setFaults({
        webhooks: [{ name: "away.example.com", kinds, does: "fail", failurePolicy: "Ignore" }],
      });
      await eventually(async () => (await apply()).status).toBe(201);
    });

    test("the changes of a webhook are stored without a manager, and another apply changes nothing", async () => {
      const patch = [
        { op: "add", path: "/data/injected", value: "yes" },
        { op: "replace", path: "/data/k", value: "theirs" },
      ];
      await faulty.setFaults({ webhooks: [{ name: "inject.example.com", kinds, does: "rewrite", patch }] });
      const data = { k: "theirs", injected: "yes" };
      await eventually(async () => (await apply()).body).toMatchObject({ data });
      const first = (await apply({ k: "1" }, "rewritten")).body;
      expect(valueAt(listAt(first, "metadata", "managedFields")[0], "fieldsV1")).toEqual({ "f:data": { "f:k": {} } });
      expect(listAt(first, "metadata", "managedFields")).toHaveLength(1);
      expect((await apply({ k: "2" }, "rewritten")).body).toEqual(first);
    });

    test("an aggregated API without a server is announced as stale, and answers 503", async () => {
      await faulty.setFaults({ unavailableApis: ["v1beta1.metrics.k8s.io"] });
      const stale = async () =>
        listAt((await send("GET", "/apis", { headers: { accept: aggregated } })).body, "items").filter(
          (item) => stringAt(item, "metadata", "name") === "metrics.k8s.io",
        );
      await eventually(stale).toMatchObject([{ versions: [{ version: "v1beta1", freshness: "Stale" }] }]);
      expect(listAt(listAt((await stale())[0], "versions")[0], "resources")).toEqual([]);
      const version = { groupVersion: "metrics.k8s.io/v1beta1", version: "v1beta1" };
      const group = { name: "metrics.k8s.io", versions: [version], preferredVersion: version };
      await eventually(async () => listAt((await send("GET", "/apis")).body, "groups")).toContainEqual(group);
      expect((await send("GET", "/apis/metrics.k8s.io")).body).toEqual({
        kind: "APIGroup",
        apiVersion: "v1",
        ...group,
      });
      for (const path of ["/apis/metrics.k8s.io/v1beta1", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"]) {
        await eventually(async () => (await send("GET", path)).status).toBe(503);
        expect((await send("GET", path)).text).toBe("service unavailable\n");
      }
      expect((await send("GET", configMaps)).status).toBe(200);
    });
  },
  120_000,
);
