import type { GuardedPrune, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { judgePrune } from "#shared/fleet/sync/prune-guard.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** Objects that clusters have lost. */
export interface Prune {
  readonly row: SyncRow;
  readonly count: number;
  /** Number of objects that the Sync had before. */
  readonly members: number;
  /** The hash by which people approve exactly these objects. */
  readonly hash: string;
}

const names = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** The objects of all clusters: each rendering has some of a few, so that most renderings drop some of the one before. */
export class ModelObjects {
  readonly #held = new Map<string, ReadonlySet<string>>();
  readonly #pruned: (prune: Prune) => void;

  constructor(pruned: (prune: Prune) => void) {
    this.#pruned = pruned;
  }

  /** Applies a rendering whole, unless its prune is withheld. @param life - of the cluster. */
  apply(life: string, row: SyncRow): GuardedPrune | undefined {
    const key = `${life} ${row.name}`;
    const desired = objectsOf(row.desired.renderDigest ?? "");
    const held = new Set([...(this.#held.get(key) ?? []), ...desired]);
    this.#held.set(key, held);
    const gone = [...held].filter((name) => !desired.has(name));
    const before = row.observed?.applied && objectsOf(row.observed.applied.renderDigest);
    const stay = [...desired].filter((name) => before?.has(name) ?? true).length;
    const doomed = { doomed: gone.map(idOf), members: gone.length + stay };
    const withheld = judgePrune(row, doomed);
    if (withheld !== undefined) return withheld;
    const { hash = "" } = judgePrune({ ...row, desired: { ...row.desired, ...none } }, doomed) ?? {};
    this.#held.set(key, desired);
    if (gone.length > 0) this.#pruned({ row, count: gone.length, members: doomed.members, hash });
    return undefined;
  }

  delete(life: string, { name }: SyncRow): void {
    this.#held.delete(`${life} ${name}`);
  }
}

/** Nothing may be pruned. */
const none = { objectBounds: [0], mayPrune: [] };

function objectsOf(renderDigest: string): ReadonlySet<string> {
  const bits = Number.parseInt(renderDigest.slice(-2), 16);
  // One object is in every rendering.
  return new Set(names.filter((_, place) => place === 0 || (bits & (1 << place)) !== 0));
}

function idOf(name: string): ObjectId {
  return { group: "", kind: "ConfigMap", namespace: "web", name };
}
