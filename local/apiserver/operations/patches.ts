import { type Field, type MapType, memberType, type TypeRef, typeFor } from "#apiserver/apply/schema.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject, stringifyJson } from "#apiserver/json.ts";
import { badRequest, internalError, StatusError } from "#apiserver/status-error.ts";

type Draft = Record<string, Json>;

/** RFC 7386. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch;
  const merged: Draft = { ...(isJsonObject(target) ? (target as Draft) : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === undefined) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

const maxOperations = 10_000;

function unprocessable(): StatusError {
  return new StatusError(422, "the server rejected our request due to an error in our request", {
    reason: "Invalid",
    details: {},
  });
}

/**
 * RFC 6902 as Go's json-patch applies it: `replace` of a missing map member adds it. @throws StatusError 422 when an
 * operation does not fit the document, 413 above 10,000 operations.
 */
export function jsonPatch(target: Json, patch: Json): Json {
  if (!Array.isArray(patch)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${isJsonObject(patch) ? "object" : typeof patch} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > maxOperations) {
    throw new StatusError(
      413,
      `Request entity too large: The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patch.length}`,
      { reason: "RequestEntityTooLarge" },
    );
  }
  let document = target;
  for (const operation of patch as readonly Json[]) {
    if (!isJsonObject(operation)) throw unprocessable();
    document = applyOperation(document, operation);
  }
  return document;
}

function pointer(path: Json | undefined): string[] {
  if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) throw unprocessable();
  return path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function applyOperation(document: Json, operation: JsonObject): Json {
  const path = pointer(operation.path);
  const value = operation.value ?? null;
  switch (operation.op) {
    case "add":
      return edit(document, path, { kind: "add", value });
    case "replace":
      return edit(document, path, { kind: "replace", value });
    case "remove":
      return edit(document, path, { kind: "remove" });
    case "test":
      if (!deepEqual(read(document, path) ?? null, value)) throw unprocessable();
      return document;
    case "copy":
    case "move": {
      const from = pointer(operation.from);
      const found = read(document, from);
      if (found === undefined) throw unprocessable();
      const source = operation.op === "move" ? edit(document, from, { kind: "remove" }) : document;
      return edit(source, path, { kind: "add", value: found });
    }
    default:
      throw unprocessable();
  }
}

function read(document: Json | undefined, path: readonly string[]): Json | undefined {
  let value = document;
  for (const part of path) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (isJsonObject(value)) value = value[part];
    else return undefined;
  }
  return value;
}

type Edit = { readonly kind: "add" | "replace"; readonly value: Json } | { readonly kind: "remove" };

function edit(document: Json | undefined, path: readonly string[], change: Edit): Json {
  const [head, ...rest] = path;
  if (head === undefined) return change.kind === "remove" ? null : change.value;
  if (Array.isArray(document)) return editList([...document], { head, rest, change });
  if (!isJsonObject(document)) throw unprocessable();
  const copy: Draft = { ...(document as Draft) };
  if (rest.length > 0) {
    copy[head] = edit(document[head], rest, change);
  } else if (change.kind === "remove") {
    if (document[head] === undefined) throw unprocessable();
    delete copy[head];
  } else {
    copy[head] = change.value;
  }
  return copy;
}

function editList(
  list: Json[],
  at: { readonly head: string; readonly rest: readonly string[]; readonly change: Edit },
): Json {
  const { head, rest, change } = at;
  const inserting = rest.length === 0 && change.kind === "add";
  if (head === "-" && inserting) return [...list, change.value];
  const index = Number(head);
  const last = inserting ? list.length : list.length - 1;
  if (!/^-?\d+$/.test(head) || index > last || index < -list.length) throw unprocessable();
  const position = index < 0 ? list.length + index : index;
  if (rest.length > 0) list[position] = edit(list[position], rest, change);
  else if (change.kind === "add") list.splice(position, 0, change.value);
  else if (change.kind === "remove") list.splice(position, 1);
  else list[position] = change.value;
  return list;
}

/**
 * A strategic merge patch. It merges lists with a merge key item by item and supports the directives `$patch`,
 * `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList`.
 */
