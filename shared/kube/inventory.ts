import * as z from "zod";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson, type Json, parseJson } from "#shared/base/json.ts";
import { compareForApply } from "#shared/kube/apply-order.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { type ApplyEvent, applyEvents } from "#shared/kube/order-marks.ts";

/**
 * What Starling knows of one object it applied, from the answer of that apply: enough to tell from metadata alone that
 * nothing has changed, and to prove at deletion that the object is the one that was applied.
 */
export interface InventoryEntry {
  readonly id: ObjectId;
  /** The API version it was applied in; no part of the identity. */
  readonly version: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** 0 for kinds without one. */
  readonly generation: number;
  /** When the server made it; absent of what was recorded before this was noted. */
  readonly createdAt?: string;
  /** Digest of the fields Starling owns. */
  readonly ownedHash: string;
  /** Digest of the values at these fields, lists in live order. */
  readonly valuesHash: string;
  /**
   * Digest of the manifest, kept only for Jobs that remove themselves when finished (ttlSecondsAfterFinished): one that
   * is gone is not created again until its manifest changes.
   */
  readonly expiring?: string;
  /** Of such a Job, how many seconds after its end it removes itself; absent of what was recorded before this was noted. */
  readonly ttlSeconds?: number;
  /** Such a Job was seen complete: that it is gone says nothing more. */
  readonly complete?: true;
  /**
   * What is looked after of an object that is not applied as others are: that it is there, or nothing. Neither is compared,
   * nor is its health a matter of its Sync. See `apply-marks.ts`.
   */
  readonly watched?: "presence" | "nothing";
  /**
   * Set id of a sibling that desires the object and has not taken it over yet: it is not pruned before that. It is
   * neither compared nor awaited (`watched` is `nothing`).
   */
  readonly heldFor?: string;
  /** Of a hook: the run that it was made in, see `hook-run.ts`. It is run and not kept: neither compared nor awaited. */
  readonly hook?: string;
  /** The last correction of its drift, until a look finds it as it was applied. */
  readonly undone?: {
    /** So often the same was put back, and undone before the next look. */
    readonly rounds: number;
    /** So often it was put back since a look last found it as it was applied, whatever was undone. */
    readonly inAll: number;
    /** What it had come to: digests of the fields that were left to Starling and of their values, or `missing`. */
    readonly state: string;
    readonly by: string;
    readonly fields: string;
  };
}

/** How far an attempt got that needs more than one run. */
export interface Progress {
  readonly attempt: number;
  /** Absent of a deletion. */
  readonly renderDigest?: string;
  /** `objectIdKey` of what was applied and needs no other run. */
  readonly applied: readonly string[];
  /** `objectIdKey` of what was never recorded, looked for, and settled. */
  readonly settled: readonly string[];
  /** So many of its steps were ready, and are not looked at again. */
  readonly passed?: number;
  /** `objectIdKey` of hooks that failed. */
  readonly failed?: readonly string[];
  /** Why it fails, once what is to be done then is done. */
  readonly failure?: { readonly reason: string; readonly message: string };
}

/** What became of the hooks of a rendering: none that succeeded is run again for it, whatever the attempt. */
export interface HookRecord {
  readonly renderDigest: string;
  /** What the apply is to the cluster, for as long as it lasts; what comes after a first install is an upgrade. */
  readonly event: ApplyEvent;
  /** `objectIdKey` of those that have. */
  readonly succeeded: readonly string[];
}

export interface Inventory {
  readonly schema: 1;
  readonly setId: string;
  readonly entries: readonly InventoryEntry[];
  /**
   * Generation of the definition of each custom kind among the entries, by the definition's name: the one by which all of the
   * kind were applied, or compared. Absent where that is not known of all.
   */
  readonly definitions: Readonly<Record<string, number>>;
  /** Only while the time of a run was up before its end. */
  readonly progress?: Progress;
  /** Absent where nothing that was applied had hooks. */
  readonly hooks?: HookRecord;
}

