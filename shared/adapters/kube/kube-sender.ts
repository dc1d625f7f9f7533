import {
  type AnswerBudget,
  type AnswerLimit,
  extentProblem,
  hasLongNumbers,
  heapBytesOf,
  inMebibytes,
  jsonExtent,
} from "#shared/adapters/kube/answer-budget.ts";
import { errorFrom } from "#shared/adapters/kube/kube-answers.ts";
import type { KubeTransport, TransportAnswer } from "#shared/adapters/kube/kube-transport.ts";
import { timeoutCode } from "#shared/adapters/kube/transport-errors.ts";
import type { Clock, SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { type Json, parseMeasuredJson } from "#shared/base/json.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import type { WritePermit } from "#shared/kube/cluster-client.ts";
import { KeptWaiting } from "#shared/kube/kept-waiting.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

export const requestTimeoutMs = 30_000;

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly secret?: boolean;
  readonly limit: AnswerLimit;
  /** Whether the answer is kept in memory; an answer that is released at once needs no reservation. */
  readonly holds?: boolean;
  readonly retryConflicts?: boolean;
}

export interface SenderOptions {
  /** The time on `clock`, in epoch milliseconds, after which no wait or retry begins. */
  readonly deadlineMs: number;
  /** A request that takes longer, with all its tries, ends the work. A worker with more time continues it. */
  readonly answerWithinMs?: number;
  readonly impersonate?: { readonly user: string; readonly groups?: readonly string[] };
  readonly clock: SleepingClock;
  readonly budget: AnswerBudget;
  /** Asked at each try of a request that may write. */
  readonly permit?: WritePermit;
}

/** An answer whose body was read within its limits. */
export interface JsonAnswer extends TransportAnswer {
  readonly body: Json;
}

/** Sends requests with retries, errors and limits of the answers. It does not know kinds. */
export class KubeSender {
  readonly #transport: KubeTransport;
  readonly #options: SenderOptions;
  readonly #patience: Patience;

  constructor(transport: KubeTransport, options: SenderOptions, patience = new Patience(options.clock)) {
    this.#transport = transport;
    this.#options = options;
    this.#patience = patience;
  }

