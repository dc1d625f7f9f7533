/** What every benchmark takes and gives. */

/** Which API server stands for the clusters: a real one, or the one that comes with Starling. */
export type TargetName = "kube-apiserver" | "embedded";

export interface BenchOptions {
  readonly target: TargetName;
  /** Objects of the set that is applied or looked at. */
  readonly objects?: number;
  /** Counted rounds, after one that is not. */
  readonly rounds?: number;
  /** Changes planted among the objects. */
  readonly changes?: number;
  /** Of everything that is chosen at random. */
  readonly seed?: number;
  /** Fleet sizes, or idle clusters in one process. */
  readonly clusters?: readonly number[];
  /** Progress for people. */
  readonly say: (line: string) => void;
}

/** Figures of one contender or one size. Times are milliseconds unless the name says otherwise. */
export interface Figures {
  readonly [name: string]: string | number | Figures;
}

export interface BenchResult {
  /** What stood for the clusters, with its version: `kube-apiserver v1.36.2`, `embedded v1.36.2`; `none` without any. */
  readonly target: string;
  /** Ours divided by the other's, side by side in this run: below 1 is better than the other. */
  readonly ratios: Readonly<Record<string, number>>;
  /** By contender or size. */
  readonly figures: Readonly<Record<string, Figures>>;
  /** What has to hold whatever the speed, and did not: the benchmark fails. */
  readonly failures: readonly string[];
}

export type Bench = (options: BenchOptions) => Promise<BenchResult>;
