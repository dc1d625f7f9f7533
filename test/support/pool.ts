/** Works on everything, so much at once; in order, as far as that goes. */
export async function inPool<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const left = [...items.entries()];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
