import { StarlingError } from "#shared/errors.ts";

/** Codes a caller can act on, and the HTTP status each one has. */
const statusOfCode = {
  BadRequest: 400,
  InvalidContinue: 400,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  ConfirmationRequired: 409,
  InUse: 409,
  Deleting: 409,
  Suspended: 409,
  Conflict: 409,
  BodyTooLarge: 413,
  Invalid: 422,
} as const;
export type RefusalCode = keyof typeof statusOfCode;

/** One thing that is wrong with one document of a request, counted from 0. */
export interface DocumentProblem {
  readonly document: number;
  /** `Source payments/app`, as far as it could be read. */
  readonly object?: string;
  readonly field: string;
  readonly message: string;
}

/** The error that ends a request; `data` travels to the caller. */
export function refusal(
  code: RefusalCode,
  message: string,
  data: Readonly<Record<string, unknown>> = {},
): StarlingError {
  return new StarlingError(message, { code, retry: code === "Conflict" ? "transient" : "permanent", data });
}

export function refusalStatus(code: string): number | undefined {
  return Object.hasOwn(statusOfCode, code) ? statusOfCode[code as RefusalCode] : undefined;
}
