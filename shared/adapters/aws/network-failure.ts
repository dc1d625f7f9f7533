const codes = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"]);

/** A connection that broke, could not be made, or was silent for too long. The SDK has already retried it. */
export function isNetworkFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return error.name === "TimeoutError" || codes.has(String((error as NodeJS.ErrnoException).code));
}
