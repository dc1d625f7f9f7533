/** What the knobs of embedded clusters imitate, beside a real API server with real webhooks and a real APIService. */
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ClusterFaults, startClusterHost } from "#local/cluster/cluster-host.ts";
import { startKubeApiServer } from "#local/cluster/kube-apiserver.ts";
import { createTlsIdentity } from "#local/cluster/tls-identity.ts";
import { type Json, type JsonObject, parseJson, stringifyJson } from "#shared/domain/json.ts";
import { listAt, stringAt, valueAt } from "#shared/domain/kube-object.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { type ClusterFixture, clusterFixture } from "#test/support/cluster-fixture.ts";

type Webhook = NonNullable<ClusterFaults["webhooks"]>[number];

interface Troubled {
  readonly cluster: ClusterFixture;
  /** Ends all trouble, then begins this one. */
  trouble(faults: Pick<ClusterFaults, "webhooks" | "unavailableApis">): Promise<void>;
  stop(): Promise<void>;
}

async function startEmbedded(): Promise<Troubled> {
  const host = await startClusterHost({ controllers: "off" });
  const { server, caData, token } = host.addCluster("test");
  const cluster = clusterFixture({ server, caData, credentials: { token: async () => token } });
  return {
    cluster,
    trouble: (faults) => host.setFaults("test", faults),
    async stop() {
      cluster.close();
      await host.stop();
    },
  };
}

/** A real server's webhooks are answered by this process. */
async function startReal(assets: NonNullable<typeof kubeAssets>): Promise<Troubled> {
  const [{ server, caData, token, stop }, tls] = await Promise.all([startKubeApiServer({ assets }), createTlsIdentity()]);
  const cluster = clusterFixture({ server, caData, credentials: { token: async () => token } });
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
    async trouble(faults) {
      webhooks = faults.webhooks ?? [];
      await configure(cluster, { webhooks, answers, caBundle: Buffer.from(tls.cert).toString("base64") });
      await announce(cluster, faults.unavailableApis ?? []);
    },
    async stop() {
      cluster.close();
      answers.close();
      answers.closeAllConnections();
      await stop();
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

/** One configuration for each webhook; a marker object that is refused says when the server has seen them. */
async function configure(
  cluster: ClusterFixture,
  { webhooks, answers, caBundle }: { readonly webhooks: readonly Webhook[]; readonly answers: Server; readonly caBundle: string },
): Promise<void> {
  const { port } = answers.address() as AddressInfo;
  for (const plural of ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]) {
    await cluster.raw("DELETE", `${registration}/${plural}`);
  }
  for (const webhook of webhooks) {
    const mutates = webhook.does === "rewrite";
    // Nothing listens on the port for discarded packets.
    const url = `https://127.0.0.1:${webhook.does === "fail" ? 9 : port}/${webhook.name}`;
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

/** An APIService whose Service does not exist. */
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

const targets: readonly (readonly [string, () => Promise<Troubled>])[] = [
  ["the embedded API server", startEmbedded],
  ...(kubeAssets === undefined ? [] : [["kube-apiserver", () => startReal(kubeAssets)] as const]),
];

describe.each(targets)("trouble on %s", (_name, start) => {
  let troubled: Troubled;
  beforeAll(async () => {
    troubled = await start();
  }, 120_000);
  afterAll(() => troubled.stop());

  test("print", async () => {
    const { cluster } = troubled;
    const configMaps = "/api/v1/namespaces/default/configmaps";
    await troubled.trouble({ webhooks: [{ name: "deny.example.com", kinds: ["ConfigMap"], does: "deny", message: "no" }] });
    await new Promise((r) => setTimeout(r, 1500));
    const tp = (method: "POST" | "GET" | "DELETE" | "PATCH", path: string, body?: unknown, as?: "apply-patch", expectStatus?: number) =>
      cluster.raw(method, path, { ...(body ? { body } : {}), ...(as ? { as } : {}), expect: expectStatus ?? 599 }).catch((e) => String(e));
    const cm = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" }, data: { k: "1" } };
    console.log(_name, "deny", await tp("POST", configMaps, cm));
    await troubled.trouble({ webhooks: [{ name: "deny.example.com", kinds: ["ConfigMap"], does: "deny", message: "", code: 400 }] });
    await new Promise((r) => setTimeout(r, 1500));
    console.log(_name, "deny400", await tp("POST", configMaps, cm));
    await troubled.trouble({ webhooks: [{ name: "fail.example.com", kinds: ["ConfigMap"], does: "fail" }] });
    await new Promise((r) => setTimeout(r, 1500));
    console.log(_name, "fail", await tp("POST", configMaps, cm));
    await troubled.trouble({ webhooks: [{ name: "w.example.com", kinds: ["ConfigMap"], does: "rewrite", patch: [{ op: "add", path: "/data/injected", value: "y" }, { op: "replace", path: "/data/k", value: "z" }] }] });
    await new Promise((r) => setTimeout(r, 1500));
    console.log(_name, "rewrite", await tp("PATCH", `${configMaps}/x?fieldManager=me`, cm, "apply-patch"));
    console.log(_name, "rewrite2", await tp("PATCH", `${configMaps}/x?fieldManager=me`, { ...cm, data: { k: "2" } }, "apply-patch"));
    await troubled.trouble({ webhooks: [{ name: "deny.example.com", kinds: ["ConfigMap"], operations: ["DELETE"], does: "deny", message: "no" }] });
    await new Promise((r) => setTimeout(r, 1500));
    console.log(_name, "delete", await tp("DELETE", `${configMaps}/x`));
    console.log(_name, "deletecollection", await tp("DELETE", `${configMaps}`));
    await troubled.trouble({ unavailableApis: ["v1beta1.metrics.k8s.io"] });
    await new Promise((r) => setTimeout(r, 5000));
    for (const path of ["/apis/metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1", "/apis/metrics.k8s.io/v1beta1/pods"]) console.log(_name, path, await tp("GET", path));
    console.log(_name, JSON.stringify(listAt(await cluster.raw("GET", "/apis"), "groups").filter((g) => stringAt(g, "name") === "metrics.k8s.io")));
  }, 120_000);
});
