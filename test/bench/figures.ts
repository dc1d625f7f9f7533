/** The middle value; the mean of the two in the middle of an even number. @throws RangeError for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined) throw new RangeError("there is no median of no values");
  return (low + high) / 2;
}

/** The median of a[i] / b[i], because two measurements of the same round share its noise. */
export function medianRatio(a: readonly number[], b: readonly number[]): number {
  return rounded(median(a.map((value, index) => value / (b[index] ?? Number.NaN))));
}

/** Rounds to three decimals. */
export function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** The median, the least and the most of some milliseconds. */
export function spread(milliseconds: readonly number[]): {
  readonly ms: number;
  readonly min: number;
  readonly max: number;
} {
  return {
    ms: Math.round(median(milliseconds)),
    min: Math.round(Math.min(...milliseconds)),
    max: Math.round(Math.max(...milliseconds)),
  };
}
