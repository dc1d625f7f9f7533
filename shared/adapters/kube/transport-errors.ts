/** Errors of requests without an answer, or with an answer that Starling does not accept. */

import { errorMessage } from "#shared/base/errors.ts";
import { KubeError, type KubeRequestSummary } from "#shared/kube/kube-error.ts";

export const timeoutCode = "ETIMEDOUT";
const answerTooLarge = "AnswerTooLarge";
const check = "check what answers at the cluster's address";
const remedy = `make the object smaller, or ${check}`;

export class NoAnswer extends Error {
  readonly code = timeoutCode;

  constructor(timeoutMs: number) {
    super(`no answer within ${Math.round(timeoutMs)} ms`);
  }
}

export class ConnectTimeout extends Error {
  readonly code = "ERR_CONNECT_TIMEOUT";

  constructor(timeoutMs: number) {
    super(`no connection within ${timeoutMs} ms`);
  }
}

export class BodyInPieces extends Error {
  readonly code = answerTooLarge;

  constructor(maxPieces: number) {
    super(`the answer came in more than ${maxPieces} pieces; ${check}`);
  }
}

export class BodyTooLarge extends Error {
  readonly code = answerTooLarge;

  constructor(maxBodyBytes: number) {
    super(`the answer is larger than ${maxBodyBytes / 1024 / 1024} MiB, the limit of one answer; ${remedy}`);
  }
}

export class ProtocolSwitched extends Error {
  readonly code = "AnswerMalformed";

  constructor(protocol: string) {
    super(`the server switched to another protocol (${protocol}) without a request; ${check}`);
  }
}

export class ConnectionClosed extends Error {
  readonly code = "ECONNRESET";

  constructor() {
    super("the connection was closed without an answer");
  }
}

/** @param summary.secret - whether answers may contain values of a Secret. */
export function networkError(summary: KubeRequestSummary, cause: unknown): KubeError {
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "EUNKNOWN";
  return new KubeError(summary, { message: errorMessage(cause), causes: [], code }, { cause });
}
