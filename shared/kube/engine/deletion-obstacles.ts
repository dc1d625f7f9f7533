/** What an object that is to be deleted waits for, or stays for: by what became of those that go before it. */

import { rankOf, ranks } from "#shared/kube/apply-order.ts";
import { type DeletionNote, type DeletionOrder, definedGroup } from "#shared/kube/deletion-order.ts";
import type { PrunedObject } from "#shared/kube/engine/pruned-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

export interface DeletionObstacle {
  readonly outcome: "waiting" | "kept";
  readonly message: string;
  /** Of what is kept: what depends on it and stays. */
  readonly staysFor?: ObjectId;
}

const unsettled: ReadonlySet<PrunedObject["outcome"]> = new Set(["terminating", "waiting", "failed"]);

/** To be told of each object in the order of deletion, and asked of those of the next step. */
export class DeletionObstacles {
  /** What stays for what depends on it: nobody would look for that. */
  readonly notes: DeletionNote[] = [];

  readonly #order: DeletionOrder;
  readonly #definedGroups: ReadonlySet<string>;
  readonly #verdicts = new Map<string, PrunedObject>();
  /** Of what is not gone, by its wave: the first of each. */
  readonly #heldWaves = new Map<number, PrunedObject>();
  #heldResource: PrunedObject | undefined;

  constructor(order: DeletionOrder) {
    this.#order = order;
    const definitions = order.steps.flat().filter((id) => rankOf(id) === ranks.definition);
    this.#definedGroups = new Set(definitions.map(definedGroup));
  }

  note(verdict: PrunedObject): void {
    const { id, outcome, message } = verdict;
    const key = objectIdKey(id);
    this.#verdicts.set(key, verdict);
    const wave = this.#order.waves.get(key);
    const isLeft = unsettled.has(outcome);
    if (isLeft && wave !== undefined && !this.#heldWaves.has(wave)) this.#heldWaves.set(wave, verdict);
    if ((isLeft || outcome === "held") && this.#definedGroups.has(id.group)) this.#heldResource ??= verdict;
    if (verdict.staysFor !== undefined && message !== undefined) this.notes.push({ id, message });
  }

  of(id: ObjectId): DeletionObstacle | undefined {
    const dependents = (this.#order.dependents.get(objectIdKey(id)) ?? []).flatMap(
      (dependent) => this.#verdicts.get(objectIdKey(dependent)) ?? [],
    );
    const left = dependents.find(({ outcome }) => unsettled.has(outcome));
    if (left !== undefined) return waiting(`${describeObject(left.id)} is gone, which depends on it${whyOf(left)}`);
    const obstacle = this.#heldDefined(id) ?? this.#heldWave(id);
    if (obstacle !== undefined) return obstacle;
    const staying = dependents.find(({ outcome }) => outcome === "kept" || outcome === "foreign");
    return staying && staysFor(staying);
  }

  /**
   * Custom resources whose definition goes too are an operator being removed: what finalises them must stay until they
   * are gone.
   */
  #heldDefined({ group }: ObjectId): DeletionObstacle | undefined {
    if (this.#heldResource === undefined || this.#definedGroups.has(group)) return undefined;
    return waiting(`${describeObject(this.#heldResource.id)} is gone`);
  }

  #heldWave(id: ObjectId): DeletionObstacle | undefined {
    const own = this.#order.waves.get(objectIdKey(id));
    if (own === undefined) return undefined;
    for (const [wave, verdict] of this.#heldWaves) {
      if (wave > own) return waiting(`${describeObject(verdict.id)} of wave ${wave} is gone${whyOf(verdict)}`);
    }
    return undefined;
  }
}

function waiting(what: string): DeletionObstacle {
  return { outcome: "waiting", message: `waits until ${what}` };
}

/** What waits itself is told beside it. */
function whyOf({ outcome, message }: PrunedObject): string {
  return outcome === "waiting" || message === undefined ? "" : `: ${message}`;
}

function staysFor({ id, message, staysFor: other }: PrunedObject): DeletionObstacle {
  const why = other !== undefined || message === undefined ? "" : `: ${message}`;
  return {
    outcome: "kept",
    message: `it stays, for ${describeObject(id)} depends on it and stays${why}`,
    staysFor: id,
  };
}
