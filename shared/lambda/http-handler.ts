import middy from "@middy/core";
import { stringifyJson } from "#shared/base/json.ts";

/** Answer of an HTTP API integration, payload format 2.0. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HttpHandler = (event: unknown, context: object) => Promise<HttpAnswer>;

export interface HttpHandlerOptions {
  readonly work: (event: unknown) => Promise<HttpAnswer>;
  /** What is answered to what `work` threw. */
  readonly answerTo: (error: unknown) => HttpAnswer;
}

/** A Lambda handler for HTTP that always answers. */
export function httpHandler({ work, answerTo }: HttpHandlerOptions): HttpHandler {
  // Middy types its handler by the context that Lambda gives; nothing here reads it.
  return middy(work).use({
    onError: (request) => {
      request.response = answerTo(request.error);
    },
  }) as unknown as HttpHandler;
}

export function jsonAnswer(statusCode: number, body: unknown): HttpAnswer {
  return { statusCode, headers: { "content-type": "application/json" }, body: stringifyJson(body) };
}
