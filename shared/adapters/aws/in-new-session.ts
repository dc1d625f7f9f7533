/** The SDK leaves it to its caller to ask again in the next session when the one it signed with has ended on the way. */
export async function inNewSession<T>(send: () => Promise<T>, isOver = isExpired): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!isOver(error)) throw error;
    return send();
  }
}

/** `ExpiredToken` of S3 and STS, `ExpiredTokenException` of all others. */
export function isExpired(error: unknown): boolean {
  return error instanceof Error && error.name.startsWith("ExpiredToken");
}
