/** Runs both in turns; which is first changes with each round. */
export async function inTurns<A, B>(
  rounds: number,
  ours: () => Promise<A>,
  theirs: () => Promise<B>,
): Promise<{ readonly ours: readonly A[]; readonly theirs: readonly B[] }> {
  const [of, by]: [A[], B[]] = [[], []];
  // The first round warms caches up, and is not counted.
  for (let round = 0; round <= rounds; round++) {
    const [first, second] = round % 2 === 0 ? [true, false] : [false, true];
    for (const isOurs of [first, second]) {
      const result = await (isOurs ? ours() : theirs());
      if (round === 0) continue;
      if (isOurs) of.push(result as A);
      else by.push(result as B);
    }
  }
  return { ours: of, theirs: by };
}