  guardedBy(permit: WritePermit): KubeSender {
    return new KubeSender(this.#transport, { ...this.#options, permit }, this.#patience);
  }

  /** @throws KubeError for any answer outside 2xx, and for one that is too large or not JSON. */
  async read(request: KubeRequest): Promise<JsonAnswer> {
    const answer = await this.send(request);
    return { ...answer, body: this.#parse(request, answer) };
  }

  send(request: KubeRequest): Promise<TransportAnswer> {
    const { deadlineMs, answerWithinMs, clock } = this.#options;
    const { retryConflicts = false } = request;
    const policy = retryPolicy({ deadlineMs, retryConflicts, patience: this.#patience });
    if (answerWithinMs === undefined) return retrying(policy, { clock }, () => this.#sendOnce(request, deadlineMs));
    const untilMs = clock.now().getTime() + answerWithinMs;
    const endsMs = Math.min(untilMs, deadlineMs);
    // If the deadline comes first, the deadline cuts the request off.
    const hasty = untilMs < deadlineMs ? endingAt(untilMs, policy, clock) : policy;
    return retrying(hasty, { clock }, () => this.#sendOnce(request, endsMs));
  }

  /** Releases the memory of a request's answer. */
  release(request: KubeRequest): void {
    this.#options.budget.release(identityOf(request));
  }

  async #sendOnce(request: KubeRequest, endsMs: number): Promise<TransportAnswer> {
    const { impersonate, clock } = this.#options;
    this.#count(request, 0);
    const answer = await this.#transport.send({
      method: request.method,
      path: request.path,
      headers: {
        ...defined({ accept: request.accept }),
        ...(request.contentType === undefined ? {} : { "content-type": request.contentType }),
        ...(impersonate === undefined ? {} : { "impersonate-user": impersonate.user }),
        ...(impersonate?.groups === undefined ? {} : { "impersonate-group": [...impersonate.groups] }),
      },
      ...defined({ body: request.body }),
      secret: request.secret === true,
      timeoutMs: Math.min(requestTimeoutMs, endsMs - clock.now().getTime()),
      maxBodyBytes: request.limit.bytes,
      ...(request.method === "GET" ? {} : { permit: () => this.#permit(request) }),
    });
    this.#count(request, answer.text.length);
    if (answer.status >= 200 && answer.status < 300) {
      this.#patience.renew();
      return answer;
    }
    throw errorFrom(summaryOf(request), answer);
  }

  async #permit(request: KubeRequest): Promise<void> {
    const { permit, deadlineMs, clock } = this.#options;
    await permit?.();
    if (clock.now().getTime() < deadlineMs) return;
    const message = "it was not sent, because its time was up";
    throw new KubeError(summaryOf(request), { code: "ETIMEDOUT", message, causes: [] });
  }

  #count(request: KubeRequest, bytes: number): void {
    const spent = this.#options.budget.read(bytes);
    if (spent !== undefined) throw tooMuch(request, spent);
  }

  #parse(request: KubeRequest, { text, headers }: TransportAnswer): Json {
    const extent = jsonExtent(text);
    const problem = extentProblem(extent);
    if (problem !== undefined) throw malformedAnswer(request, problem);
    const heapBytes = heapBytesOf(text, extent);
    const { limit, holds } = request;
    if (heapBytes > limit.heapBytes) {
      const message = `the answer would take more than ${inMebibytes(limit.heapBytes)} of memory, the limit of one answer; make the object smaller, or check what answers at the cluster's address`;
      throw answerRefusal(request, "AnswerTooLarge", message);
    }
    const spent = holds === true ? this.#options.budget.hold(identityOf(request), heapBytes) : undefined;
    if (spent !== undefined) throw tooMuch(request, spent);
    try {
      return parseMeasuredJson(text, { hasLongNumbers: hasLongNumbers(extent) });
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      const type = String(headers["content-type"] ?? "no content type");
      throw malformedAnswer(request, `it is not JSON (${text.length} bytes, ${type})`);
    }
  }
}

/** The same policy, except that it ends the work instead of waiting beyond the given time. */
function endingAt(untilMs: number, policy: RetryPolicy, clock: SleepingClock): RetryPolicy {
  const endUnlessIn = (waitMs: number, error: unknown) => {
    if (clock.now().getTime() + waitMs >= untilMs) throw new KeptWaiting(error);
  };
  return {
    ...policy,
    tries: (error) => {
      if (error instanceof KubeError && error.verdict.retryable) endUnlessIn(policy.askedWaitMs?.(error) ?? 0, error);
      return policy.tries(error);
    },
  };
}

/** The metadata of an object is a different answer from the whole object. */
function identityOf({ method, path, accept = "" }: KubeRequest): string {
  return `${method} ${path} ${accept}`;
}

/** The answer does not come from an API server, but from a proxy or a broken server. */
export function malformedAnswer(request: Pick<KubeRequest, "method" | "path" | "secret">, problem: string): KubeError {
  const message = `the answer does not come from an API server: ${problem}; check what answers at the cluster's address`;
  return answerRefusal(request, "AnswerMalformed", message);
}

export function answerRefusal(
  request: Pick<KubeRequest, "method" | "path" | "secret">,
  code: "AnswerTooLarge" | "AnswerMalformed" | "AnswersTooLarge" | "ListTooLong",
  message: string,
): KubeError {
  return new KubeError(summaryOf(request), { code, message, causes: [] });
}

function tooMuch(request: KubeRequest, spent: string): KubeError {
  const remedy = "split the Sync, or delete unneeded objects from the cluster";
  return answerRefusal(request, "AnswersTooLarge", `${spent}, the limit of one check; ${remedy}`);
}

function summaryOf({ method, path, secret = false }: Pick<KubeRequest, "method" | "path" | "secret">) {
  return { method, path, secret };
}

/** A waiting worker does nothing for other clusters and costs money. A longer wait is left to another check. */
const patienceMs = 15_000;

/** How often a request is repeated, by the class of the error. Other classes are not retried. */
const maxRetries: Readonly<Record<string, number>> = {
  transient: 4,
  throttled: 10,
  dependency: 3,
};

/**
 * The retry uses another connection, because the first may be dead. Each try with a silent server takes half a minute
 * of the worker's time.
 */
const maxSilentRetries = 1;

const retriesWithConflicts = { ...maxRetries, conflict: 6 };

/** How long one piece of work tolerates a server that keeps asking for fewer requests. */
export class Patience {
  readonly #clock: Clock;
  #askedSinceMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when the server answers. */
  renew(): void {
    this.#askedSinceMs = undefined;
  }

  /** Whether the request may be repeated: the server asks for no wait, or for no longer wait than is left. */
  lastsFor(error: unknown): boolean {
    if (!(error instanceof KubeError)) return true;
    const askedMs = retryAfterMs(error);
    if (error.class !== "throttled" && askedMs === undefined) return true;
    const now = this.#clock.now().getTime();
    this.#askedSinceMs ??= now;
    return now + (askedMs ?? 0) - this.#askedSinceMs <= patienceMs;
  }
}

interface KubeRetries {
  /** The time on the clock, in epoch milliseconds, after which nothing is retried. */
  readonly deadlineMs: number;
  /** Conflicts are retried only for a request without resourceVersion, because the same request can then succeed. */
  readonly retryConflicts: boolean;
  /** Shared by all requests of a piece of work. */
  readonly patience: Patience;
}

/**
 * Repeats a request until it succeeds, fails for good, or the deadline is near. Waits double from 100 ms to 5 s with
 * full jitter. A Retry-After of the server takes precedence, here or in the next check.
 */
export function retryPolicy({ deadlineMs, retryConflicts, patience }: KubeRetries): RetryPolicy {
  const most = retryConflicts ? retriesWithConflicts : maxRetries;
  return {
    tries: (error) => (patience.lastsFor(error) ? 1 + retriesAfter(error, most) : 1),
    firstWaitMs: 100,
    longestWaitMs: 5_000,
    jitter: "full",
    askedWaitMs: retryAfterMs,
    untilMs: deadlineMs,
  };
}

function retriesAfter(error: unknown, most: Readonly<Record<string, number>>): number {
  if (!(error instanceof KubeError) || !error.verdict.retryable) return 0;
  return error.reason === timeoutCode ? maxSilentRetries : (most[error.class] ?? 0);
}

function retryAfterMs(error: unknown): number | undefined {
  if (!(error instanceof KubeError) || error.retryAfterSeconds === undefined) return undefined;
  return error.retryAfterSeconds * 1000;
}
