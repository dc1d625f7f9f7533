import {
  difference,
  emptySet,
  fieldSet,
  intersection,
  isEmptySet,
  type PathSet,
  pathTexts,
  readFieldsV1,
  recursiveDifference,
  restrictTo,
  union,
  withNamedFields,
  writeFieldsV1,
} from "#apiserver/apply/path-set.ts";
import type { TypeRef } from "#apiserver/apply/schema.ts";
import { type Comparison, compareTyped, mergeTyped, removeItems, toFieldSet } from "#apiserver/apply/typed-value.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { applyConflict, type FieldConflict } from "#apiserver/status-error.ts";

/** One decoded entry of metadata.managedFields. */
interface Manager {
  readonly manager: string;
  readonly operation: string;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time?: string;
  readonly set: PathSet;
}
type Managers = Map<string, Manager>;

/** The fields that an endpoint does not own: `exclude` drops these fields, `only` drops all others. */
export interface FieldFilter {
  readonly exclude?: PathSet;
  readonly only?: PathSet;
}

export interface FieldsContext {
  /** The version of the request. */
  readonly apiVersion: string;
  /** The type of the object in a version; undefined when the cluster no longer serves that version. */
  readonly typeIn: (apiVersion: string) => TypeRef | undefined;
  /** The object in another version of its kind. */
  readonly inVersion: (object: JsonObject, apiVersion: string) => JsonObject;
  readonly manager: string;
  /** The version that conflicts name, if it differs from the entry's: a scale belongs to another API. */
  readonly shownVersion?: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  readonly filter: FieldFilter;
  /** RFC 3339, in whole seconds. */
  readonly now: string;
  /** The object as an empty Go struct writes it. A create is compared with it. */
  readonly zero: JsonObject;
}

/** No manager ever owns these fields (fieldmanager, stripMetaManager). */
const unownedFields = fieldSet(
  ["apiVersion"],
  ["kind"],
  ["metadata"],
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["metadata", "creationTimestamp"],
  ["metadata", "selfLink"],
  ["metadata", "uid"],
  ["metadata", "clusterName"],
  ["metadata", "generation"],
  ["metadata", "managedFields"],
  ["metadata", "resourceVersion"],
);

const currentOperation = "current-operation";

function applyFilter(set: PathSet, filter: FieldFilter): PathSet {
  const kept = filter.exclude === undefined ? set : recursiveDifference(set, filter.exclude);
  return filter.only === undefined ? kept : restrictTo(kept, filter.only);
}

function filterComparison(comparison: Comparison, filter: FieldFilter): Comparison {
  return {
    added: applyFilter(comparison.added, filter),
    modified: applyFilter(comparison.modified, filter),
    removed: applyFilter(comparison.removed, filter),
  };
}

function entryOf({ manager, apiVersion, subresource }: FieldsContext, operation: "Apply" | "Update") {
  return { manager, operation, apiVersion, subresource };
}

