import middy from "@middy/core";
import { type Beginning, newCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { stringifyJson } from "#shared/base/json.ts";

/** The answer of an HTTP API integration, payload format 2.0. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HttpHandler = (event: unknown, context: object) => Promise<HttpAnswer>;

export interface HttpHandlerOptions {
  /** The kind of start. The answer contains the correlation id. */
  readonly begins: Beginning;
  readonly work: (event: unknown) => Promise<HttpAnswer>;
  /** Converts an error of `work` to an answer. */
  readonly answerTo: (error: unknown) => HttpAnswer;
}

/** The answer's header with the correlation id. */
const correlationHeader = "x-correlation-id";

/** A Lambda handler for HTTP that always answers. */
export function httpHandler({ begins, work, answerTo }: HttpHandlerOptions): HttpHandler {
  // Middy types its handler with Lambda's context, which nothing here reads.
  const answered = middy(work, { timeoutEarlyResponse: outOfTime }).use({
    onError: (request) => {
      request.response = answerTo(request.error);
    },
  }) as unknown as HttpHandler;
  return async (event, context) => {
    const id = newCorrelation(begins, systemClock.now());
    const answer = await underCorrelation(id, () => answered(event, context));
    return { ...answer, headers: { ...answer.headers, [correlationHeader]: id } };
  };
}

/** Called milliseconds before Lambda ends the invocation without a readable answer. */
function outOfTime(): never {
  const message = "the request took too long; it may be done, partly done or not done";
  throw new StarlingError(message, { code: "OutOfTime", retry: "transient" });
}

export function jsonAnswer(statusCode: number, body: unknown): HttpAnswer {
  return { statusCode, headers: { "content-type": "application/json" }, body: stringifyJson(body) };
}
