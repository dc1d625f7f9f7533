import {
  builtinType,
  deducedRef,
  type Field,
  type MapType,
  scalarRef,
  type Type,
  type TypeRef,
} from "#apiserver/apply/schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";

/** An OpenAPI v3 schema as a CustomResourceDefinition contains it. */
export type StructuralSchema = JsonObject;

export function properties(schema: StructuralSchema): ReadonlyMap<string, StructuralSchema> {
  const entries = Object.entries(isJsonObject(schema.properties) ? schema.properties : {});
  return new Map(entries.filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1])));
}

function preserves(schema: StructuralSchema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}

function additional(schema: StructuralSchema): StructuralSchema | undefined {
  if (isJsonObject(schema.additionalProperties)) return schema.additionalProperties;
  return schema.additionalProperties === true ? { "x-kubernetes-preserve-unknown-fields": true } : undefined;
}

const metaFields: ReadonlyMap<string, Field> = new Map([
  ["apiVersion", plainField(scalarRef("string"))],
  ["kind", plainField(scalarRef("string"))],
  ["metadata", plainField(() => builtinType("meta.v1.ObjectMeta"))],
]);

function plainField(type: TypeRef): Field {
  return { type, zero: "leave", retainKeys: false };
}

/** The type that governs merges of custom resources with this schema. */
export function typeOfRoot(schema: StructuralSchema): TypeRef {
  let type: MapType | undefined;
  return () => {
    if (type !== undefined) return type;
    const root = typeOf(schema);
    const map: MapType =
      root.kind === "map" ? root : { kind: "map", name: "", fields: new Map(), element: deducedRef, atomic: false };
    type = { ...map, fields: new Map([...map.fields, ...metaFields]) };
    return type;
  };
}

function lazy(schema: StructuralSchema): TypeRef {
  let type: Type | undefined;
  return () => {
    type ??= typeOf(schema);
    return type;
  };
}

const scalarByType = { string: "string", integer: "numeric", number: "numeric", boolean: "boolean" } as const;

function typeOf(schema: StructuralSchema): Type {
  if (schema["x-kubernetes-int-or-string"] === true) return { kind: "scalar", scalar: "untyped" };
  const name = schema.type;
  if (name === "array") return listTypeOf(schema);
  if (name === "object") return mapTypeOf(schema);
  if (name === "string" || name === "integer" || name === "number" || name === "boolean") {
    return { kind: "scalar", scalar: scalarByType[name] };
  }
  return { kind: "any", deduced: true };
}

function mapTypeOf(schema: StructuralSchema): Type {
  const fields = new Map<string, Field>();
  for (const [key, child] of properties(schema)) {
    fields.set(key, { ...plainField(lazy(child)), ...(child.default === undefined ? {} : { default: child.default }) });
  }
  if (schema["x-kubernetes-embedded-resource"] === true) for (const [key, field] of metaFields) fields.set(key, field);
  const element = additional(schema);
  const elementRef = preserves(schema) ? deducedRef : element && lazy(element);
  const atomic = schema["x-kubernetes-map-type"] === "atomic";
  return { kind: "map", name: "", fields, ...(elementRef === undefined ? {} : { element: elementRef }), atomic };
}

function listTypeOf(schema: StructuralSchema): Type {
  const listType = schema["x-kubernetes-list-type"] ?? "atomic";
  const keys = schema["x-kubernetes-list-map-keys"];
  const element = isJsonObject(schema.items) ? lazy(schema.items) : deducedRef;
  const names = listType === "map" && Array.isArray(keys) ? keys.map(String) : [];
  return { kind: "list", element, atomic: listType === "atomic", keys: names };
}

/** Removes the fields that the schema does not know; `unknown` collects their paths. */
export function prune(
  schema: StructuralSchema,
  value: Json,
  at: { readonly path: string; readonly unknown: string[] },
): Json {
  if (Array.isArray(value)) {
    const items = isJsonObject(schema.items) ? schema.items : undefined;
    if (items === undefined) return value;
    return value.map((item: Json, index) => prune(items, item, { path: `${at.path}[${index}]`, unknown: at.unknown }));
  }
  if (!isJsonObject(value)) return value;
  const known = properties(schema);
  const other = additional(schema);
  const kept: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const path = at.path === "" ? key : `${at.path}.${key}`;
    const child = known.get(key) ?? other;
    const meta = schema["x-kubernetes-embedded-resource"] === true && metaFields.has(key);
    if (child !== undefined) kept[key] = prune(child, member, { path, unknown: at.unknown });
    else if (preserves(schema) || meta) kept[key] = member;
    else at.unknown.push(path);
  }
  return kept;
}

/** Sets the defaults of the schema. A null that the schema does not allow counts as absent. */
export function fillDefaults(schema: StructuralSchema, value: Json): Json {
  if (Array.isArray(value)) {
    const items = isJsonObject(schema.items) ? schema.items : undefined;
    return items === undefined ? value : value.map((item: Json) => fillDefaults(items, item));
  }
  if (!isJsonObject(value)) return value;
  const known = properties(schema);
  const other = additional(schema);
  const filled: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const child = known.get(key) ?? other;
    if (member === null && child !== undefined && child.nullable !== true && !preserves(child)) continue;
    filled[key] = child === undefined ? member : fillDefaults(child, member);
  }
  for (const [key, child] of known) {
    if (filled[key] === undefined && child.default !== undefined) filled[key] = fillDefaults(child, child.default);
  }
  return filled;
}
