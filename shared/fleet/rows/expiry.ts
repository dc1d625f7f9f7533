/** What is kept for people is kept for so long. */
const keptSeconds = 30 * 86_400;

/** For a row that nothing refers to: when it goes by itself, as `expiresAt` of the row. */
export function expiryOf(at: Date, afterSeconds = keptSeconds): number {
  return Math.floor(at.getTime() / 1000) + afterSeconds;
}
