import type { TransportAnswer } from "#shared/adapters/kube/kube-transport.ts";
import { defined } from "#shared/base/defined.ts";
import { type Json, parseJson } from "#shared/base/json.ts";
import type { ErrorCause } from "#shared/kube/apply-error.ts";
import { KubeError, type KubeRequestSummary } from "#shared/kube/kube-error.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

const warningHeader = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** The texts of the Warning headers, without repetitions. */
export function headerWarnings(answer: TransportAnswer): readonly string[] {
  const { warning } = answer.headers;
  if (warning === undefined) return [];
  const warnings = [...String(warning).matchAll(warningHeader)].map(([, quoted = ""]) =>
    quoted.replaceAll(/\\(.)/g, "$1"),
  );
  return [...new Set(warnings)];
}

/** Converts an answer outside 2xx to an error. */
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
 * Whether the answer to a DELETE says that the object with this uid is gone. An object that waits for a finalizer, a
 * grace period or its contents is answered with the object. Some kinds that are gone are answered in the same way, for example Services (seen
 * on kube-apiserver 1.36.2). Servers of other APIs may answer anything.
 */
export function saysGone(text: string, uid: string): boolean {
  const body = readStatus(text);
  return (
    stringAt(body, "kind") === "Status" &&
    stringAt(body, "status") === "Success" &&
    stringAt(body, "details", "uid") === uid
  );
}

/** A Status, or nothing. Proxies answer with HTML, and the server itself answers unknown paths with plain text. */
function readStatus(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return {};
  }
}
