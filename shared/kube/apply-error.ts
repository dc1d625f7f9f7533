/**
 * The meaning of a failed request to an API server for the work. It is a table, because the status code alone does not
 * decide. Observed on kube-apiserver 1.36: schema errors of server-side apply are 500, a quota race is 409, and a
 * terminating namespace is 403.
 */
export type ApplyErrorClass =
  /** Passes by itself within seconds: leader changes, timeouts, races. */
  | "transient"
  /** The server asks for fewer requests. */
  | "throttled"
  /** A webhook or conversion does not answer. This is typical while its Deployment is part of the same Sync. */
  | "dependency"
  /** The cluster cannot be reached, or does not prove its identity. */
  | "unreachable"
  /** The token is not accepted. */
  | "auth"
  /** Not allowed by RBAC, a policy, a quota or an admission webhook. */
  | "forbidden"
  /** The namespace does not exist, or does not exist any more. */
  | "namespace"
  | "notFound"
  /** The server does not know the kind yet, or does not know it any more. */
  | "noMatch"
  /** Two writers wrote at the same time. */
  | "conflict"
  /** A precondition failed: the name belongs to a different object than expected. */
  | "replaced"
  /** A change to a field that cannot be changed. */
  | "immutable"
  /** The manifest is not valid. */
  | "invalid"
  /** Entries of managedFields for another version of the kind make the apply fail. */
  | "migrate"
  /** The request is larger than the server accepts, or the answer is larger than Starling reads. */
  | "tooLarge"
  /** The answer does not come from an API server. */
  | "malformed"
  /** The server does not support this method or media type for this kind. */
  | "unsupported"
  /** A list's continue token or resourceVersion is too old. */
  | "expired"
  /** An unexpected answer. */
  | "unknown";

export interface ApplyErrorVerdict {
  readonly class: ApplyErrorClass;
  /** Whether the same request can succeed later without a new revision. */
  readonly retryable: boolean;
  /** Whether a write may have happened although the server did not confirm it. */
  readonly outcomeUnknown: boolean;
}

export interface ErrorCause {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
}

/** The facts of a failed request. Without a status, the request failed on the network, with `code`. */
export interface ApplyErrorFacts {
  readonly status?: number;
  /** The reason of the Status body, such as `Invalid`. */
  readonly reason?: string;
  readonly message: string;
  readonly causes: readonly ErrorCause[];
  /** A code of Node such as `ECONNRESET`, or why Starling did not read the answer: `AnswerTooLarge`. */
  readonly code?: string;
}

const again = { retryable: true, outcomeUnknown: false } as const;
const never = { retryable: false, outcomeUnknown: false } as const;
const unclear = { retryable: true, outcomeUnknown: true } as const;

const unreachableCodes = new Set([
  "ENOTFOUND",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_CONNECT_TIMEOUT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "HOSTNAME_MISMATCH",
]);

/** The limits are for one answer, for all pages of a list, and for all answers of one check. */
const tooLargeCodes = new Set(["AnswerTooLarge", "ListTooLong", "AnswersTooLarge"]);

const immutableText =
  /field is immutable|is immutable|may not be changed|updates to .* are forbidden|may not change once set|cannot change roleRef|fields? other than/i;
const schemaText = /failed to create typed (patch|live) object|field not declared in schema|duplicate entries for key/;
/** A value that its type cannot hold: bad base64, or a bad quantity or time. */
const undecodable = /unable to convert unstructured object to /;

