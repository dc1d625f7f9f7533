import middy from "@middy/core";
import { type Beginning, newCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { stringifyJson } from "#shared/base/json.ts";

/** Answer of an HTTP API integration, payload format 2.0. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HttpHandler = (event: unknown, context: object) => Promise<HttpAnswer>;

export interface HttpHandlerOptions {
  /** What a request begins: the answer says the id of what follows from it. */
  readonly begins: Beginning;
  readonly work: (event: unknown) => Promise<HttpAnswer>;
  /** What is answered to what `work` threw. */
  readonly answerTo: (error: unknown) => HttpAnswer;
}

/** Where an answer has it. */
const correlationHeader = "x-correlation-id";

/** A Lambda handler for HTTP that always answers. */
export function httpHandler({ begins, work, answerTo }: HttpHandlerOptions): HttpHandler {
  // Middy types its handler by the context that Lambda gives; nothing here reads it.
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

/** Milliseconds before Lambda ends the invocation, and answers nothing that a caller could read. */
function outOfTime(): never {
  const message = "no answer in the time that a request has; what it asks for may be done, in part or not";
  throw new StarlingError(message, { code: "OutOfTime", retry: "transient" });
}

export function jsonAnswer(statusCode: number, body: unknown): HttpAnswer {
  return { statusCode, headers: { "content-type": "application/json" }, body: stringifyJson(body) };
}
