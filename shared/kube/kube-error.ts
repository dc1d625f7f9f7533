import { foreignText } from "#shared/base/foreign-text.ts";
import {
  type ApplyErrorClass,
  type ApplyErrorFacts,
  type ApplyErrorVerdict,
  classifyApplyError,
  type ErrorCause,
} from "#shared/kube/apply-error.ts";

export interface KubeRequestSummary {
  readonly method: string;
  readonly path: string;
  /** True when the object of the request is a Secret. Then no text of the server is repeated. */
  readonly secret: boolean;
}

const maxMessageLength = 800;

const maxPathLength = 200;

const maxReasonLength = 100;

const maxFieldLength = 200;

const maxCauses = 10;

/** The part of a message that is classified. Regular expressions over megabytes would take hours. */
const maxReadLength = 8_192;

/** Codes of answers that arrived and that Starling did not accept. */
const answerCodes: ReadonlySet<string> = new Set([
  "AnswerTooLarge",
  "AnswerMalformed",
  "AnswersTooLarge",
  "ListTooLong",
]);

/**
 * A failed request to a cluster. The message is one bounded line without bodies or headers, and may be shown to users.
 * For a Secret it contains no text of the server, because decoders and webhooks quote values.
 */
export class KubeError extends Error {
  override readonly name = "KubeError";
  /** HTTP status; undefined when the server did not answer. */
  readonly status: number | undefined;
  /**
   * The reason of the Status body (`Invalid`), otherwise the code of the network error (`ECONNRESET`), otherwise a
   * reason for the status.
   */
  readonly reason: string;
  readonly causes: readonly ErrorCause[];
  readonly verdict: ApplyErrorVerdict;
  /** How long the server asked Starling to wait, in seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    request: KubeRequestSummary,
    given: ApplyErrorFacts,
    options: { readonly retryAfterSeconds?: number; readonly cause?: unknown } = {},
  ) {
    const facts = bounded(given);
    const verdict = classifyApplyError(facts);
    const reason = statedReason(facts, verdict);
    super(describe(request, facts, reason), options.cause === undefined ? undefined : { cause: options.cause });
    this.status = facts.status;
    this.reason = reason;
    this.causes = request.secret ? facts.causes.map(withoutMessage) : facts.causes;
    this.verdict = verdict;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get class(): ApplyErrorClass {
    return this.verdict.class;
  }
}

/**
 * For answers without a Status, from proxies, priority and fairness, or the aggregator. The names are those of
 * client-go.
 */
const statusReasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/**
 * Servers answer 500 when an apply cannot read the object, for example because of two entries with one key. That is a
 * fault of the object.
 */
function statedReason(facts: ApplyErrorFacts, verdict: ApplyErrorVerdict): string {
  if (verdict.class === "invalid" && facts.status === 500) return "Invalid";
  return facts.reason || facts.code || reasonOf(facts.status);
}

function reasonOf(status: number | undefined): string {
  if (status === undefined) return "NoAnswer";
  return statusReasons[status] ?? `Http${status}`;
}

function describe(request: KubeRequestSummary, facts: ApplyErrorFacts, reason: string): string {
  const asked = `${request.method} ${foreignText(request.path, maxPathLength)}`;
  if (answerCodes.has(facts.code ?? "")) return shown(`${asked}: ${facts.message}`);
  if (facts.status === undefined) {
    const why = facts.message || reason;
    return shown(`${asked} was not answered: ${why}${why.includes(reason) ? "" : ` (${reason})`}`);
  }
  if (request.secret && !safeForSecrets(facts)) {
    const fields = facts.causes.map((cause) => `${cause.field}: ${cause.reason}`);
    const where = fields.length > 0 ? ` (${fields.join("; ")})` : "";
    return shown(
      `the server refused the Secret: ${reason}${where}; its message is withheld because it may contain values`,
    );
  }
  return shown(serverWords(facts.message) ?? `${asked} answered ${facts.status}`);
}

/** Refusals by RBAC and missing objects name objects and users, never values. */
function safeForSecrets({ status, message }: ApplyErrorFacts): boolean {
  return status === 401 || status === 404 || (status === 403 && / cannot [a-z]+ resource /.test(message));
}

function withoutMessage(cause: ErrorCause): ErrorCause {
  return { ...cause, message: "" };
}

/** A server can send any text of any size. Only the useful part is kept. */
function bounded(facts: ApplyErrorFacts): ApplyErrorFacts {
  return {
    ...facts,
    ...(facts.reason === undefined ? {} : { reason: foreignText(facts.reason, maxReasonLength) }),
    message: facts.message.slice(0, maxReadLength),
    causes: facts.causes.slice(0, maxCauses).map((cause) => ({
      reason: foreignText(cause.reason, maxReasonLength),
      field: foreignText(cause.field, maxFieldLength),
      message: foreignText(cause.message, maxMessageLength),
    })),
  };
}

function shown(text: string): string {
  return foreignText(text, maxMessageLength);
}

/** Pairs of an unclear message of kube-apiserver 1.36 and its explanation. */
const known: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [
    /^Operation cannot be fulfilled on .*the object has been modified/,
    () => "another writer changed the object at the same time; Starling reads it and tries again",
  ],
  [
    /^Apply failed with \d+ conflicts?: conflicts? with "([^"]+)"/,
    ([, manager = ""]) => `${manager} owns fields of the object and keeps them`,
  ],
  [
    /^namespaces "([^"]+)" not found$/,
    ([, name = ""]) =>
      `Namespace ${name} does not exist; add it to the manifests, or set createNamespace in the template`,
  ],
  [/^etcdserver: /, () => "the cluster's store (etcd) has a problem; Starling tries again"],
  [/^the server could not find the requested resource$/, () => "the cluster does not serve the kind in this version"],
  [
    /failed calling webhook "([^"]+)"/,
    ([, name = ""]) => `the webhook ${name} does not answer; check that its Pods run`,
  ],
  [
    /conversion webhook for ([^,]+?)(?: failed|,)/,
    ([, kind = ""]) => `the conversion webhook of ${kind} does not answer; check that its Pods run`,
  ],
];

/** The message after its explanation. @returns undefined for an empty message; other messages unchanged. */
function serverWords(message: string): string | undefined {
  if (message === "") return undefined;
  for (const [form, words] of known) {
    const found = form.exec(message);
    if (found !== null) return `${words(found)} (${message})`;
  }
  return message;
}
