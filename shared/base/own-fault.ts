import { dataRoleCodes } from "#shared/base/error-codes.ts";

/**
 * Node's codes for a resource that is exhausted: file descriptors of the process or the machine, buffers, memory,
 * threads.
 */
const codes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN", ...dataRoleCodes]);

/**
 * Whether the process lacked a resource or the credentials for its own rows, so that the request was never sent. Such an
 * error says nothing about the other side.
 */
export function isOwnFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && codes.has(String(error.code))) || isOwnFault(error.cause);
}
