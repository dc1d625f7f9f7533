import type { ClusterConnection } from "@starling/embedded-apiserver";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { type KubeEndpoint, KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import { type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";

export function inSeconds(seconds: number): Date {
  return new Date(Date.now() + seconds * 1000);
}

export interface RawRequest {
  readonly body?: unknown;
  /** `json`, `merge-patch`, `json-patch` or `apply-patch`. The default is JSON. */
  readonly as?: "merge-patch" | "json-patch" | "apply-patch";
  readonly expect?: number;
}

/** One cluster for a test, with Starling's client and with direct requests. */
export interface ClusterFixture {
  readonly client: ClusterClient;
  readonly endpoint: KubeEndpoint;
  /** Sends a request without Starling. It must succeed or answer with the status in `expect`. */
  raw(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, request?: RawRequest): Promise<JsonObject>;
  /** The status of a GET. */
  statusOf(path: string): Promise<number>;
  stop(): Promise<void>;
}

export interface FixtureTarget {
  readonly endpoint: KubeEndpoint;
  stop?(): Promise<void>;
}

/** The address of a started API server, with a token. */
export function endpointOf({ server, caData, token }: Pick<ClusterConnection, "server" | "caData" | "token">) {
  return { server, caData, credentials: { token: async () => token } } satisfies KubeEndpoint;
}

/** @param target.stop - left out if the test does not own the cluster. */
export function clusterFixture({ endpoint, stop }: FixtureTarget): ClusterFixture {
  const connection = new KubeConnection(endpoint);
  const transport = new KubeTransport(endpoint);
  async function send(method: Parameters<ClusterFixture["raw"]>[0], path: string, { body, as }: RawRequest = {}) {
    const type = as === undefined ? "application/json" : `application/${as}+${as === "apply-patch" ? "yaml" : "json"}`;
    return transport.send({
      method,
      path,
      timeoutMs: 20_000,
      maxBodyBytes: 1e8,
      ...(body === undefined ? {} : { body: stringifyJson(body), headers: { "content-type": type } }),
    });
  }
  return {
    client: connection.client({ deadlineMs: Date.now() + 600_000 }),
    endpoint,
    raw: async (method, path, request = {}) => {
      const answer = await send(method, path, request);
      const good = request.expect === undefined ? answer.status < 300 : answer.status === request.expect;
      if (!good) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text.slice(0, 500)}`);
      return parseJson(answer.text) as JsonObject;
    },
    statusOf: async (path) => (await send("GET", path)).status,
    async stop() {
      connection.close();
      transport.close();
      await stop?.();
    },
  };
}

/** A claim of its own for each test, so that tests can share a cluster. */
export function claimFor(name: string, rest: Partial<SyncClaim> = {}): SyncClaim {
  const attempt = rest.attempt ?? 1;
  return {
    installationId: "installation-1",
    syncNamespace: "tests",
    syncName: name,
    syncUid: `uid-of-${name}`,
    attempt: 1,
    fence: 1,
    renderDigest: "sha256:1",
    revision: "main@sha1:1",
    token: `token-${attempt}`,
    knownTokens: Array.from({ length: attempt - 1 }, (_, earlier) => `token-${earlier + 1}`),
    mayBeNew: true,
    ...rest,
  };
}

/** A manifest from plain data. */
export function manifest(object: JsonObject): ManifestObject {
  return object as ManifestObject;
}

export function namespace(name: string): ManifestObject {
  return manifest({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
}

export function configMap(at: string, data: JsonObject = { k: "1" }): ManifestObject {
  const [inNamespace = "", name = ""] = at.split("/");
  return manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: inNamespace }, data });
}

export function deployment(at: string, env: readonly JsonObject[] = []): ManifestObject {
  const [inNamespace = "", name = ""] = at.split("/");
  const labels = { app: name };
  return manifest({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: inNamespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1", env }] } },
    },
  });
}

export function definition(group: string, scope: "Namespaced" | "Cluster" = "Namespaced"): ManifestObject {
  const schema = {
    type: "object",
    properties: {
      spec: { type: "object", properties: { size: { type: "string" }, extra: { type: "string" } } },
      status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  };
  return manifest({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope,
      names: { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" },
      versions: [
        { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { status: {} } },
      ],
    },
  });
}

export function widget(group: string, at: string, spec: JsonObject = { size: "s" }): ManifestObject {
  const [inNamespace = "", name = ""] = at.split("/");
  return manifest({ apiVersion: `${group}/v1`, kind: "Widget", metadata: { name, namespace: inNamespace }, spec });
}
