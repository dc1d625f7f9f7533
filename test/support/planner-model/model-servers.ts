import { compareText } from "#shared/base/text-order.ts";

/** One attempt at one Sync, as the cluster's API server saw it. */
interface Attempt {
  readonly cluster: string;
  readonly name: string;
  readonly first: number;
  last: number;
}

interface Bound {
  readonly from: number;
  readonly bound: number;
}

/**
 * The API servers of all clusters, which count their requests. A cluster is changing from the first to the last request
 * that writes for one attempt, whatever the rows say.
 */
export class ModelServers {
  readonly #attempts = new Map<string, Attempt>();
  /** The number of requests before an attempt was assigned, and its stage. */
  readonly #assigned = new Map<string, { readonly at: number; readonly stage: string | undefined }>();
  /** The bounds of each stage, and of the group (""), each with the request from which it holds. */
  readonly #bounds = new Map<string, Bound[]>();
  /** The renderings that were applied, by cluster and Sync, in their order; "" for a deletion. */
  readonly #given = new Map<string, string[]>();
  #requests = 0;

  /** The number of requests that wrote so far. */
  get requests(): number {
    return this.#requests;
  }

  /** An attempt may begin, under the present bounds or later ones. */
  assigned(cluster: string, name: string, stage: string | undefined): void {
    this.#assigned.set(`${cluster} ${name}`, { at: this.#requests, stage });
  }

  /** A request that writes, for an attempt at a Sync. @param what - the rendering; empty for a deletion. */
  written(cluster: string, name: string, what = ""): void {
    const at = ++this.#requests;
    const [sync = ""] = name.split(" ");
    const given = this.#given.get(`${cluster} ${sync}`) ?? [];
    this.#given.set(`${cluster} ${sync}`, given.at(-1) === what ? given : [...given, what]);
    const known = this.#attempts.get(`${cluster} ${name}`);
    if (known === undefined) this.#attempts.set(`${cluster} ${name}`, { cluster, name, first: at, last: at });
    else known.last = at;
  }

  /** The renderings that each Sync got, in their order, without repetitions. */
  given(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.#given].sort(([a], [b]) => compareText(a, b)));
  }

  /** From now on so many clusters may be changing, in a stage or in the whole group. */
  allow(bound: number, stage = ""): void {
    const bounds = this.#bounds.get(stage) ?? [];
    this.#bounds.set(stage, bounds);
    if (bounds.at(-1)?.bound !== bound) bounds.push({ from: this.#requests, bound });
  }

  /** Moments at which more clusters were changing than were allowed at any time since the first of them was assigned. */
  excesses(): readonly string[] {
    return [...this.#bounds].flatMap(([stage, bounds]) => this.#excessesOf(stage, bounds));
  }

  #excessesOf(stage: string, bounds: readonly Bound[]): readonly string[] {
    const found: string[] = [];
    const least = bounds.reduce((low, { bound }) => Math.min(low, bound), bounds[0]?.bound ?? 1);
    let open: Attempt[] = [];
    const all = [...this.#attempts.values()].filter(
      (attempt) => stage === "" || this.#assignedAs(attempt)?.stage === stage,
    );
    for (const attempt of all.sort((a, b) => a.first - b.first)) {
      const { first } = attempt;
      open = [...open.filter(({ last }) => first <= last), attempt];
      if (open.length <= least) continue;
      const clusters = new Set(open.map(({ cluster }) => cluster));
      const since = Math.min(...open.map((attempt) => this.#assignedAs(attempt)?.at ?? attempt.first));
      const bound = boundSince(bounds, since, first);
      const where = stage === "" ? "" : ` in ${stage}`;
      if (clusters.size > bound)
        found.push(`${[...clusters].sort().join(", ")}${where} at request ${first}, and ${bound} may`);
    }
    return found;
  }

  #assignedAs({ cluster, name }: Attempt) {
    return this.#assigned.get(`${cluster} ${name}`);
  }
}

function boundSince(bounds: readonly Bound[], from: number, to: number): number {
  const within = bounds.filter((entry, index) => {
    const until = bounds[index + 1]?.from ?? Number.MAX_SAFE_INTEGER;
    return entry.from <= to && until >= from;
  });
  return Math.max(1, ...within.map(({ bound }) => bound));
}
