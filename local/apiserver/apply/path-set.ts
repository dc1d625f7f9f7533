import { type MapType, memberType, type TypeRef, typeFor } from "#apiserver/apply/schema.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, stringifyJson } from "#apiserver/json.ts";

/**
 * A set of field paths, as structured-merge-diff stores it (`fieldpath.Set`). Elements have the form of `fieldsV1`:
 * `f:name`, `k:{"name":"main"}`, `v:"x"`. A node is a member, or leads to members, or both.
 */
export interface PathSet {
  readonly member: boolean;
  readonly children: ReadonlyMap<string, PathSet>;
}

const noChildren: ReadonlyMap<string, PathSet> = new Map();
export const emptySet: PathSet = { member: false, children: noChildren };
const leaf: PathSet = { member: true, children: noChildren };

export function isEmptySet(set: PathSet): boolean {
  return !set.member && set.children.size === 0;
}

/** Collects paths in place. `add` takes the elements of a path from the root. */
export class PathSetBuilder {
  #member = false;
  readonly #children = new Map<string, PathSetBuilder>();

  add(path: readonly string[]): void {
    let node: PathSetBuilder = this;
    for (const element of path) {
      let next = node.#children.get(element);
      if (next === undefined) {
        next = new PathSetBuilder();
        node.#children.set(element, next);
      }
      node = next;
    }
    node.#member = true;
  }

