import {
  elementText,
  emptySet,
  keyElement,
  type PathSet,
  PathSetBuilder,
  valueElement,
} from "#apiserver/apply/path-set.ts";
import {
  type ListType,
  type MapType,
  memberType,
  type ScalarName,
  type TypeRef,
  typeFor,
} from "#apiserver/apply/schema.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject, stringifyJson } from "#apiserver/json.ts";

/**
 * The operations of structured-merge-diff v6 (`typed/`) on JSON values, the base of server-side apply. `undefined` is
 * an absent value, `null` is a null value.
 */
type Value = Json | undefined;

function listOf(value: Value): readonly Json[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

function mapOf(value: Value): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function isEmptyList(value: Value): boolean {
  return (listOf(value)?.length ?? 0) === 0;
}

function isEmptyMap(value: Value): boolean {
  const map = mapOf(value);
  return map === undefined || Object.keys(map).length === 0;
}

/** The path element of a list item. Undefined where an item lacks every key, or where a set cannot hold it. */
function itemElement(type: ListType, item: Json): string | undefined {
  if (type.keys.length === 0) return item === null || typeof item === "object" ? undefined : valueElement(item);
  if (!isJsonObject(item)) return undefined;
  const keys: Record<string, Json> = {};
  for (const key of type.keys) {
    const value = item[key] ?? keyDefault(type, key);
    if (value !== undefined) keys[key] = value;
  }
  return Object.keys(keys).length === 0 ? undefined : keyElement(keys);
}

function keyDefault(type: ListType, key: string): Json | undefined {
  const element = type.element();
  return element.kind === "map" ? element.fields.get(key)?.default : undefined;
}

/** The type errors of an applied value, each as `path: message`. Stored objects may have `duplicates`. */
export function typedErrors(ref: TypeRef, value: Value, prefix = ""): string[] {
  const type = typeFor(ref, value);
  if (value === null || value === undefined) return [];
  if (type.kind === "scalar") return scalarErrors(type.scalar, value, prefix);
  if (type.kind === "list") return listErrors(type, value, prefix);
  return mapErrors(type, value, prefix);
}

const scalarTests: Readonly<Record<ScalarName, readonly string[]>> = {
  string: ["string"],
  bytes: ["string"],
  numeric: ["number", "bigint"],
  boolean: ["boolean"],
  untyped: ["string", "number", "bigint", "boolean"],
  quantity: ["string", "number", "bigint", "boolean"],
  time: ["string", "number", "bigint", "boolean"],
  intOrString: ["string", "number", "bigint", "boolean"],
};

function scalarErrors(scalar: ScalarName, value: Json, prefix: string): string[] {
  if (scalarTests[scalar].includes(typeof value)) return [];
  if (scalar === "numeric") return [`${prefix}: expected numeric (int or float), got ${goType(value)}`];
  if (scalar === "string" || scalar === "bytes") {
    return [`${prefix}: expected string, got &value.valueUnstructured{Value:${goLiteral(value)}}`];
  }
  const expected = scalar === "boolean" ? "boolean" : "any scalar";
  return [`${prefix}: expected ${expected}, got &{${goPrinted(value)}}`];
}

function goType(value: Json): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (isJsonObject(value)) return "map[string]interface {}";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** The value as Go's `%v` prints it. */
function goPrinted(value: Json): string {
  return typeof value === "string" ? value : stringifyJson(value);
}

function goLiteral(value: Json): string {
  if (typeof value !== "object" || value === null) return stringifyJson(value);
  return `${goType(value)}${stringifyJson(value)}`;
}

function listErrors(type: ListType, value: Json, prefix: string): string[] {
  if (!Array.isArray(value)) return [`${prefix}: expected list, got &{${goPrinted(value)}}`];
  const errors: string[] = [];
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    let text = `[${index}]`;
    if (!type.atomic) {
      const element = itemElement(type, item);
      if (element === undefined) return [...errors, `${prefix}: element ${index}: ${itemProblem(type, item)}`];
      text = elementText(element);
      if (seen.has(element)) errors.push(`${prefix}: duplicate entries for key ${text}`);
      seen.add(element);
    }
    errors.push(...typedErrors(type.element, item, prefix + text));
  }
  return errors;
}

function itemProblem(type: ListType, item: Json): string {
  const withKeys = type.keys.length > 0;
  const list = `associative list with${withKeys ? "" : "out"} keys`;
  if (item === null)
    return withKeys ? `${list} may not have a null element` : `${list} has an element that's an explicit null`;
  if (!withKeys) return `${list} has an element that's a map type`;
  if (!isJsonObject(item)) return `${list} may not have non-map elements`;
  const names = type.keys.map((key) => JSON.stringify(key)).join(" ");
  return `${list} has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`;
}

