import * as z from "zod";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson, type Json, parseJson } from "#shared/base/json.ts";
import { compareForApply } from "#shared/kube/apply-order.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { type ApplyEvent, applyEvents } from "#shared/kube/order-marks.ts";

/**
 * Starling's knowledge of one object that it applied, from the server's answer. Together with metadata it shows that
 * nothing has changed, and it proves before a deletion that the object is the applied one.
 */
export interface InventoryEntry {
  readonly id: ObjectId;
  /** The API version in which it was applied; not a part of the identity. */
  readonly version: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** 0 for kinds without a generation. */
  readonly generation: number;
  /** When the server created it; absent in older records. */
  readonly createdAt?: string;
  /** Digest of the fields Starling owns. */
  readonly ownedHash: string;
  /** Digest of the values at these fields, lists in live order. */
  readonly valuesHash: string;
  /**
   * Digest of the manifest, only for Jobs that remove themselves after their end (ttlSecondsAfterFinished). A Job that
   * is gone is not created again until its manifest changes.
   */
  readonly expiring?: string;
  /** For such a Job: the seconds after its end until it removes itself; absent in older records. */
  readonly ttlSeconds?: number;
  /** Such a Job was seen complete. Its absence then needs no other explanation. */
  readonly complete?: true;
  /**
   * The check of an object with a mark: its existence, or nothing. It is not compared, and its health does not
   * count for its Sync. See `apply-marks.ts`.
   */
  readonly watched?: "presence" | "nothing";
  /**
   * The set id of a sibling that desires the object and has not taken it over yet. Until then, the object is not
   * pruned, not compared and not awaited (`watched` is `nothing`).
   */
  readonly heldFor?: string;
  /** For a hook: the run in which it was created, see `run-hook.ts`. A hook is not compared and not awaited. */
  readonly hook?: string;
  /** The last correction of the object's drift, until a check finds the object as it was applied. */
  readonly undone?: {
    /** How often the same state was corrected, and undone before the next check. */
    readonly rounds: number;
    /** How often the object was corrected since a check last found it as it was applied, whatever was undone. */
    readonly inAll: number;
    /** The drifted state: digests of the fields that Starling still owned and of their values, or `missing`. */
    readonly state: string;
    readonly by: string;
    readonly fields: string;
  };
}

/** The progress of an attempt that needs more than one run. */
export interface Progress {
  readonly attempt: number;
  /** Absent for a deletion. */
  readonly renderDigest?: string;
  /** The `objectIdKey` of objects that were applied and need no other run. */
  readonly applied: readonly string[];
  /** The `objectIdKey` of unrecorded objects that were searched for and settled. */
  readonly settled: readonly string[];
  /** The guard let the attempt's prune through: what is left of it is not asked about again. */
  readonly pruning?: true;
  /** The number of steps that were ready, and are not checked again. */
  readonly passed?: number;
  /** The `objectIdKey` of hooks that failed. */
  readonly failed?: readonly string[];
  /** Why the attempt fails, after the work that follows a failure is done. */
  readonly failure?: { readonly reason: string; readonly message: string };
}

/** The results of a rendering's hooks. A hook that succeeded does not run again for this rendering, in any attempt. */
export interface HookRecord {
  readonly renderDigest: string;
  /** The event of the apply, until the apply ends. Every apply after the first install is an upgrade. */
  readonly event: ApplyEvent;
  /** The `objectIdKey` of the hooks that succeeded. */
  readonly succeeded: readonly string[];
}

export interface Inventory {
  readonly schema: 1;
  readonly setId: string;
  readonly entries: readonly InventoryEntry[];
  /**
   * By the name of its definition, the generation under which all objects of a custom kind were applied or compared.
   * Absent when it is not known for all of them.
   */
  readonly definitions: Readonly<Record<string, number>>;
  /** Only present while an attempt continues in the next run. */
  readonly progress?: Progress;
  /** Absent when nothing that was applied had hooks. */
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

/** Canonical text: the same members give the same bytes, so that the inventory can be stored under its digest. */
export function writeInventory(inventory: Inventory): string {
  const entries = [...inventory.entries].sort((a, b) => compareForApply(a.id, b.id));
  return canonicalJson({ ...inventory, entries });
}

/**
 * Reads the text that `writeInventory` wrote.
 * @throws Error when the text is something else, or belongs to another set. An unreadable inventory never counts as an
 * empty one.
 */
export function readInventory(text: string, setId: string): Inventory {
  const inventory = inventorySchema.parse(parseJson(text) satisfies Json);
  if (inventory.setId !== setId) {
    throw new Error(
      `the stored inventory belongs to the set ${inventory.setId}, expected ${setId}; nothing was pruned`,
    );
  }
  return inventory;
}

/** Entries by `objectIdKey`. */
export function entriesById(inventory: Pick<Inventory, "entries">): ReadonlyMap<string, InventoryEntry> {
  return new Map(inventory.entries.map((entry) => [objectIdKey(entry.id), entry]));
}

export interface InventoryChange {
  /** New records of objects. They replace the old records. */
  readonly recorded: readonly InventoryEntry[];
  /** Objects that are gone, or that do not belong to this set any more. */
  readonly settled: readonly ObjectId[];
  readonly definitions?: Readonly<Record<string, number>>;
  readonly progress?: Progress | undefined;
  /** Absent: unchanged. */
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
 * The inventory after a change. An object that is neither recorded nor settled stays, so that a failed apply or a
 * refused deletion forgets nothing. Progress is forgotten unless the change contains it; the next run then begins with
 * the first object.
 */
export function changeInventory({ progress: _, hooks, ...inventory }: Inventory, change: InventoryChange): Inventory {
  return {
    ...inventory,
    entries: changedEntries(inventory, change),
    definitions: change.definitions ?? inventory.definitions,
    ...defined({ progress: change.progress, hooks: "hooks" in change ? change.hooks : hooks }),
  };
}
