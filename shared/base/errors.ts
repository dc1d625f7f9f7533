import type { ErrorCode, OtherCode } from "#shared/base/error-codes.ts";
import { ownWords } from "#shared/base/own-words.ts";

/**
 * The one error class that crosses layers: a stable `code`, structured `data`, and whether trying again can help.
 *
 * `retry`: `transient` - the same call may succeed later (throttles, networks, conflicts); `permanent` - only a change of
 * input helps. The message says what, what was got, what was expected and what to do; it never holds a secret.
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

/** A conditional write met a row that somebody else had written: read again and decide again. */
export class ConflictError extends StarlingError {
  constructor(message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message, { code: "Conflict", retry: "transient", data });
    this.name = "ConflictError";
  }
}

export function isConflict(error: unknown): error is ConflictError {
  return error instanceof ConflictError;
}

/** A row would be larger than the table takes: the same write can never succeed. */
export function isRowTooLarge(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "RowTooLarge";
}

/** A newer version of Starling wrote a row that is needed: nothing can be done before the stack is updated. */
export function isNewerRow(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "NewerRow";
}

/** A step of the planner changed nothing: the same step would follow for ever. */
export function isStuck(error: unknown): error is StarlingError {
  return error instanceof StarlingError && error.code === "NoProgress";
}

/** A blob that is gone, or that has other bytes than were stored. What may not be read is not lost. */
function isBlobLost(error: unknown): error is StarlingError {
  return error instanceof StarlingError && (error.code === "BlobNotFound" || error.code === "BlobCorrupt");
}

/** What came of it or, where that needs a blob that is lost, what `otherwise` says. */
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

/** Whether the blob that is read or renewed is there. */
export async function isThere(work: Promise<unknown>): Promise<boolean> {
  return unlessLost(
    work.then(() => true),
    () => false,
  );
}

/** In our own words, where a library's or the system's would be all there is. */
export function errorMessage(error: unknown): string {
  if (error instanceof StarlingError) return error.message;
  return ownWords(error) ?? rawMessage(error);
}

/** As it was thrown. */
export function rawMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function errorCode(error: unknown): ErrorCode | OtherCode {
  return error instanceof StarlingError ? error.code : "Internal";
}
