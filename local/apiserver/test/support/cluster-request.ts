import { Agent, type RequestOptions, request as sendRequest } from "node:https";
import type { ClusterConnection } from "#apiserver/cluster-host.ts";
import { isJsonObject, type JsonObject, parseJson, stringifyJson } from "#apiserver/json.ts";

export interface ClusterRequest {
  readonly method?: string;
  /** The path below the cluster, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent unchanged. */
  readonly body?: unknown;
  /** The default is the cluster's token. With null, the request has no token. */
  readonly token?: string | null;
}

export interface ClusterAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

type ClusterAddress = Pick<ClusterConnection, "server" | "caData" | "token">;

const agent = new Agent({ keepAlive: true });

/** Sends one request to a cluster; every status is an answer. @throws Error when the connection is lost. */
export function clusterRequest(connection: ClusterAddress, call: ClusterRequest): Promise<ClusterAnswer> {
  const text = call.body === undefined || typeof call.body === "string" ? call.body : stringifyJson(call.body);
  const token = call.token === undefined ? connection.token : call.token;
  const options: RequestOptions = {
    method: call.method ?? "GET",
    agent,
    ca: Buffer.from(connection.caData, "base64"),
    headers: {
      accept: "application/json",
      // For a DELETE with a body, Node sets no content-length itself.
      ...(text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...call.headers,
    },
  };
  return new Promise((resolve, reject) => {
    const sent = sendRequest(`${connection.server}${call.path}`, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const { statusCode = 0, headers } = response;
        resolve({ status: statusCode, headers, text: Buffer.concat(chunks).toString() });
      });
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

/** The object in an answer. @throws Error when the answer is not an object. */
export function objectOf(answer: ClusterAnswer): JsonObject {
  const parsed = parseJson(answer.text);
  if (isJsonObject(parsed)) return parsed;
  throw new Error(`expected an object, got ${answer.text.slice(0, 200)}`);
}

/** Applies an object as a manager and returns the stored object. @throws Error when the server refuses it. */
export async function applyTo(connection: ClusterAddress, path: string, object: JsonObject): Promise<JsonObject> {
  const answer = await clusterRequest(connection, {
    method: "PATCH",
    path: `${path}?fieldManager=test&force=true`,
    headers: { "content-type": "application/apply-patch+yaml" },
    body: object,
  });
  if (answer.status < 300) return objectOf(answer);
  throw new Error(`apply of ${path} answered ${answer.status}: ${answer.text}`);
}

/** The object at a path, if it exists. */
export async function readFrom(connection: ClusterAddress, path: string): Promise<JsonObject | undefined> {
  const answer = await clusterRequest(connection, { path });
  return answer.status === 404 ? undefined : objectOf(answer);
}