export function strategicMergePatch(ref: TypeRef, target: Json | undefined, patch: JsonObject): JsonObject {
  if (patch.$patch === "replace") return withoutDirectives(patch);
  if (patch.$patch === "delete") return {};
  const type = typeFor(ref, patch);
  const map: MapType = type.kind === "map" ? type : { kind: "map", name: "", fields: new Map(), atomic: false };
  const live: Draft = { ...(isJsonObject(target) ? (target as Draft) : {}) };
  const retain = patch.$retainKeys;
  if (Array.isArray(retain)) for (const key of Object.keys(live)) if (!retain.includes(key)) delete live[key];
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$") || value === undefined) continue;
    if (value === null) {
      delete live[key];
      continue;
    }
    const member = mergeMember({ ref: memberType(map, key), field: map.fields.get(key) }, live[key], value);
    if (member === undefined) delete live[key];
    else live[key] = member;
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$deleteFromPrimitiveList/") && Array.isArray(value)) dropItems(live, key.slice(25), value);
  }
  for (const [key, field] of map.fields) {
    const given = patch[`$setElementOrder/${key}`] ?? patch[key];
    if (field.mergeKey === undefined || !Array.isArray(given)) continue;
    orderItems(live, {
      key,
      order: given,
      server: isJsonObject(target) ? target[key] : undefined,
      mergeKey: field.mergeKey,
    });
  }
  return live;
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key, value]) => !key.startsWith("$") && value !== null));
}

interface Member {
  readonly ref: TypeRef | undefined;
  readonly field: Field | undefined;
}

function mergeMember({ ref, field }: Member, live: Json | undefined, value: Json): Json | undefined {
  if (isJsonObject(value)) {
    if (value.$patch === "delete") return undefined;
    return strategicMergePatch(ref ?? anyMap, live, value);
  }
  if (!Array.isArray(value) || field?.mergeKey === undefined) return value;
  const type = field.type();
  const element = type.kind === "list" ? type.element : anyMap;
  return mergeItems(Array.isArray(live) ? live : [], value, { mergeKey: field.mergeKey, element });
}

function anyMap(): MapType {
  return { kind: "map", name: "", fields: new Map(), element: anyMap, atomic: false };
}

function mergeItems(
  live: readonly Json[],
  patch: readonly Json[],
  how: { readonly mergeKey: string; readonly element: TypeRef },
): Json[] {
  const { mergeKey, element } = how;
  if (patch.some((item) => isJsonObject(item) && item.$patch === "replace")) {
    return patch.filter((item) => !(isJsonObject(item) && item.$patch === "replace"));
  }
  let items = [...live];
  for (const item of patch) {
    if (mergeKey === "" || !isJsonObject(item)) {
      if (!items.some((each) => deepEqual(each, item))) items.push(item);
      continue;
    }
    const key = item[mergeKey];
    if (key === undefined) throw internalError(`map: ${goMap(item)} does not contain declared merge key: ${mergeKey}`);
    const index = items.findIndex((each) => isJsonObject(each) && deepEqual(each[mergeKey], key));
    if (item.$patch === "delete")
      items = items.filter((each) => !(isJsonObject(each) && deepEqual(each[mergeKey], key)));
    else if (index < 0) items.push(strategicMergePatch(element, {}, item));
    else items[index] = strategicMergePatch(element, items[index], item);
  }
  return items;
}

/** A map as Go's `%v` prints it. */
function goMap(map: JsonObject): string {
  const parts = Object.keys(map)
    .sort()
    .map((key) => `${key}:${String(map[key])}`);
  return `map[${parts.join(" ")}]`;
}

function dropItems(live: Draft, key: string, items: readonly Json[]): void {
  const list = live[key];
  if (Array.isArray(list)) live[key] = list.filter((item: Json) => !items.some((each) => deepEqual(each, item)));
}

interface ListOrder {
  readonly key: string;
  /** The items of the patch, or its `$setElementOrder`. */
  readonly order: readonly Json[];
  readonly server: Json | undefined;
  readonly mergeKey: string;
}

/**
 * Puts the patch's items in its order and the others at the server's positions (normalizeElementOrder,
 * mergeSortedSlice).
 */
function orderItems(live: Draft, { key, order, server, mergeKey }: ListOrder): void {
  const list = live[key];
  if (!Array.isArray(list)) return;
  const identity = (item: Json) => stringifyJson(mergeKey !== "" && isJsonObject(item) ? item[mergeKey] : item);
  const patchOrder = order.map(identity);
  const serverOrder = (Array.isArray(server) ? server : []).map(identity);
  const named = list.filter((item: Json) => patchOrder.includes(identity(item)));
  named.sort((a: Json, b: Json) => patchOrder.indexOf(identity(a)) - patchOrder.indexOf(identity(b)));
  const others = list.filter((item: Json) => !patchOrder.includes(identity(item)));
  const merged: Json[] = [];
  while (named.length > 0 || others.length > 0) {
    const left = others[0];
    const right = named[0];
    const leftAt = left === undefined ? -1 : serverOrder.indexOf(identity(left));
    const rightAt = right === undefined ? -1 : serverOrder.indexOf(identity(right));
    const takeOther = right === undefined || (left !== undefined && leftAt >= 0 && rightAt >= 0 && leftAt < rightAt);
    const taken = takeOther ? others.shift() : named.shift();
    if (taken !== undefined) merged.push(taken);
  }
  live[key] = merged;
}
