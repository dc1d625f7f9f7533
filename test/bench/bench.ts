/** The options and the result of every benchmark. */

/** The API server of the clusters: a real one or the embedded one. */
export type TargetName = "kube-apiserver" | "embedded";

export interface BenchOptions {
  readonly target: TargetName;
  /** The number of objects in the set. */
  readonly objects?: number;
  /** The number of counted rounds, after one that does not count. */
  readonly rounds?: number;
  /** The number of changes planted in the objects. */
  readonly changes?: number;
  /** The seed of all random choices. */
  readonly seed?: number;
  /** Fleet sizes, or numbers of idle clusters in one process. */
  readonly clusters?: readonly number[];
  /** Prints progress for people. */
  readonly say: (line: string) => void;
}

/** The figures of one contender or one size. Times are in milliseconds unless the name has another unit. */
export interface Figures {
  readonly [name: string]: string | number | Figures;
}

export interface BenchResult {
  /**
   * The API server of the clusters with its version: `kube-apiserver v1.36.2` or `embedded v1.36.2`; `none` without
   * clusters.
   */
  readonly target: string;
  /** Starling's figure divided by the other contender's in the same run. Below 1 is better. */
  readonly ratios: Readonly<Record<string, number>>;
  /** By contender or size. */
  readonly figures: Readonly<Record<string, Figures>>;
  /** Violated conditions that must hold at any speed. With any of them, the benchmark fails. */
  readonly failures: readonly string[];
}

export type Bench = (options: BenchOptions) => Promise<BenchResult>;
