/** Runs `work` over the items, at most `limit` at once, in order of start. The first rejection stops new starts. */
export async function runConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let stopped = false;
  async function lane(): Promise<void> {
    while (!stopped) {
      const item = items[next];
      if (item === undefined || next >= items.length) return;
      next += 1;
      try {
        await work(item);
      } catch (error) {
        stopped = true;
        throw error;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
}
