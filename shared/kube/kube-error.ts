import { foreignText } from "#shared/base/foreign-text.ts";
import {
  type ApplyErrorClass,
  type ApplyErrorFacts,
  type ApplyErrorVerdict,
  classifyApplyError,
  type ErrorCause,
} from "#shared/kube/apply-error.ts";
import { serverWords } from "#shared/kube/server-words.ts";

export interface KubeRequestSummary {
  readonly method: string;
  readonly path: string;
  /** True when the object of the request is a Secret: nothing the server said about it is repeated. */
  readonly secret: boolean;
}

const maxMessageLength = 800;
const maxPathLength = 200;
const maxReasonLength = 100;
const maxFieldLength = 200;
const maxCauses = 10;
/** Of a message, for telling what it means: expressions over megabytes take hours. */
const maxReadLength = 8_192;

/** Codes of answers that came and were not taken. */
const answerCodes: ReadonlySet<string> = new Set([
  "AnswerTooLarge",
  "AnswerMalformed",
  "AnswersTooLarge",
  "ListTooLong",
]);

/**
 * A request to a cluster that did not succeed. The message is one bounded line without bodies or headers and may be
 * shown to people; for Secrets it holds nothing the server said, because decoders and webhooks quote values.
 */
export class KubeError extends Error {
  override readonly name = "KubeError";
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The reason of the Status body (`Invalid`), the code of the network error (`ECONNRESET`), else one for the status. */
  readonly reason: string;
  readonly causes: readonly ErrorCause[];
  readonly verdict: ApplyErrorVerdict;
  /** What the server asked us to wait, in seconds. */
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

/** Answers without a Status: of proxies, of priority and fairness, of the aggregator. Named as client-go names them. */
const statusReasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Servers answer 500 where an apply cannot read the object, as with two entries of one key: that is the object's fault. */
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
    return shown(`the server refused the Secret: ${reason}${where}; its words are withheld, they may quote values`);
  }
  return shown(serverWords(facts.message) ?? `${asked} answered ${facts.status}`);
}

/** RBAC refusals and misses name objects and users, never values. */
function safeForSecrets({ status, message }: ApplyErrorFacts): boolean {
  return status === 401 || status === 404 || (status === 403 && / cannot [a-z]+ resource /.test(message));
}

function withoutMessage(cause: ErrorCause): ErrorCause {
  return { ...cause, message: "" };
}

/** A server may say anything, of any size; no part of it is kept beyond what is of use. */
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
