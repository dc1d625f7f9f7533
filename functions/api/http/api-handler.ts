import { answerRequest } from "#functions/api/http/routes.ts";
import { answerBytes, maxAnswerBytes } from "#functions/api/request/answer-size.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { HeadedAnswer } from "#functions/api/request/headed-answer.ts";
import { readRequest } from "#functions/api/request/http-event.ts";
import { refusal, refusalStatus } from "#functions/api/request/refusal.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { type HttpAnswer, type HttpHandler, httpHandler, jsonAnswer } from "#shared/lambda/http-handler.ts";
import type { Log } from "#shared/ports.ts";

/** The API over any ports. An error becomes an answer `{code, message, ...data}`; only unexpected errors are logged. */
export function apiHandler(given: ApiPorts): HttpHandler {
  const ports = { ...given, table: tableNow(given.table, given.clock) };
  return httpHandler({
    begins: "api",
    work: async (event) => bounded(answerWith(await answerRequest(ports, readRequest(event)))),
    answerTo: (error) => errorAnswer(error, ports.log),
  });
}

function answerWith(answer: unknown): HttpAnswer {
  if (!(answer instanceof HeadedAnswer)) return jsonAnswer(200, answer);
  const given = jsonAnswer(200, answer.body);
  return { ...given, headers: { ...given.headers, ...answer.headers } };
}

function bounded(given: HttpAnswer): HttpAnswer {
  const bytes = answerBytes(given.body);
  if (bytes <= maxAnswerBytes) return given;
  throw refusal("AnswerTooLarge", `the answer has ${bytes} bytes; ask for fewer objects with a smaller limit`);
}

function errorAnswer(error: unknown, log: Log): HttpAnswer {
  const code = errorCode(error);
  const status = refusalStatus(code);
  if (status !== undefined && error instanceof StarlingError) {
    return jsonAnswer(status, { code, message: error.message, ...error.data });
  }
  const transient = error instanceof StarlingError && error.retry === "transient";
  log.error("request failed", { code, error: errorMessage(error), stack: error instanceof Error ? error.stack : "" });
  if (transient) return jsonAnswer(503, { code, message: `${errorMessage(error)}; try again` });
  return jsonAnswer(500, { code: "Internal", message: "an error in Starling; its log has the details" });
}
