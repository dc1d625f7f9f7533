import middy from "@middy/core";
import { answerBytes, MAX_ANSWER_BYTES } from "#functions/api/answer-size.ts";
import type { ApiPorts } from "#functions/api/api-ports.ts";
import { readRequest } from "#functions/api/http-event.ts";
import { refusal, refusalStatus } from "#functions/api/refusal.ts";
import { answerRequest } from "#functions/api/routes.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { stringifyJson } from "#shared/base/json.ts";
import type { Log } from "#shared/ports.ts";

/** Answer of an HTTP API integration, payload format 2.0. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type ApiHandler = (event: unknown, context: object) => Promise<HttpAnswer>;

/** The door over any ports. What is thrown becomes an answer `{code, message, ...data}`; only surprises are logged. */
export function apiHandler(ports: ApiPorts): ApiHandler {
  const handle = async (event: unknown): Promise<HttpAnswer> =>
    bounded(answer(200, await answerRequest(ports, readRequest(event))));
  return middy(handle).use({
    onError: (request) => {
      request.response = errorAnswer(request.error, ports.log);
    },
  }) as unknown as ApiHandler;
}

function bounded(given: HttpAnswer): HttpAnswer {
  const bytes = answerBytes(given.body);
  if (bytes <= MAX_ANSWER_BYTES) return given;
  throw refusal("AnswerTooLarge", `the answer has ${bytes} bytes; ask for fewer objects with a smaller limit`);
}

function errorAnswer(error: unknown, log: Log): HttpAnswer {
  const code = errorCode(error);
  const status = refusalStatus(code);
  if (status !== undefined && error instanceof StarlingError) {
    return answer(status, { code, message: error.message, ...error.data });
  }
  const transient = error instanceof StarlingError && error.retry === "transient";
  log.error("request failed", { code, error: errorMessage(error), stack: error instanceof Error ? error.stack : "" });
  if (transient) return answer(503, { code, message: `${errorMessage(error)}; try again` });
  return answer(500, { code: "Internal", message: "an error in Starling; its log has the details" });
}

function answer(statusCode: number, body: unknown): HttpAnswer {
  return { statusCode, headers: { "content-type": "application/json" }, body: stringifyJson(body) };
}
