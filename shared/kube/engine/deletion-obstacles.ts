/**
 * Decides what a deletion waits for, or why an object stays, from the results of the objects that are deleted before
 * it.
 */

import { rankOf, ranks } from "#shared/kube/apply-order.ts";
import { type DeletionNote, type DeletionOrder, definedGroup } from "#shared/kube/deletion-order.ts";
import type { PrunedObject } from "#shared/kube/engine/pruned-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

export interface DeletionObstacle {
  readonly outcome: "waiting" | "kept";
  readonly message: string;
  /** For a kept object: the object that depends on it and stays. */
  readonly staysFor?: ObjectId;
}

const unsettled: ReadonlySet<PrunedObject["outcome"]> = new Set(["terminating", "waiting", "failed"]);

/** Callers pass every result in the order of deletion before they ask about the next step. */
export class DeletionObstacles {
  /** Objects that stay because of their dependents. Without the note, nobody would find the reason. */
  readonly notes: DeletionNote[] = [];

  readonly #order: DeletionOrder;
  readonly #definedGroups: ReadonlySet<string>;
  readonly #verdicts = new Map<string, PrunedObject>();
  /** By wave, the first object that is not deleted yet. */
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
    if (left !== undefined) return waiting(`${describeObject(left.id)}, which depends on it, is deleted${whyOf(left)}`);
    const obstacle = this.#heldDefined(id) ?? this.#heldWave(id);
    if (obstacle !== undefined) return obstacle;
    const staying = dependents.find(({ outcome }) => outcome === "kept" || outcome === "foreign");
    return staying && staysFor(staying);
  }

  /**
   * When custom resources and their definition are deleted together, an operator is being removed. The objects that
   * finalise the custom resources must stay until these are gone.
   */
  #heldDefined({ group }: ObjectId): DeletionObstacle | undefined {
    if (this.#heldResource === undefined || this.#definedGroups.has(group)) return undefined;
    return waiting(`${describeObject(this.#heldResource.id)} is deleted`);
  }

  #heldWave(id: ObjectId): DeletionObstacle | undefined {
    const own = this.#order.waves.get(objectIdKey(id));
    if (own === undefined) return undefined;
    for (const [wave, verdict] of this.#heldWaves) {
      if (wave > own) return waiting(`${describeObject(verdict.id)} of wave ${wave} is deleted${whyOf(verdict)}`);
    }
    return undefined;
  }
}

function waiting(what: string): DeletionObstacle {
  return { outcome: "waiting", message: `waits until ${what}` };
}

/** An object that waits itself reports its own reason separately. */
function whyOf({ outcome, message }: PrunedObject): string {
  return outcome === "waiting" || message === undefined ? "" : `: ${message}`;
}

function staysFor({ id, message, staysFor: other }: PrunedObject): DeletionObstacle {
  const why = other !== undefined || message === undefined ? "" : `: ${message}`;
  return {
    outcome: "kept",
    message: `it stays, because ${describeObject(id)} depends on it and stays${why}`,
    staysFor: id,
  };
}
