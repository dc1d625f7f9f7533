import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { isLeftAlone } from "#shared/kube/apply-marks.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { definitionGenerations } from "#shared/kube/engine/existing-objects.ts";
import { foreignObject } from "#shared/kube/engine/foreign-object.ts";
import { listMembers } from "#shared/kube/engine/list-members.ts";
import { endsTheCheck, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { UnavailableKind } from "#shared/kube/engine/unavailable-kind.ts";
import { withFreshKinds } from "#shared/kube/engine/with-fresh-kinds.ts";
import type { Inventory, InventoryEntry } from "#shared/kube/inventory.ts";
import {
  fieldManager,
  generationOf,
  isBeingDeleted,
  type KubeObject,
  managedFieldsOf,
  objectIdOf,
  stringAt,
} from "#shared/kube/kube-object.ts";
import { ownedDigests } from "#shared/kube/managed-fields.ts";
import { type ForeignObject, isMember } from "#shared/kube/membership.ts";
import { type GroupKind, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

export interface DriftedObject {
  readonly id: ObjectId;
  /**
   * - `missing`: no object of this name has the set's label.
   * - `replaced`: another object has its name.
   * - `changed`: fields or values that Starling owns differ from the applied ones.
   * - `terminating`: the object is being deleted.
   */
  readonly how: "missing" | "replaced" | "changed" | "terminating";
  /** The last writer besides Starling, such as `kubectl-edit at 2026-05-01T03:12:09Z`. */
  readonly lastWriter?: string;
  /** For a changed object: its live state. */
  readonly live?: KubeObject;
}

export interface DriftReport {
  /** Whether no applied object has changed, and everything could be read. */
  readonly clean: boolean;
  readonly drifted: readonly DriftedObject[];
  /** Objects that have the set's label and are not its members. They are reported and never changed. */
  readonly foreign: readonly ForeignObject[];
  /**
   * New records for the inventory: objects whose resourceVersion changed, or whose change was undone, with the applied
   * values.
   */
  readonly moved: readonly InventoryEntry[];
  /** For the inventory: the generations of definitions whose objects are unchanged. */
  readonly definitions: Readonly<Record<string, number>>;
  /** Every object of the inventory that was read, by `objectIdKey`; whole where `isWhole` says so. */
  readonly live: ReadonlyMap<string, KubeObject>;
  /** Kinds that could not be read. Whether their objects have drifted is unknown. */
  readonly unread: readonly { readonly group: string; readonly kind: string; readonly failure: ObjectFailure }[];
}

export interface DriftQuestion {
  /** Foreign objects that were seen before. Their kinds are read in their namespaces. */
  readonly also?: readonly Omit<ObjectId, "name">[];
  /** Kinds that are read in full at once, because the caller also needs their objects. Default: none. */
  readonly isWhole?: (kind: GroupKind) => boolean;
}

interface KindGroup {
  readonly group: string;
  readonly kind: string;
  /** Default: the version that the server prefers. */
  readonly version?: string;
  /** In addition to the namespaces of the entries. */
  readonly namespaces: string[];
  readonly entries: InventoryEntry[];
}

interface Findings {
  readonly drifted: DriftedObject[];
  readonly foreign: ForeignObject[];
  readonly moved: InventoryEntry[];
  readonly live: Map<string, KubeObject>;
}

const concurrency = 8;

/**
 * Finds changes of the applied objects. The cost grows with the number of kinds: one metadata-only LIST for each kind
 * by the set's label. An equal uid and resourceVersion prove that an object is unchanged. Only a kind with a difference
 * is read in full, to compare the fields that Starling owns. A controller that only writes status therefore costs one
 * more LIST and is not drift. An object of another owner that only has to exist costs one GET.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function detectDrift(
  client: ClusterClient,
  inventory: Inventory,
  { also = [], isWhole = () => false }: DriftQuestion = {},
): Promise<DriftReport> {
  const definitions = await definitionGenerations(
    client,
    inventory.entries.map(({ id }) => id),
  );
  const findings = noFindings();
  const unread: DriftReport["unread"][number][] = [];
  const recorded = new Set(inventory.entries.map(({ id }) => objectIdKey(id)));
  // A hook runs and ends; what happens to it later is no drift.
  const lasting = inventory.entries.filter(({ hook, watched }) => hook === undefined && watched !== "nothing");
  await runConcurrently(groupByKind(lasting, also), concurrency, async (kindGroup) => {
    try {
      const found = await withFreshKinds(client, () =>
        readKind(client, { kindGroup, definitions, recorded, inventory, whole: isWhole(kindGroup) }),
      );
      findings.drifted.push(...found.drifted);
      findings.foreign.push(...found.foreign);
      findings.moved.push(...found.moved);
      for (const [key, object] of found.live) findings.live.set(key, object);
    } catch (error) {
      const failure = error instanceof UnavailableKind ? error.failure : failureOf(error);
      if (endsTheCheck(failure)) throw error;
      unread.push({ group: kindGroup.group, kind: kindGroup.kind, failure });
    }
  });
  const clean = findings.drifted.length === 0 && unread.length === 0;
  const settled = definitionsOfClean({ inventory, definitions, drifted: findings.drifted, clean: unread.length === 0 });
  return { clean, ...findings, definitions: settled, unread };
}

/**
 * A new generation may be recorded only after every object of its kind was compared and found unchanged. Otherwise a
 * difference would never be searched for again. The plural of a kind is not known here, so that one drifted object
 * blocks all definitions of its group.
 */
function definitionsOfClean(found: {
  readonly inventory: Inventory;
  readonly definitions: DriftReport["definitions"];
  readonly drifted: readonly DriftedObject[];
  readonly clean: boolean;
}): DriftReport["definitions"] {
  if (!found.clean) return found.inventory.definitions;
  const drifted = new Set(found.drifted.map(({ id }) => id.group));
  const entries = Object.entries(found.definitions).map(([name, generation]) => {
    const group = name.slice(name.indexOf(".") + 1);
    return [name, drifted.has(group) ? (found.inventory.definitions[name] ?? -1) : generation] as const;
  });
  return Object.fromEntries(entries);
}

interface KindQuestion {
  readonly kindGroup: KindGroup;
  readonly inventory: Inventory;
  readonly definitions: DriftReport["definitions"];
  /** `objectIdKey` of everything in the inventory. */
  readonly recorded: ReadonlySet<string>;
  readonly whole: boolean;
}

async function readKind(client: ClusterClient, question: KindQuestion): Promise<Findings> {
  const { kindGroup, inventory, definitions, recorded, whole } = question;
  const findings = noFindings();
  const found = await client.lookup(kindGroup);
  if (found.outcome === "unavailable") throw new UnavailableKind(found.message);
  if (found.outcome === "absent") {
    findings.drifted.push(...kindGroup.entries.map(({ id }) => ({ id, how: "missing" }) as const));
    return findings;
  }
  const definition = `${found.info.plural}.${kindGroup.group}`;
  const redefined = inventory.definitions[definition] !== definitions[definition];
  await compareKind(client, found.info, { kindGroup, redefined, recorded, whole, setId: inventory.setId, findings });
  return findings;
}

interface KindComparison {
  readonly kindGroup: KindGroup;
  /**
   * Whether the definition of the kind changed since. Then fields can be missing although no resourceVersion changed.
   */
  readonly redefined: boolean;
  /** `objectIdKey` of everything in the inventory. */
  readonly recorded: ReadonlySet<string>;
  /** Whether the kind is read in full at once. */
  readonly whole: boolean;
  readonly setId: string;
  readonly findings: Findings;
}

async function compareKind(client: ClusterClient, info: KindInfo, comparison: KindComparison): Promise<void> {
  const { kindGroup, setId, findings, recorded, whole } = comparison;
  const namespaces = [...new Set([...kindGroup.entries.map(({ id }) => id.namespace), ...kindGroup.namespaces])];
  const metadataOnly = whole ? {} : ({ metadataOnly: true } as const);
  const live = byKey(await listMembers(client, info, { setId, namespaces, ...metadataOnly }), info);
  for (const [key, object] of live) {
    if (recorded.has(key)) findings.live.set(key, object);
    if (!recorded.has(key) || !isMember(object, setId))
      findings.foreign.push(foreignObject(objectIdOf(object, info), object, setId));
  }
  const entries = await toCompare(client, info, { entries: kindGroup.entries, live });
  if (!comparison.redefined && entries.every((entry) => isAsRecorded(entry, live))) {
    findings.moved.push(...entries.filter(({ undone }) => undone !== undefined).map(asApplied));
    return;
  }
  const full = whole ? live : byKey(await listMembers(client, info, { setId, namespaces }), info);
  for (const entry of entries) compareObject(entry, full.get(objectIdKey(entry.id)), findings);
}

/**
 * Removes entries that only have to exist and do. An object of another owner has no label of the set, and is read by
 * its name.
 */
async function toCompare(
  client: ClusterClient,
  info: KindInfo,
  found: { readonly entries: readonly InventoryEntry[]; readonly live: ReadonlyMap<string, KubeObject> },
): Promise<readonly InventoryEntry[]> {
  const there = new Set(found.live.keys());
  const others = found.entries.filter(({ id, watched }) => watched === "presence" && !there.has(objectIdKey(id)));
  await runConcurrently(others, concurrency, async ({ id }) => {
    if ((await client.get(info, id, { metadataOnly: true })) !== undefined) there.add(objectIdKey(id));
  });
  return found.entries.filter(({ id, watched }) => watched !== "presence" || !there.has(objectIdKey(id)));
}

function isAsRecorded(entry: InventoryEntry, live: ReadonlyMap<string, KubeObject>): boolean {
  const object = live.get(objectIdKey(entry.id));
  if (object === undefined) return false;
  if (isWatchedNoFurther(entry, object)) return true;
  return (
    stringAt(object, "metadata", "uid") === entry.uid &&
    stringAt(object, "metadata", "resourceVersion") === entry.resourceVersion
  );
}

function compareObject(entry: InventoryEntry, live: KubeObject | undefined, findings: Findings): void {
  const { id } = entry;
  if (live === undefined) {
    // A Job that removes itself after its end is expected to be missing.
    if (entry.expiring === undefined) findings.drifted.push({ id, how: "missing" });
    return;
  }
  if (isWatchedNoFurther(entry, live)) return;
  const lastWriter = lastWriterOf(live);
  const writer = lastWriter === undefined ? {} : { lastWriter };
  if (isBeingDeleted(live)) return void findings.drifted.push({ id, how: "terminating", ...writer });
  if (stringAt(live, "metadata", "uid") !== entry.uid) {
    return void findings.drifted.push({ id, how: "replaced", ...writer });
  }
  const digests = ownedDigests(live);
  const equal = digests?.ownedHash === entry.ownedHash && digests?.valuesHash === entry.valuesHash;
  if (!equal) return void findings.drifted.push({ id, how: "changed", live, ...writer });
  const resourceVersion = stringAt(live, "metadata", "resourceVersion") ?? "";
  if (resourceVersion === entry.resourceVersion && entry.undone === undefined) return;
  findings.moved.push({ ...asApplied(entry), resourceVersion, generation: generationOf(live) });
}

/**
 * Whether the object's existence is enough. The record of an object that is marked in the cluster stays, because the
 * next apply must find the mark.
 */
function isWatchedNoFurther({ watched }: InventoryEntry, live: KubeObject): boolean {
  return watched === "presence" || isLeftAlone(live);
}

/** The object has its applied values, so that nothing is recorded as undone any more. */
function asApplied({ undone: _, ...entry }: InventoryEntry): InventoryEntry {
  return entry;
}

/** The newest entry of managedFields by another manager that is not about the status. */
function lastWriterOf(live: KubeObject): string | undefined {
  const writers = managedFieldsOf(live)
    .filter(({ manager, subresource = "" }) => manager !== fieldManager && subresource !== "status")
    .sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""));
  const [last] = writers;
  return last === undefined
    ? undefined
    : `${last.manager ?? "an unknown manager"} at ${last.time ?? "an unknown time"}`;
}

function noFindings(): Findings {
  return { drifted: [], foreign: [], moved: [], live: new Map() };
}

function byKey(objects: readonly KubeObject[], info: KindInfo): ReadonlyMap<string, KubeObject> {
  return new Map(objects.map((object) => [objectIdKey(objectIdOf(object, info)), object]));
}

function groupByKind(
  entries: readonly InventoryEntry[],
  also: readonly Omit<ObjectId, "name">[],
): readonly KindGroup[] {
  const groups = new Map<string, KindGroup>();
  for (const entry of entries) {
    const { group, kind } = entry.id;
    const key = `${group}/${entry.version}/${kind}`;
    const known = groups.get(key);
    if (known) known.entries.push(entry);
    else groups.set(key, { group, kind, version: entry.version, namespaces: [], entries: [entry] });
  }
  for (const { group, kind, namespace } of also) {
    const same = [...groups.values()].filter((one) => one.group === group && one.kind === kind);
    if (same.length === 0) groups.set(`${group}//${kind}`, { group, kind, namespaces: [namespace], entries: [] });
    for (const one of same) one.namespaces.push(namespace);
  }
  return [...groups.values()];
}
