/** Values by key, the newest of them, up to a weight in all; what is heavier alone is not kept. */
export class WeightedCache<Value> {
  readonly #kept = new Map<string, { readonly value: Value; readonly weight: number }>();
  readonly #maxWeight: number;
  #weight = 0;

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  get(key: string): Value | undefined {
    return this.#kept.get(key)?.value;
  }

  set(key: string, value: Value, weight: number): void {
    this.#forget(key);
    if (weight > this.#maxWeight) return;
    this.#kept.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#kept.keys()) {
      if (this.#weight <= this.#maxWeight) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#weight -= this.#kept.get(key)?.weight ?? 0;
    this.#kept.delete(key);
  }
}
