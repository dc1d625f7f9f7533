/**
 * Clusters in their own processes behind one recording proxy. The proxy provides what the embedded host provides
 * itself.
 */

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Agent, createServer, request as sendRequest } from "node:https";
import type { ClusterConnection, Interceptor, RequestRecord } from "@starling/embedded-apiserver";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import type { ClusterTarget, StartedTarget } from "#test/contract/targets.ts";
import type { Fleet, FleetTarget } from "#test/support/fleet.ts";

const partOf = "applyset.kubernetes.io/part-of";
const ours = new Set(["shop", "starling-system"]);

interface Backend {
  readonly started: StartedTarget;
  readonly agent: Agent;
  readonly connection: ClusterConnection;
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

/** A fleet of servers behind the recording proxy. They have no controllers, so workloads never become ready. */
export function proxiedFleet(target: ClusterTarget): FleetTarget {
  return { name: target.name, controllers: "off", start: (clock) => startProxiedFleet(target, clock) };
}

async function startProxiedFleet(target: ClusterTarget, clock: () => number): Promise<Fleet> {
  const tls = await createTlsCertificate();
  const backends = new Map<string, Backend>();
  const listeners = new Set<(record: RequestRecord) => void>();
  let records: RequestRecord[] = [];
  let interceptor: Interceptor | undefined;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, name = "", path = "/", query = ""] = /^\/clusters\/([^/]+)([^?]*)\??(.*)$/.exec(request.url ?? "") ?? [];
    const backend = backends.get(name);
    const method = request.method ?? "GET";
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (backend === undefined) return void response.writeHead(404).end();
    const note = (status: number, result = 0) => {
      const userAgent = request.headers["user-agent"];
      const record: RequestRecord = {
        ...{ cluster: name, at: clock(), method, path, query, status, result },
        ...defined({ userAgent }),
        dryRun: /(^|&)dryRun=All(&|$)/.test(query),
      };
      records.push(record);
      for (const listener of listeners) listener(record);
    };
    const disturbed = async (phase: "before" | "after", result = 0) => {
      const decision = (await interceptor?.({ cluster: name, method, path, phase })) ?? "pass";
      if (decision === "pass") return false;
      note(decision === "reset" ? 0 : decision.status, result);
      if (decision === "reset") response.destroy();
      else response.writeHead(decision.status, decision.headers).end(JSON.stringify(decision.body));
      return true;
    };
    if (await disturbed("before")) return;
    const below = `${path}${query === "" ? "" : `?${query}`}`;
    const answer = await forward(backend, {
      method,
      path: below,
      headers: request.headers,
      body: Buffer.concat(chunks),
    });
    if (await disturbed("after", answer.status)) return;
    note(answer.status, answer.status);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  const server = createServer({ ...tls }, (request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  const listening = await listenOnLoopback(server);

  async function add(name: string): Promise<ClusterConnection> {
    const started = await target.start();
    const { caData = "", credentials } = started.endpoint;
    const connection: ClusterConnection = {
      name,
      server: `${listening.origin}/clusters/${name}`,
      caData: Buffer.from(tls.cert).toString("base64"),
      token: "token" in credentials ? await credentials.token({ refresh: false }) : "",
      uid: await uidOf(started),
    };
    backends.set(name, { started, agent: new Agent({ keepAlive: true, ca: pem(caData) }), connection });
    return connection;
  }

  return {
    controllers: "off",
    add,
    async replace(name) {
      const before = backends.get(name);
      // The new cluster starts before the old one ends, so that it cannot be the same one.
      const connection = await add(name);
      await before?.started.stop();
      return connection;
    },
    connection(name) {
      const backend = backends.get(name);
      if (backend === undefined) throw new Error(`there is no cluster ${name}`);
      return backend.connection;
    },
    connections: () => [...backends.values()].map(({ connection }) => connection),
    objects: (name) => ourObjects(backends.get(name)),
    requests: () => records,
    clearRequests() {
      records = [];
    },
    onRequest(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    intercept(handler) {
      interceptor = handler;
    },
    async stop() {
      await listening.stop();
      for (const { agent } of backends.values()) agent.destroy();
      await Promise.all([...backends.values()].map(({ started }) => started.stop()));
    },
  };
}

interface Forwarded {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

function forward({ started, agent }: Backend, { method, path, headers, body }: Forwarded): Promise<Answer> {
  const { host: _host, connection: _connection, "transfer-encoding": _encoding, ...sent } = headers;
  return new Promise((resolve, reject) => {
    const request = sendRequest(
      new URL(`${started.endpoint.server}${path}`),
      { method, agent, headers: { ...sent, "content-length": body.length } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const { connection: _kept, "transfer-encoding": _chunked, ...answered } = response.headers;
          resolve({ status: response.statusCode ?? 502, headers: answered, body: Buffer.concat(chunks) });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

function pem(caData: string): string {
  return caData.startsWith("-----BEGIN") ? caData : Buffer.from(caData, "base64").toString("utf8");
}

const patienceMs = 60_000;

async function uidOf({ endpoint }: StartedTarget): Promise<string> {
  const connection = new KubeConnection(endpoint);
  try {
    return (await clusterUidOf(connection.client({ deadlineMs: Date.now() + patienceMs }))) ?? "";
  } finally {
    connection.close();
  }
}

/** The objects that Starling may have created. A real server starts with hundreds of objects of its own. */
async function ourObjects(backend: Backend | undefined): Promise<readonly JsonObject[]> {
  if (backend === undefined) return [];
  const connection = new KubeConnection(backend.started.endpoint);
  try {
    const client = connection.client({ deadlineMs: Date.now() + patienceMs });
    const objects: JsonObject[] = [];
    for (const kind of await client.listableKinds()) {
      for (const item of await client.list(kind, {})) {
        const isOurs =
          ours.has(stringAt(item, "metadata", "namespace") ?? "") ||
          (kind.kind === "Namespace" && ours.has(stringAt(item, "metadata", "name") ?? "")) ||
          stringAt(item, "metadata", "labels", partOf) !== undefined;
        if (isOurs) objects.push(item);
      }
    }
    return objects;
  } finally {
    connection.close();
  }
}
