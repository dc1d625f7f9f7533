/** One attempt at one Sync, as the cluster's API server saw it. */
interface Attempt {
  readonly cluster: string;
  readonly name: string;
  readonly first: number;
  last: number;
}

/**
 * The API servers of all clusters, who count what reaches them. A cluster is changing from the first to the last request
 * that writes for one attempt, whatever anybody says of it in rows.
 */
export class ModelServers {
  readonly #attempts = new Map<string, Attempt>();
  /** After how many requests an attempt was assigned. */
  readonly #assigned = new Map<string, number>();
  /** What the group allowed, from which request on. */
  readonly #bounds: { readonly from: number; readonly bound: number }[] = [];
  #requests = 0;

  /** That wrote, so far. */
  get requests(): number {
    return this.#requests;
  }

  /** An attempt may begin: under the bound of now, or a later one. */
  assigned(cluster: string, name: string): void {
    this.#assigned.set(`${cluster} ${name}`, this.#requests);
  }

  /** A request that writes, for an attempt at a Sync. */
  written(cluster: string, name: string): void {
    const at = ++this.#requests;
    const known = this.#attempts.get(`${cluster} ${name}`);
    if (known === undefined) this.#attempts.set(`${cluster} ${name}`, { cluster, name, first: at, last: at });
    else known.last = at;
  }

  /** From now on so many clusters may be changing. */
  allow(bound: number): void {
    if (this.#bounds.at(-1)?.bound !== bound) this.#bounds.push({ from: this.#requests, bound });
  }

  /** Moments at which more clusters were changing than were allowed at any time since the first of them was assigned. */
  excesses(): readonly string[] {
    const found: string[] = [];
    const least = this.#bounds.reduce((low, { bound }) => Math.min(low, bound), this.#bounds[0]?.bound ?? 1);
    let open: Attempt[] = [];
    for (const attempt of [...this.#attempts.values()].sort((a, b) => a.first - b.first)) {
      const { first } = attempt;
      open = [...open.filter(({ last }) => first <= last), attempt];
      if (open.length <= least) continue;
      const clusters = new Set(open.map(({ cluster }) => cluster));
      const since = Math.min(...open.map((attempt) => this.#assignedAt(attempt)));
      const bound = this.#boundSince(since, first);
      if (clusters.size > bound) found.push(`${[...clusters].sort().join(", ")} at request ${first}, and ${bound} may`);
    }
    return found;
  }

  #assignedAt({ cluster, name, first }: Attempt): number {
    return this.#assigned.get(`${cluster} ${name}`) ?? first;
  }

  #boundSince(from: number, to: number): number {
    const within = this.#bounds.filter((entry, index) => {
      const until = this.#bounds[index + 1]?.from ?? Number.MAX_SAFE_INTEGER;
      return entry.from <= to && until >= from;
    });
    return Math.max(1, ...within.map(({ bound }) => bound));
  }
}
