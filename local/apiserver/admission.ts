/** Calls to admission webhooks, as kube-apiserver makes them. A cluster's faults state what each webhook answers. */
import type { Webhook } from "#apiserver/faults.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import type { Kind } from "#apiserver/kinds/kind.ts";
import { jsonPatch } from "#apiserver/operations/patches.ts";
import { badRequest, StatusError } from "#apiserver/status-error.ts";

export interface AdmissionRequest {
  readonly webhooks: readonly Webhook[];
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly kind: Kind;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  /** Empty for the object itself. A webhook here never matches a subresource, because its rules cannot name one. */
  readonly subresource: string;
  readonly dryRun: boolean;
}

/**
 * Applies the rewriting webhooks, in their order, before the server defaults and validates an object. @throws
 * StatusError 400.
 */
export function rewriteByWebhooks(request: AdmissionRequest, object: JsonObject): JsonObject {
  let rewritten = object;
  for (const webhook of request.webhooks) {
    if (webhook.does !== "rewrite" || !isMet(webhook, request)) continue;
    refuseDryRun(webhook, request);
    const patched = jsonPatch(rewritten, webhook.patch);
    if (isJsonObject(patched)) rewritten = patched;
  }
  return rewritten;
}

/**
 * Calls the deciding webhooks once an object is valid. @throws StatusError of the first webhook that denies or fails.
 */
export function askWebhooks(request: AdmissionRequest): void {
  for (const webhook of request.webhooks) {
    if (webhook.does === "rewrite" || !isMet(webhook, request)) continue;
    refuseDryRun(webhook, request);
    if (webhook.does === "deny") throw denial(webhook);
    if (webhook.failurePolicy !== "Ignore") throw failedCall(webhook);
  }
}

function isMet(webhook: Webhook, { operation, kind, namespace, subresource }: AdmissionRequest): boolean {
  // The server never sends webhook configurations to webhooks: a broken webhook could otherwise block its own repair.
  if (subresource !== "" || kind.group === "admissionregistration.k8s.io") return false;
  const { operations = ["CREATE", "UPDATE"], kinds, namespaces } = webhook;
  const name = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  return (
    operations.includes(operation) &&
    (kinds === undefined || kinds.includes(name)) &&
    (namespaces === undefined || namespaces.includes(namespace))
  );
}

/** As NewDryRunUnsupportedErr of admission/plugin/webhook/errors. */
function refuseDryRun({ name, sideEffects }: Webhook, { dryRun }: AdmissionRequest): void {
  if (dryRun && sideEffects === "Some") {
    throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
  }
}

/** As ToStatusErr of admission/plugin/webhook/errors: the webhook's code and reason, and its message after its name. */
function denial({ name, message, code = 403 }: Extract<Webhook, { does: "deny" }>): StatusError {
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  return new StatusError(code, message === "" ? `${denied} without explanation` : `${denied}: ${message}`, {
    ...(code === 403 ? { reason: "Forbidden" } : {}),
  });
}

const refused =
  'Post "https://webhook.default.svc:443/?timeout=10s": dial tcp 10.96.0.20:443: connect: connection refused';

/** As ErrCallingWebhook inside an InternalError. */
function failedCall({ name, error = refused }: Extract<Webhook, { does: "fail" }>): StatusError {
  const message = `failed calling webhook ${JSON.stringify(name)}: failed to call webhook: ${error}`;
  return new StatusError(500, `Internal error occurred: ${message}`, {
    reason: "InternalError",
    details: { causes: [{ message }] },
  });
}