function mapErrors(type: MapType, value: Json, prefix: string): string[] {
  if (!isJsonObject(value)) return [`${prefix}: expected map, got &{${goPrinted(value)}}`];
  const errors: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    const ref = memberType(type, key);
    if (ref === undefined) return [...errors, `${prefix}.${key}: field not declared in schema`];
    errors.push(...typedErrors(ref, member, `${prefix}.${key}`));
  }
  return errors;
}

/** Every path that a value sets (ToFieldSet). */
export function toFieldSet(ref: TypeRef, value: Value): PathSet {
  const builder = new PathSetBuilder();
  collectFields(ref, value, { builder, path: [] });
  return builder.build();
}

interface Walk {
  readonly builder: PathSetBuilder;
  readonly path: readonly string[];
}

function below(walk: Walk, element: string): Walk {
  return { builder: walk.builder, path: [...walk.path, element] };
}

function collectFields(ref: TypeRef, value: Value, walk: Walk): void {
  const type = typeFor(ref, value);
  if (type.kind === "scalar" || type.atomic) {
    walk.builder.add(walk.path);
    return;
  }
  if (type.kind === "map") {
    for (const [key, member] of Object.entries(mapOf(value) ?? {})) collectMember(type, key, { member, walk });
    return;
  }
  const items = itemsByElement(type, listOf(value) ?? []);
  for (const [element, same] of items) {
    const item = below(walk, element);
    item.builder.add(item.path);
    if (same.length === 1) collectFields(type.element, same[0], item);
  }
}

function collectMember(type: MapType, key: string, at: { readonly member: Value; readonly walk: Walk }): void {
  const ref = memberType(type, key);
  const walk = below(at.walk, `f:${key}`);
  if (ref !== undefined) collectFields(ref, at.member, walk);
  const bare = at.member === null || (isJsonObject(at.member) && Object.keys(at.member).length === 0);
  if (bare || !type.fields.has(key)) walk.builder.add(walk.path);
}

function itemsByElement(type: ListType, items: readonly Json[]): Map<string, Json[]> {
  const found = new Map<string, Json[]>();
  for (const item of items) {
    const element = itemElement(type, item);
    if (element === undefined) continue;
    const same = found.get(element);
    if (same === undefined) found.set(element, [item]);
    else same.push(item);
  }
  return found;
}

export interface Comparison {
  readonly added: PathSet;
  readonly modified: PathSet;
  readonly removed: PathSet;
}

const sameComparison: Comparison = { added: emptySet, modified: emptySet, removed: emptySet };

interface CompareWalk {
  readonly added: PathSetBuilder;
  readonly modified: PathSetBuilder;
  readonly removed: PathSetBuilder;
  readonly path: readonly string[];
}

/** The paths in which two values of one type differ (Compare). */
export function compareTyped(ref: TypeRef, left: Value, right: Value): Comparison {
  if (left === right) return sameComparison;
  const added = new PathSetBuilder();
  const modified = new PathSetBuilder();
  const removed = new PathSetBuilder();
  compareValue(ref, { left, right }, { added, modified, removed, path: [] });
  return { added: added.build(), modified: modified.build(), removed: removed.build() };
}

interface Pair {
  readonly left: Value;
  readonly right: Value;
}

function compareLeaf({ left, right }: Pair, walk: CompareWalk): void {
  if (left === undefined) walk.added.add(walk.path);
  else if (right === undefined) walk.removed.add(walk.path);
  else if (!deepEqual(left, right)) walk.modified.add(walk.path);
}

function compareValue(ref: TypeRef, pair: Pair, walk: CompareWalk): void {
  const { left, right } = pair;
  if (left === right) return;
  const type = typeFor(ref, right ?? left);
  if (type.kind === "scalar" || type.atomic || areEmpty(type, pair)) {
    compareLeaf(pair, walk);
    return;
  }
  if (type.kind === "list") compareLists(type, pair, walk);
  else compareMaps(type, pair, walk);
  if (left === undefined) walk.added.add(walk.path);
  else if (right === undefined) walk.removed.add(walk.path);
}

/** Two empty values are leaves. This keeps the difference between empty and null. */
function areEmpty(type: ListType | MapType, { left, right }: Pair): boolean {
  return type.kind === "list" ? isEmptyList(left) && isEmptyList(right) : isEmptyMap(left) && isEmptyMap(right);
}

function compareMaps(type: MapType, pair: Pair, walk: CompareWalk): void {
  const left = mapOf(pair.left) ?? {};
  const right = mapOf(pair.right) ?? {};
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const ref = memberType(type, key);
    if (ref === undefined) continue;
    compareValue(ref, { left: left[key], right: right[key] }, { ...walk, path: [...walk.path, `f:${key}`] });
  }
}

