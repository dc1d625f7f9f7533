import type { ErrorCode, OtherCode } from "#shared/base/error-codes.ts";
import { ownWords } from "#shared/base/own-words.ts";

/**
 * The one error class that crosses layers, with a stable `code`, structured `data`, and whether a retry can help.
 *
 * `retry`: `transient` means that the same call may succeed later (throttles, networks, conflicts). `permanent` means
 * that only different input helps. The message says what is wrong, the actual value, the expected value and what to do.
 * It never contains a secret.
 */
export type RetryClass = "transient" | "permanent";

export interface StarlingErrorOptions {
  readonly code: ErrorCode | OtherCode;
  readonly retry: RetryClass;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

export class StarlingError extends Error {
  readonly code: ErrorCode | OtherCode;
  readonly retry: RetryClass;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(message: string, options: StarlingErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "StarlingError";
    this.code = options.code;
    this.retry = options.retry;
    this.data = options.data ?? {};
  }
}

/** A conditional write found a row that someone else had changed. Read it again and decide again. */
export class ConflictError extends StarlingError {
  constructor(message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message, { code: "Conflict", retry: "transient", data });
    this.name = "ConflictError";
  }
}

export function isConflict(error: unknown): error is ConflictError {
  return error instanceof ConflictError;
}

/** A row would be larger than the table allows. The same write can never succeed. */
export function isRowTooLarge(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "RowTooLarge";
}

/** A needed row was written by a newer version of Starling. Nothing can be done before the stack is updated. */
export function isNewerRow(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "NewerRow";
}

/** A step of the planner changed nothing, so that the same step would repeat forever. */
export function isStuck(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "NoProgress";
}

/** Whether a blob is missing, or has different bytes than were stored. An unreadable blob is not lost. */
function isBlobLost(error: unknown): error is StarlingError {
  return error instanceof StarlingError && (error.code === "BlobNotFound" || error.code === "BlobCorrupt");
}

/** The result, or the result of `otherwise` when a needed blob is lost. */
export async function unlessLost<T, Other>(
  work: Promise<T>,
  otherwise: (lost: StarlingError) => Other | Promise<Other>,
): Promise<T | Other> {
  try {
    return await work;
  } catch (error) {
    if (!isBlobLost(error)) throw error;
    return otherwise(error);
  }
}

/** Whether the blob that is read or renewed exists. */
export async function isThere(work: Promise<unknown>): Promise<boolean> {
  return unlessLost(
    work.then(() => true),
    () => false,
  );
}

/** The message in Starling's words, instead of a library's or the system's. */
export function errorMessage(error: unknown): string {
  if (error instanceof StarlingError) return error.message;
  return ownWords(error) ?? rawMessage(error);
}

/** The original message. */
export function rawMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function errorCode(error: unknown): ErrorCode | OtherCode {
  return error instanceof StarlingError ? error.code : "Internal";
}