function managerId(entry: Omit<Manager, "set">): string {
  const version = entry.operation === "Apply" ? "" : entry.apiVersion;
  return JSON.stringify([entry.manager, entry.operation, version, entry.subresource]);
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function managedFieldsList(object: JsonObject): readonly Json[] | undefined {
  const metadata = object.metadata;
  const entries = isJsonObject(metadata) ? metadata.managedFields : undefined;
  return Array.isArray(entries) ? entries : undefined;
}

/** Whether any manager owns the field at a path of names. */
export function isOwned(object: JsonObject, path: readonly string[]): boolean {
  return [...decode(managedFieldsList(object) ?? []).values()].some(({ set }) => {
    let node: PathSet | undefined = set;
    for (const name of path) node = node?.children.get(`f:${name}`);
    return node?.member === true;
  });
}

function decode(entries: readonly Json[]): Managers {
  const managers: Managers = new Map();
  for (const entry of entries) {
    if (!isJsonObject(entry)) continue;
    const manager: Manager = {
      manager: textOf(entry.manager),
      operation: textOf(entry.operation),
      apiVersion: textOf(entry.apiVersion),
      subresource: textOf(entry.subresource),
      ...(typeof entry.time === "string" ? { time: entry.time } : {}),
      set: readFieldsV1(entry.fieldsV1),
    };
    managers.set(managerId(manager), manager);
  }
  return managers;
}

/** Writes entries in the server's order: Apply before Update, then by second, then by name. */
function encode(managers: Managers): JsonObject[] {
  const sorted = [...managers.values()].sort(
    (a, b) =>
      compareText(a.operation, b.operation) ||
      compareText(a.time ?? "", b.time ?? "") ||
      compareText(a.manager, b.manager) ||
      compareText(a.apiVersion, b.apiVersion) ||
      compareText(a.subresource, b.subresource),
  );
  return sorted.map((entry) => ({
    manager: entry.manager,
    operation: entry.operation,
    apiVersion: entry.apiVersion,
    ...(entry.time === undefined ? {} : { time: entry.time }),
    fieldsType: "FieldsV1",
    fieldsV1: writeFieldsV1(entry.set),
    ...(entry.subresource === "" ? {} : { subresource: entry.subresource }),
  }));
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function withoutManagedFields(object: JsonObject): JsonObject {
  const metadata = object.metadata;
  if (!isJsonObject(metadata) || metadata.managedFields === undefined) return object;
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** The object with these managedFields; an empty list removes them. */
export function withManagedFields(object: JsonObject, entries: readonly Json[]): JsonObject {
  const bare = withoutManagedFields(object);
  if (entries.length === 0) return bare;
  return { ...bare, metadata: { ...(isJsonObject(bare.metadata) ? bare.metadata : {}), managedFields: entries } };
}

interface Change {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly workflow: string;
  readonly force: boolean;
}

/** Removes changed fields from the other managers (Updater.update). @throws StatusError 409 unless forced. */
function settle(managers: Managers, change: Change, context: FieldsContext): Comparison {
  const comparisons = new Map<string, Comparison | undefined>();
  function comparisonIn(apiVersion: string): Comparison | undefined {
    if (!comparisons.has(apiVersion)) {
      const ref = context.typeIn(apiVersion);
      const [before, after] = [change.before, change.after].map((each) => context.inVersion(each, apiVersion));
      comparisons.set(apiVersion, ref && filterComparison(compareTyped(ref, before, after), context.filter));
    }
    return comparisons.get(apiVersion);
  }
  const conflicts: FieldConflict[] = [];
  const settled = new Map<string, PathSet>();
  for (const [id, entry] of managers) {
    if (id === change.workflow) continue;
    const comparison = comparisonIn(entry.apiVersion);
    if (comparison === undefined) {
      managers.delete(id);
      continue;
    }
    const conflict = intersection(entry.set, union(comparison.modified, comparison.added));
    if (!isEmptySet(conflict)) {
      const using = entry.operation === "Apply" ? "" : ` using ${context.shownVersion ?? entry.apiVersion}`;
      const subresource = entry.subresource === "" ? "" : ` with subresource ${JSON.stringify(entry.subresource)}`;
      for (const path of pathTexts(conflict)) {
        conflicts.push({ manager: entry.manager, detail: `${subresource}${using}`, path });
      }
    }
    settled.set(id, difference(difference(entry.set, conflict), comparison.removed));
  }
  if (!change.force && conflicts.length > 0) throw applyConflict(conflicts);
  for (const [id, set] of settled) {
    const entry = managers.get(id);
    if (entry === undefined) continue;
    if (isEmptySet(set)) managers.delete(id);
    else if (set !== entry.set) managers.set(id, { ...entry, set });
  }
  const own = managers.get(change.workflow);
  if (own !== undefined && isEmptySet(own.set)) managers.delete(change.workflow);
  return comparisonIn(context.apiVersion) ?? { added: emptySet, modified: emptySet, removed: emptySet };
}

function recordUpdate(managers: Managers, change: Omit<Change, "workflow" | "force">, context: FieldsContext): void {
  const comparison = settle(managers, { ...change, workflow: currentOperation, force: true }, context);
  const taken = applyFilter(union(comparison.modified, comparison.added), context.filter);
  const owned = recursiveStrip(taken);
  if (isEmptySet(owned)) return;
  const entry = entryOf(context, "Update");
  const id = managerId(entry);
  managers.set(id, { ...entry, time: context.now, set: union(owned, managers.get(id)?.set) });
}

function recursiveStrip(set: PathSet): PathSet {
  return difference(set, unownedFields);
}

function isReset(entries: readonly Json[] | undefined): boolean {
  if (entries === undefined) return false;
  if (entries.length === 0) return true;
  const [only] = entries;
  return entries.length === 1 && isJsonObject(only) && Object.keys(only).length === 0;
}

function managersOf(live: JsonObject, next: JsonObject, subresource: string): Managers {
  const fromLive = managedFieldsList(live) ?? [];
  if (subresource !== "") return decode(fromLive);
  const given = managedFieldsList(next);
  if (isReset(given)) return new Map();
  const managers = decode(given ?? []);
  return managers.size === 0 ? decode(fromLive) : managers;
}

/**
 * Computes managedFields after a create, an update or a patch other than apply. `live` is undefined on create. An
 * object without managedFields stays without them: tracking starts with a create or with a first apply.
 */
export function trackUpdate(live: JsonObject | undefined, next: JsonObject, context: FieldsContext): readonly Json[] {
  const managers = live === undefined ? new Map() : managersOf(live, next, context.subresource);
  if (live !== undefined && managers.size === 0) return [];
  const before = withoutManagedFields(live ?? context.zero);
  recordUpdate(managers, { before, after: withoutManagedFields(next) }, context);
  return encode(managers);
}

export interface Applied {
  /** The merged object without managedFields. */
  readonly object: JsonObject;
  readonly managedFields: readonly Json[];
}

/**
 * Merges an applied configuration into the live object (Updater.Apply). It removes fields that this manager applied
 * last time and that no other manager owns. `live` is undefined when the apply creates the object. @throws StatusError
 * 409 with a cause for each field that another manager owns, unless `force`.
 */
export function trackApply(
  live: JsonObject | undefined,
  config: JsonObject,
  context: FieldsContext & { readonly force: boolean },
): Applied {
  const ref = context.typeIn(context.apiVersion);
  if (ref === undefined) throw new Error(`no type for ${context.apiVersion}`);
  const managers = decode(live === undefined ? [] : (managedFieldsList(live) ?? []));
  const before = context.inVersion(withoutManagedFields(live ?? context.zero), context.apiVersion);
  if (live !== undefined && managers.size === 0) {
    recordUpdate(managers, { before: context.zero, after: before }, { ...context, manager: "before-first-apply" });
  }
  const entry = entryOf(context, "Apply");
  const id = managerId(entry);
  const last = managers.get(id);
  const merged = mergeTyped(ref, before, config);
  const set = applyFilter(toFieldSet(ref, config), context.filter);
  const applied = { ...entry, ...(last?.time === undefined ? {} : { time: last.time }), set };
  // Pruning must keep the parents of fields that no manager owns in the end, such as the name. So it sees the full set.
  managers.set(id, applied);
  const object = prune(isJsonObject(merged) ? merged : before, { managers, last, context, ref });
  managers.set(id, { ...applied, set: recursiveStrip(set) });
  settle(managers, { before, after: object, workflow: id, force: context.force }, context);
  const own = managers.get(id);
  if (own !== undefined && !deepEqual(before, object)) managers.set(id, { ...own, time: context.now });
  return { object, managedFields: encode(managers) };
}

interface PruneInput {
  readonly managers: Managers;
  readonly last: Manager | undefined;
  readonly context: FieldsContext;
  readonly ref: TypeRef;
}

/** Removes fields that were applied last time and not this time, unless another manager owns them (Updater.prune). */
function prune(merged: JsonObject, input: PruneInput): JsonObject {
  const { managers, last, context } = input;
  if (last === undefined || isEmptySet(last.set)) return merged;
  const ref = context.typeIn(last.apiVersion);
  if (ref === undefined) return merged;
  const lastSet = withNamedFields(last.set, ref);
  const whole = context.inVersion(merged, last.apiVersion);
  let pruned = asObject(removeItems(ref, whole, lastSet));
  const ownedIn = new Map<string, PathSet>([[last.apiVersion, emptySet]]);
  for (const entry of managers.values()) ownedIn.set(entry.apiVersion, union(ownedIn.get(entry.apiVersion), entry.set));
  for (const [apiVersion, owned] of ownedIn) {
    const versionRef = context.typeIn(apiVersion);
    if (versionRef === undefined) continue;
    const versionWhole = context.inVersion(whole, apiVersion);
    const mergedSet = withNamedFields(toFieldSet(versionRef, versionWhole), versionRef);
    const prunedSet = withNamedFields(toFieldSet(versionRef, context.inVersion(pruned, apiVersion)), versionRef);
    const keep = union(prunedSet, withNamedFields(owned, versionRef));
    const kept = asObject(removeItems(versionRef, versionWhole, difference(mergedSet, keep)));
    pruned = context.inVersion(kept, last.apiVersion);
  }
  const mergedSet = withNamedFields(toFieldSet(ref, whole), ref);
  const prunedSet = withNamedFields(toFieldSet(ref, pruned), ref);
  const left = removeItems(ref, whole, intersection(difference(mergedSet, prunedSet), lastSet));
  return context.inVersion(asObject(left), context.apiVersion);
}

function asObject(value: Json): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Whether the objects differ in nothing but the times of managedFields. A write with such a result changes nothing. */
export function sameIgnoringTimes(left: JsonObject, right: JsonObject): boolean {
  if (!deepEqual(withoutManagedFields(left), withoutManagedFields(right))) return false;
  return deepEqual(withoutTimes(managedFieldsList(left)), withoutTimes(managedFieldsList(right)));
}

function withoutTimes(entries: readonly Json[] = []): readonly Json[] {
  return entries.map((entry) => (isJsonObject(entry) ? { ...entry, time: null } : entry));
}
