/** Repeats a call whose session ended during the call. The SDK leaves this to the caller. */
export async function inNewSession<T>(send: () => Promise<T>, isOver = isExpired): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!isOver(error)) throw error;
    return send();
  }
}

/** `ExpiredToken` from S3 and STS, `ExpiredTokenException` from all others. */
export function isExpired(error: unknown): boolean {
  return error instanceof Error && error.name.startsWith("ExpiredToken");
}
