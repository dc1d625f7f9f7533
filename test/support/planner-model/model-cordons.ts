/** The cordons as people have said them, by the name of the cluster; with an end, or until an uncordon. */
export type Cordoned = ReadonlyMap<string, { readonly until: string | undefined }>;

export class ModelCordons {
  #cordoned: Cordoned = new Map();

  set(cluster: string, until: string | undefined): void {
    this.#cordoned = new Map([...this.#cordoned, [cluster, { until }]]);
  }

  drop(cluster: string): void {
    this.#cordoned = new Map([...this.#cordoned].filter(([name]) => name !== cluster));
  }

  names(): readonly string[] {
    return [...this.#cordoned.keys()];
  }

  /** The cordons as they are now. */
  now(): Cordoned {
    return this.#cordoned;
  }
}

export function isCordonedAt(cordoned: Cordoned, cluster: string, at: Date): boolean {
  const cordon = cordoned.get(cluster);
  return cordon !== undefined && (cordon.until === undefined || cordon.until > at.toISOString());
}
