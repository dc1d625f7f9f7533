import {
  type ApplyErrorClass,
  type ApplyErrorFacts,
  type ApplyErrorVerdict,
  classifyApplyError,
  type ErrorCause,
} from "#shared/domain/apply-error.ts";

export interface KubeRequestSummary {
  readonly method: string;
  readonly path: string;
  /** True when the object of the request is a Secret: nothing the server said about it is repeated. */
  readonly secret: boolean;
}

const maxMessageLength = 800;
const maxCauses = 10;

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
    facts: ApplyErrorFacts,
    options: { readonly retryAfterSeconds?: number; readonly cause?: unknown } = {},
  ) {
    const reason = facts.reason ?? facts.code ?? reasonOf(facts.status);
    super(describe(request, facts, reason), options.cause === undefined ? undefined : { cause: options.cause });
    this.status = facts.status;
    this.reason = reason;
    this.causes = request.secret ? facts.causes.map(withoutMessage) : facts.causes.slice(0, maxCauses);
    this.verdict = classifyApplyError(facts);
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

function reasonOf(status: number | undefined): string {
  if (status === undefined) return "NoAnswer";
  return statusReasons[status] ?? `Http${status}`;
}

function describe(request: KubeRequestSummary, facts: ApplyErrorFacts, reason: string): string {
  if (facts.status === undefined) {
    return bounded(`${request.method} ${request.path} was not answered: ${facts.message || reason} (${reason})`);
  }
  if (request.secret && !safeForSecrets(facts)) {
    const fields = facts.causes.map((cause) => `${cause.field}: ${cause.reason}`).slice(0, maxCauses);
    const where = fields.length > 0 ? ` (${fields.join("; ")})` : "";
    return bounded(`the server refused the Secret: ${reason}${where}; its words are withheld, they may quote values`);
  }
  return bounded(facts.message || `${request.method} ${request.path} answered ${facts.status}`);
}

/** RBAC refusals and misses name objects and users, never values. */
function safeForSecrets({ status, message }: ApplyErrorFacts): boolean {
  return status === 401 || status === 404 || (status === 403 && / cannot [a-z]+ resource /.test(message));
}

function withoutMessage(cause: ErrorCause): ErrorCause {
  return { ...cause, message: "" };
}

function bounded(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxMessageLength ? `${line.slice(0, maxMessageLength - 1)}…` : line;
}