function compareLists(type: ListType, pair: Pair, walk: CompareWalk): void {
  const left = itemsByElement(type, listOf(pair.left) ?? []);
  const right = itemsByElement(type, listOf(pair.right) ?? []);
  for (const element of new Set([...left.keys(), ...right.keys()])) {
    const before = left.get(element) ?? [];
    const after = right.get(element) ?? [];
    const at = { ...walk, path: [...walk.path, element] };
    if (before.length <= 1 && after.length <= 1) {
      compareValue(type.element, { left: before[0], right: after[0] }, at);
    } else if (before.length > 1 && after.length > 1) {
      if (!deepEqual(before, after)) at.modified.add(at.path);
    } else if (before.length > 1) {
      if (after.length === 1) compareValue(type.element, { left: undefined, right: after[0] }, at);
      at.removed.add(at.path);
    } else {
      if (before.length === 1) compareValue(type.element, { left: before[0], right: undefined }, at);
      at.added.add(at.path);
    }
  }
}

/** Merges `right` into `left` (Merge). Maps and keyed lists merge item by item; any other value is replaced. */
export function mergeTyped(ref: TypeRef, left: Value, right: Value): Value {
  if (right === undefined) return left;
  const type = typeFor(ref, right ?? left);
  if (type.kind === "scalar" || type.atomic) return right;
  if (type.kind === "map") {
    if (isEmptyMap(left) && isEmptyMap(right)) return right;
    return mergeMaps(type, mapOf(left) ?? {}, mapOf(right) ?? {});
  }
  if (isEmptyList(left) && isEmptyList(right)) return right;
  return mergeLists(type, listOf(left) ?? [], listOf(right) ?? []);
}

function mergeMaps(type: MapType, left: JsonObject, right: JsonObject): JsonObject {
  const merged: Record<string, Json> = {};
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const ref = memberType(type, key);
    const value = ref === undefined ? (right[key] ?? left[key]) : mergeTyped(ref, left[key], right[key]);
    if (value !== undefined) merged[key] = value;
  }
  return merged;
}

/**
 * The order of a merged list (visitListItems): applied items in their applied order, other items at their old place.
 */
function mergeLists(type: ListType, left: readonly Json[], right: readonly Json[]): Json[] {
  const leftElements = left.map((item) => itemElement(type, item) ?? "");
  const rightElements = right.map((item) => itemElement(type, item) ?? "");
  const leftItems = itemsByElement(type, left);
  const shared = rightElements.filter((element) => leftItems.has(element));
  const inRight = new Set(rightElements);
  const merged = new Set<string>();
  const out: Json[] = [];
  let nextShared = shared.shift();
  function take(element: string, item: Json | undefined): void {
    merged.add(element);
    const same = leftItems.get(element);
    const value = mergeTyped(type.element, same?.length === 1 ? same[0] : undefined, item);
    if (value !== undefined) out.push(value);
    if (nextShared === element) nextShared = shared.shift();
  }
  let l = 0;
  let r = 0;
  while (l < left.length || r < right.length) {
    const leftElement = leftElements[l];
    const rightElement = rightElements[r];
    if (leftElement !== undefined && rightElement !== undefined) {
      if (leftElement === rightElement) {
        take(leftElement, right[r]);
        l += 1;
        r += 1;
        continue;
      }
      if (inRight.has(leftElement) && nextShared !== undefined && nextShared !== leftElement) {
        l += 1;
        continue;
      }
    }
    if (leftElement !== undefined) {
      const item = left[l];
      if (!inRight.has(leftElement) && item !== undefined) {
        out.push(item);
        l += 1;
        continue;
      }
      if (merged.has(leftElement)) l += 1;
    }
    if (rightElement !== undefined) {
      take(rightElement, right[r]);
      r += 1;
    }
  }
  return out;
}

/**
 * The value without the paths of a set (RemoveItems). A list that becomes empty turns into null. Atomic content stays.
 */
export function removeItems(ref: TypeRef, value: Json, remove: PathSet): Json {
  const type = typeFor(ref, value);
  if (type.kind === "scalar") return value;
  if (type.kind === "map") return isJsonObject(value) ? removeMembers(type, value, remove) : null;
  if (!Array.isArray(value) || type.atomic) return null;
  const kept: Json[] = [];
  for (const item of value as readonly Json[]) {
    const node = remove.children.get(itemElement(type, item) ?? "");
    if (node?.member) continue;
    kept.push(node === undefined ? item : removeItems(type.element, item, node));
  }
  return kept.length === 0 ? null : kept;
}

function removeMembers(type: MapType, value: JsonObject, remove: PathSet): Json {
  if (type.atomic) return null;
  const kept: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const node = remove.children.get(`f:${key}`);
    if (node?.member) continue;
    const ref = memberType(type, key);
    kept[key] = node === undefined || ref === undefined ? member : removeItems(ref, member, node);
  }
  return kept;
}
