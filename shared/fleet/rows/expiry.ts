/** How long rows are kept that only people read. */
export const keptSeconds = 30 * 86_400;

/** `expiresAt` of a row that nothing refers to: when DynamoDB may delete it, in seconds since 1970. */
export function expiryOf(at: Date, afterSeconds = keptSeconds): number {
  return Math.floor(at.getTime() / 1000) + afterSeconds;
}
