/** Whether the day exists with which a time begins. JavaScript takes the 30th of February for a day of March. @param time - such as `2026-11-22T18:00:00Z`. */
export function isRealDay(time: string): boolean {
  const day = time.slice(0, "2026-11-22".length);
  const read = Date.parse(day);
  return !Number.isNaN(read) && new Date(read).toISOString().startsWith(day);
}
