import { request as sendRequest } from "node:https";
import type { ClusterConnection } from "@starling/embedded-apiserver";
import { type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";

/** The user agent of direct requests of tests. Requests of Starling have another one. */
export const handUserAgent = "e2e-by-hand";

export interface KubeCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the cluster, for example `/api/v1/namespaces/shop/configmaps/web`. */
  readonly path: string;
  readonly body?: unknown;
  /** The content type of a PATCH. The default is `application/merge-patch+json`. */
  readonly contentType?: string;
}

export interface KubeAnswer {
  readonly status: number;
  readonly object: JsonObject;
}

/**
 * Changes a cluster like a person with kubectl, without Starling. @throws Error when the cluster refuses, except for
 * 404.
 */
export async function byHand(connection: ClusterConnection, call: KubeCall): Promise<KubeAnswer> {
  const answer = await exchange(connection, call);
  if (answer.status < 300 || answer.status === 404) return answer;
  throw new Error(`${call.method} ${call.path} answered ${answer.status}: ${stringifyJson(answer.object)}`);
}

function exchange(connection: ClusterConnection, call: KubeCall): Promise<KubeAnswer> {
  const url = new URL(`${connection.server}${call.path}`);
  const body = call.body === undefined ? undefined : stringifyJson(call.body as JsonObject);
  const patch = call.contentType ?? "application/merge-patch+json";
  return new Promise((resolve, reject) => {
    const sent = sendRequest(
      url,
      {
        method: call.method,
        ca: Buffer.from(connection.caData, "base64"),
        agent: false,
        headers: {
          accept: "application/json",
          authorization: `Bearer ${connection.token}`,
          "user-agent": handUserAgent,
          ...(body === undefined ? {} : { "content-type": call.method === "PATCH" ? patch : "application/json" }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: response.statusCode ?? 0, object: parseJson(text) as JsonObject });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