  build(): PathSet {
    if (this.#children.size === 0) return this.#member ? leaf : emptySet;
    const children = new Map<string, PathSet>();
    for (const [element, child] of this.#children) children.set(element, child.build());
    return { member: this.#member, children };
  }
}

/** A set of whole paths, given as lists of field names. */
export function fieldSet(...paths: readonly (readonly string[])[]): PathSet {
  const builder = new PathSetBuilder();
  for (const path of paths) builder.add(path.map((name) => `f:${name}`));
  return builder.build();
}

type Combine = (a: PathSet | undefined, b: PathSet | undefined) => PathSet;

function combineChildren(a: PathSet, b: PathSet, combine: Combine): ReadonlyMap<string, PathSet> {
  const children = new Map<string, PathSet>();
  for (const element of new Set([...a.children.keys(), ...b.children.keys()])) {
    const child = combine(a.children.get(element), b.children.get(element));
    if (!isEmptySet(child)) children.set(element, child);
  }
  return children;
}

export function union(a: PathSet = emptySet, b: PathSet = emptySet): PathSet {
  if (isEmptySet(b)) return a;
  if (isEmptySet(a)) return b;
  return { member: a.member || b.member, children: combineChildren(a, b, union) };
}

export function intersection(a: PathSet = emptySet, b: PathSet = emptySet): PathSet {
  if (isEmptySet(a) || isEmptySet(b)) return emptySet;
  return { member: a.member && b.member, children: combineChildren(a, b, intersection) };
}

/** The members of `a` that are not members of `b`. Members below a member of `b` stay. */
export function difference(a: PathSet = emptySet, b: PathSet = emptySet): PathSet {
  if (isEmptySet(b) || isEmptySet(a)) return a;
  return { member: a.member && !b.member, children: combineChildren(a, b, difference) };
}

/** Like `difference`, but it also removes members below a member of `b`. */
export function recursiveDifference(a: PathSet = emptySet, b: PathSet = emptySet): PathSet {
  if (b.member) return emptySet;
  if (isEmptySet(b) || isEmptySet(a)) return a;
  return { member: a.member, children: combineChildren(a, b, recursiveDifference) };
}

/** Only the members of `a` at or below the members of `b`. */
export function restrictTo(a: PathSet = emptySet, b: PathSet = emptySet): PathSet {
  if (b.member) return a;
  return { member: false, children: combineChildren(a, b, restrictTo) };
}

/** Makes every struct field on the way to a member a member itself (EnsureNamedFieldsAreMembers). */
export function withNamedFields(set: PathSet, ref: TypeRef | undefined): PathSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, PathSet>();
  for (const [element, child] of set.children) {
    const below = withNamedFields(child, elementType(ref, element));
    const named = below.children.size > 0 && isNamedField(ref, element);
    children.set(element, named && !below.member ? { member: true, children: below.children } : below);
  }
  return { member: set.member, children };
}

function mapTypeOf(ref: TypeRef | undefined): MapType | undefined {
  if (ref === undefined) return undefined;
  const type = typeFor(ref, {});
  return type.kind === "map" ? type : undefined;
}

function isNamedField(ref: TypeRef | undefined, element: string): boolean {
  return element.startsWith("f:") && (mapTypeOf(ref)?.fields.has(element.slice(2)) ?? false);
}

function elementType(ref: TypeRef | undefined, element: string): TypeRef | undefined {
  if (ref === undefined) return undefined;
  const type = ref();
  if (type.kind === "list") return type.element;
  const map = mapTypeOf(ref);
  return map === undefined ? undefined : memberType(map, element.slice(2));
}

/** A cache by identity. Stored objects never change in place, so a parsed or written set stays valid. */
const readSets = new WeakMap<JsonObject, PathSet>();
const writtenSets = new WeakMap<PathSet, JsonObject>();

/** Reads `fieldsV1`. A value that is not an object gives the empty set. */
export function readFieldsV1(fields: Json | undefined): PathSet {
  if (!isJsonObject(fields)) return emptySet;
  const known = readSets.get(fields);
  if (known !== undefined) return known;
  const set = { member: false, children: readChildren(fields) };
  readSets.set(fields, set);
  writtenSets.set(set, fields);
  return set;
}

function readChildren(fields: JsonObject): ReadonlyMap<string, PathSet> {
  const children = new Map<string, PathSet>();
  for (const [element, child] of Object.entries(fields)) {
    if (element === ".") continue;
    children.set(canonicalElement(element), readNode(isJsonObject(child) ? child : {}));
  }
  return children;
}

function readNode(fields: JsonObject): PathSet {
  const children = readChildren(fields);
  if (children.size === 0) return leaf;
  return { member: fields["."] !== undefined, children };
}

/** Another server may write keys and values with other spacing or in another order. */
function canonicalElement(element: string): string {
  if (element.startsWith("k:")) {
    const keys = parseJson(element.slice(2));
    return isJsonObject(keys) ? keyElement(keys) : element;
  }
  return element.startsWith("v:") ? valueElement(parseJson(element.slice(2))) : element;
}

/** Writes `fieldsV1`. */
export function writeFieldsV1(set: PathSet): JsonObject {
  const known = writtenSets.get(set);
  if (known !== undefined) return known;
  const fields = writeNode(set);
  writtenSets.set(set, fields);
  readSets.set(fields, set);
  return fields;
}

function writeNode(set: PathSet): JsonObject {
  const fields: Record<string, Json> = {};
  if (set.member && set.children.size > 0) fields["."] = {};
  for (const element of [...set.children.keys()].sort()) {
    fields[element] = writeNode(set.children.get(element) ?? emptySet);
  }
  return fields;
}

export function keyElement(keys: JsonObject): string {
  const sorted = Object.fromEntries(
    Object.keys(keys)
      .sort()
      .map((key) => [key, keys[key]]),
  );
  return `k:${stringifyJson(sorted)}`;
}

export function valueElement(value: Json): string {
  return `v:${stringifyJson(value)}`;
}

/** An element as error messages write it: `.data`, `[name="main"]`, `[="x"]`. */
export function elementText(element: string): string {
  if (element.startsWith("f:")) return `.${element.slice(2)}`;
  if (element.startsWith("v:")) return `[=${element.slice(2)}]`;
  if (!element.startsWith("k:")) return `[${element.slice(2)}]`;
  const keys = parseJson(element.slice(2));
  const parts = Object.entries(isJsonObject(keys) ? keys : {}).map(([key, value]) => `${key}=${stringifyJson(value)}`);
  return `[${parts.join(",")}]`;
}

/**
 * The members as error messages write them, in the order of the elements. A member comes before the members below it.
 */
export function pathTexts(set: PathSet): string[] {
  return [...(set.member ? [""] : []), ...textsBelow(set, "")];
}

function textsBelow(set: PathSet, prefix: string): string[] {
  const children = [...set.children.keys()].sort().map((element) => ({
    text: prefix + elementText(element),
    child: set.children.get(element) ?? emptySet,
  }));
  const members = children.filter(({ child }) => child.member).map(({ text }) => text);
  return [...members, ...children.flatMap(({ text, child }) => textsBelow(child, text))];
}
