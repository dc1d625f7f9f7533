import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

/** Codes that a caller can act on, each with its HTTP status. */
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
  NotHeld: 409,
  NotStalled: 409,
  NotFailed: 409,
  NotATarget: 409,
  NotGated: 409,
  StageRunChanged: 409,
  RolloutRejected: 409,
  GuardChanged: 409,
  NothingToRollBack: 409,
  Conflict: 409,
  NewerRow: 409,
  BodyTooLarge: 413,
  AnswerTooLarge: 422,
  RowTooLarge: 422,
  Invalid: 422,
} as const;
export type RefusalCode = keyof typeof statusOfCode;

/** Number of problems in an answer; an author of ten thousand equal mistakes has seen enough by then. */
const reportedProblems = 100;

/** A problem of one document of a request; documents are counted from 0. */
export interface DocumentProblem {
  readonly document: number;
  /** `Source payments/app`, as far as it can be read. */
  readonly object?: string;
  readonly field: string;
  readonly message: string;
}

/** The error that ends a request. Its code tells what can be done about it, and `data` is sent to the caller. */
export function refusal(
  code: RefusalCode,
  message: string,
  data: Readonly<Record<string, unknown>> = {},
): StarlingError {
  return new StarlingError(message, { code: otherCode(code), retry: "permanent", data });
}

/** The refusal of wrong documents: the first problems, and their number. */
export function invalidDocuments(problems: readonly DocumentProblem[], documents: number): StarlingError {
  const reported = problems.slice(0, reportedProblems);
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"} in ${documents} ${documents === 1 ? "document" : "documents"}`;
  const first = reported.length < problems.length ? ` (the first ${reported.length} are listed)` : "";
  return refusal("Invalid", `${count}${first}; nothing was applied`, {
    problems: reported,
    problemCount: problems.length,
  });
}

export function refusalStatus(code: string): number | undefined {
  return Object.hasOwn(statusOfCode, code) ? statusOfCode[code as RefusalCode] : undefined;
}
