const codes = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"]);

/** A connection that broke, or was never made, or was silent for too long; the SDK has tried it again by itself before. */
export function isNetworkFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return error.name === "TimeoutError" || codes.has(String((error as NodeJS.ErrnoException).code));
}
