import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

/** Codes a caller can act on, and the HTTP status each one has. */
const statusOfCode = {
  BadRequest: 400,
  InvalidContinue: 400,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  ConfirmationRequired: 409,
  InUse: 409,
  IdentityChanged: 409,
  ForeignChanged: 409,
  SourceNotReady: 409,
  Deleting: 409,
  Suspended: 409,
  Conflict: 409,
  NewerRow: 409,
  BodyTooLarge: 413,
  AnswerTooLarge: 422,
  RowTooLarge: 422,
  Invalid: 422,
} as const;
export type RefusalCode = keyof typeof statusOfCode;

/** An answer tells so many problems: who wrote the same thing wrong ten thousand times has seen it by then. */
const reportedProblems = 100;

/** One thing that is wrong with one document of a request, counted from 0. */
export interface DocumentProblem {
  readonly document: number;
  /** `Source payments/app`, as far as it could be read. */
  readonly object?: string;
  readonly field: string;
  readonly message: string;
}

/** The error that ends a request; its code says what can be done about it, and `data` travels to the caller. */
export function refusal(
  code: RefusalCode,
  message: string,
  data: Readonly<Record<string, unknown>> = {},
): StarlingError {
  return new StarlingError(message, { code: otherCode(code), retry: "permanent", data });
}

/** The refusal of documents that are wrong: the first problems, and how many there are. */
export function invalidDocuments(problems: readonly DocumentProblem[], documents: number): StarlingError {
  const reported = problems.slice(0, reportedProblems);
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"} in ${documents} ${documents === 1 ? "document" : "documents"}`;
  const first = reported.length < problems.length ? `, of which the first ${reported.length} are told` : "";
  return refusal("Invalid", `${count}${first}; nothing was applied`, {
    problems: reported,
    problemCount: problems.length,
  });
}

export function refusalStatus(code: string): number | undefined {
  return Object.hasOwn(statusOfCode, code) ? statusOfCode[code as RefusalCode] : undefined;
}
