/**
 * Runs `work` over the items, at most `limit` at once, in order. The first error stops new starts. It is thrown only
 * after everything that was begun has ended, because the caller may then release what the others still use.
 */
export async function runConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const failures: unknown[] = [];
  async function lane(): Promise<void> {
    while (failures.length === 0) {
      const item = items[next];
      if (item === undefined || next >= items.length) return;
      next += 1;
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
}
