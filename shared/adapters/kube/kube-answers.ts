import type { TransportAnswer } from "#shared/adapters/kube/kube-transport.ts";
import { defined } from "#shared/base/defined.ts";
import { type Json, parseJson } from "#shared/base/json.ts";
import type { ErrorCause } from "#shared/kube/apply-error.ts";
import { KubeError, type KubeRequestSummary } from "#shared/kube/kube-error.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

const warningHeader = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** The texts of the Warning headers, each once. */
export function headerWarnings(answer: TransportAnswer): readonly string[] {
  const { warning } = answer.headers;
  if (warning === undefined) return [];
  const warnings = [...String(warning).matchAll(warningHeader)].map(([, quoted = ""]) =>
    quoted.replaceAll(/\\(.)/g, "$1"),
  );
  return [...new Set(warnings)];
}

/** The error that an answer outside 2xx stands for. */
export function errorFrom(summary: KubeRequestSummary, answer: TransportAnswer): KubeError {
  const body = readStatus(answer.text);
  const reason = stringAt(body, "reason");
  const retryAfter = Number(answer.headers["retry-after"]);
  return new KubeError(
    summary,
    {
      status: answer.status,
      message: stringAt(body, "message") ?? "",
      causes: listAt(body, "details", "causes").map(readCause),
      ...defined({ reason }),
    },
    Number.isFinite(retryAfter) && retryAfter > 0 ? { retryAfterSeconds: retryAfter } : {},
  );
}

function readCause(cause: Json): ErrorCause {
  return {
    reason: stringAt(cause, "reason") ?? "",
    field: stringAt(cause, "field") ?? "",
    message: stringAt(cause, "message") ?? "",
  };
}

/**
 * Whether the answer to a DELETE says that the object with this uid is gone. What waits for a finalizer, for a grace period
 * or for its contents is answered with the object, and so are some kinds that are gone, Services among them (seen on
 * kube-apiserver 1.36.2); servers of other APIs may answer anything.
 */
export function saysGone(text: string, uid: string): boolean {
  const body = readStatus(text);
  return (
    stringAt(body, "kind") === "Status" &&
    stringAt(body, "status") === "Success" &&
    stringAt(body, "details", "uid") === uid
  );
}

/** A Status, or nothing: proxies answer with HTML, and the server itself with plain text for unknown paths. */
function readStatus(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return {};
  }
}