const entrySchema = z.strictObject({
  id: z.strictObject({ group: z.string(), kind: z.string(), namespace: z.string(), name: z.string() }),
  version: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number().int(),
  createdAt: z.string().exactOptional(),
  ownedHash: z.string(),
  valuesHash: z.string(),
  expiring: z.string().exactOptional(),
  ttlSeconds: z.number().exactOptional(),
  complete: z.literal(true).exactOptional(),
  watched: z.enum(["presence", "nothing"]).exactOptional(),
  heldFor: z.string().exactOptional(),
  hook: z.string().exactOptional(),
  undone: z
    .strictObject({
      rounds: z.number().int(),
      inAll: z.number().int(),
      state: z.string(),
      by: z.string(),
      fields: z.string(),
    })
    .exactOptional(),
});

const inventorySchema = z.strictObject({
  schema: z.literal(1),
  setId: z.string(),
  entries: z.array(entrySchema),
  definitions: z.record(z.string(), z.number().int()),
  progress: z
    .strictObject({
      attempt: z.number().int(),
      renderDigest: z.string().exactOptional(),
      applied: z.array(z.string()),
      settled: z.array(z.string()),
      passed: z.number().int().exactOptional(),
      failed: z.array(z.string()).exactOptional(),
      failure: z.strictObject({ reason: z.string(), message: z.string() }).exactOptional(),
    })
    .exactOptional(),
  hooks: z
    .strictObject({ renderDigest: z.string(), event: z.enum(applyEvents), succeeded: z.array(z.string()) })
    .exactOptional(),
});

export function emptyInventory(setId: string): Inventory {
  return { schema: 1, setId, entries: [], definitions: {} };
}

/** Canonical text: the same members give the same bytes, so the inventory can be stored under its digest. */
export function writeInventory(inventory: Inventory): string {
  const entries = [...inventory.entries].sort((a, b) => compareForApply(a.id, b.id));
  return canonicalJson({ ...inventory, entries });
}

/**
 * Reads what `writeInventory` wrote.
 * @throws Error when it is something else, or another set's: an inventory that cannot be read is never an empty one.
 */
export function readInventory(text: string, setId: string): Inventory {
  const inventory = inventorySchema.parse(parseJson(text) satisfies Json);
  if (inventory.setId !== setId) {
    throw new Error(`the stored inventory is of the set ${inventory.setId}, expected ${setId}; nothing was pruned`);
  }
  return inventory;
}

/** Entries by `objectIdKey`. */
export function entriesById(inventory: Pick<Inventory, "entries">): ReadonlyMap<string, InventoryEntry> {
  return new Map(inventory.entries.map((entry) => [objectIdKey(entry.id), entry]));
}

export interface InventoryChange {
  /** Records of objects that were applied or seen; they replace what was known. */
  readonly recorded: readonly InventoryEntry[];
  /** Objects that are gone or no longer this set's business. */
  readonly settled: readonly ObjectId[];
  readonly definitions?: Readonly<Record<string, number>>;
  readonly progress?: Progress | undefined;
  /** Absent: as they were. */
  readonly hooks?: HookRecord | undefined;
}

function changedEntries(
  inventory: Pick<Inventory, "entries">,
  { recorded, settled }: InventoryChange,
): readonly InventoryEntry[] {
  if (recorded.length === 0 && settled.length === 0) return inventory.entries;
  const entries = new Map(entriesById(inventory));
  for (const id of settled) entries.delete(objectIdKey(id));
  for (const entry of recorded) entries.set(objectIdKey(entry.id), entry);
  return [...entries.values()].sort((a, b) => compareForApply(a.id, b.id));
}

/**
 * The inventory after a change. What is neither recorded nor settled stays: a failed apply or a refused deletion
 * forgets nothing. Only progress does, unless it is said again: the next run then begins with the first object.
 */
export function changeInventory({ progress: _, hooks, ...inventory }: Inventory, change: InventoryChange): Inventory {
  return {
    ...inventory,
    entries: changedEntries(inventory, change),
    definitions: change.definitions ?? inventory.definitions,
    ...defined({ progress: change.progress, hooks: "hooks" in change ? change.hooks : hooks }),
  };
}