/** Pairs of a condition and its meaning. The first condition that holds decides. */
const table: readonly (readonly [(facts: ApplyErrorFacts) => boolean, ApplyErrorVerdict])[] = [
  [({ code = "" }) => tooLargeCodes.has(code), { class: "tooLarge", ...never }],
  [({ code = "" }) => code === "AnswerMalformed", { class: "malformed", ...unclear }],
  [({ status, code = "" }) => status === undefined && isUnreachable(code), { class: "unreachable", ...again }],
  [({ status }) => status === undefined, { class: "transient", ...unclear }],
  [({ status }) => status === 401, { class: "auth", ...again }],
  [({ status, causes }) => status === 403 && has(causes, "NamespaceTerminating"), { class: "namespace", ...again }],
  [({ status, message }) => status === 403 && waitsForOthers(message), { class: "forbidden", ...again }],
  [({ status }) => status === 403, { class: "forbidden", ...never }],
  [({ status, message }) => status === 404 && /^namespaces "/.test(message), { class: "namespace", ...again }],
  [({ status, reason }) => status === 404 && reason === undefined, { class: "noMatch", ...again }],
  [({ status, message }) => status === 404 && /could not find the requested resource/.test(message), noMatch()],
  [({ status }) => status === 404, { class: "notFound", ...never }],
  [({ status }) => status === 405 || status === 406 || status === 415, { class: "unsupported", ...never }],
  [
    ({ status, message }) => status === 409 && /precondition|uid mismatch/.test(message),
    { class: "replaced", ...never },
  ],
  [({ status, causes }) => status === 422 && isOfAnotherUid(causes), { class: "replaced", ...never }],
  [({ status }) => status === 409, { class: "conflict", ...again }],
  [({ status }) => status === 410, { class: "expired", ...again }],
  [({ status, message }) => status === 413 || isTooLarge(message), { class: "tooLarge", ...never }],
  [({ status }) => status === 429, { class: "throttled", ...again }],
  [({ message }) => /conversion webhook/.test(message), { class: "dependency", ...again }],
  [({ message }) => undecodable.test(message), { class: "invalid", ...never }],
  [({ message }) => mentionsOtherVersion(message), { class: "migrate", ...again }],
  [({ message }) => schemaText.test(message), { class: "invalid", ...never }],
  [({ status, causes, message }) => status === 422 && isImmutable(causes, message), { class: "immutable", ...never }],
  [({ status }) => status === 422 || status === 400, { class: "invalid", ...never }],
  [({ message }) => /failed calling webhook/.test(message), { class: "dependency", ...again }],
  [({ status = 0 }) => status >= 500, { class: "transient", ...unclear }],
];

/** Decides what a failed request means. The function is pure. */
export function classifyApplyError(facts: ApplyErrorFacts): ApplyErrorVerdict {
  for (const [fits, verdict] of table) if (fits(facts)) return verdict;
  return { class: "unknown", ...never };
}

function noMatch(): ApplyErrorVerdict {
  return { class: "noMatch", ...again };
}

function isUnreachable(code: string): boolean {
  return unreachableCodes.has(code) || code.startsWith("CERT_") || code.startsWith("ERR_SSL_");
}

function has(causes: readonly ErrorCause[], reason: string): boolean {
  return causes.some((cause) => cause.reason === reason);
}

/** Refusals that end when another object of the same set exists. */
function waitsForOthers(message: string): boolean {
  return /service ?account .* not found|exceeded quota|no PriorityClass with name|status unknown for quota/i.test(
    message,
  );
}

function isTooLarge(message: string): boolean {
  return /request is too large|Request entity too large/i.test(message);
}

/** fluxcd/pkg#1131: entries of managedFields tagged with a version that lacks the field. */
function mentionsOtherVersion(message: string): boolean {
  return /failed to (convert|prune) .*managed ?fields|failed to convert new object|request to convert CR/i.test(
    message,
  );
}

/** The request named the object's uid, and an object with another uid has its name. */
function isOfAnotherUid(causes: readonly ErrorCause[]): boolean {
  return causes.some(({ field }) => field === "metadata.uid");
}

/**
 * True only when every cause is about an immutable field. With any other cause a new object would be invalid, too, and
 * deleting the old one would lose it (kustomize-controller#734).
 */
function isImmutable(causes: readonly ErrorCause[], message: string): boolean {
  if (causes.length === 0) return immutableText.test(message);
  return causes.every((cause) => immutableText.test(cause.message));
}
