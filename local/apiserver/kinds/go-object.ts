import {
  type Field,
  type ListType,
  type MapType,
  type ScalarName,
  type Type,
  type TypeRef,
  typeFor,
} from "#apiserver/apply/schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { applyDefaults, type Draft } from "#apiserver/kinds/defaults.ts";
import { canonicalQuantity } from "#apiserver/kinds/quantity.ts";

/** A value that does not fit the Go struct. */
export class DecodeError extends Error {}

export interface GoOptions {
  /** Collects the paths of fields that the struct does not have. */
  readonly unknown?: string[];
  readonly defaults: "fill" | "leave";
}

interface Place {
  readonly path: string;
  /** The struct and the path as Go's JSON decoder writes them: `ObjectMeta.metadata.labels`. */
  readonly struct: string;
}

/**
 * An object as the server stores it: decoded into its Go struct, defaulted and encoded again. This drops unknown
 * fields, nulls and empty optional values. Quantities become canonical, and a struct that is not a pointer appears as
 * `{}`. @throws DecodeError where a value has the wrong type.
 */
export function toGoObject(ref: TypeRef, value: JsonObject, options: GoOptions): JsonObject {
  const object = convert(ref, value, { place: { path: "", struct: "" }, options });
  return isJsonObject(object) ? object : {};
}

/** A part of an object, such as its status, as the server stores it. @throws DecodeError. */
export function toGoPart(object: TypeRef, name: string, value: Json): Json {
  const type = object();
  const ref = type.kind === "map" ? type.fields.get(name)?.type : undefined;
  if (ref === undefined) return value;
  return convert(ref, value, { place: { path: name, struct: "" }, options: { defaults: "fill" } }) ?? null;
}

interface Walk {
  readonly place: Place;
  readonly options: GoOptions;
}

function convert(ref: TypeRef, value: Json | undefined, walk: Walk): Json | undefined {
  const any = ref().kind === "any";
  if (value === null || value === undefined || any) return value ?? undefined;
  const type = typeFor(ref, value);
  if (type.kind === "scalar") return convertScalar(type.scalar, value, walk.place);
  if (type.kind === "list") return convertList(type, value, walk);
  if (!isJsonObject(value)) throw wrongType(value, walk.place, goStructName(type));
  return type.fields.size > 0 ? convertStruct(type, value, walk) : convertMap(type, value, walk);
}

const goTypeNames: Readonly<Record<ScalarName, string>> = {
  string: "string",
  bytes: "[]uint8",
  numeric: "int32",
  boolean: "bool",
  untyped: "string",
  quantity: "resource.Quantity",
  time: "v1.Time",
  intOrString: "intstr.IntOrString",
};

function jsonTypeName(value: Json): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number" && !Number.isInteger(value)) return `number ${value}`;
  return typeof value === "bigint" ? "number" : typeof value;
}

function wrongType(value: Json, place: Place, goType: string): DecodeError {
  const path = place.path.replaceAll(/\[\d+\]/g, "");
  return new DecodeError(
    `json: cannot unmarshal ${jsonTypeName(value)} into Go struct field ${place.struct}.${path} of type ${goType}`,
  );
}

/** The name of a struct as Go prints it: `core.v1.Container` becomes `v1.Container`. */
function goStructName(type: Type): string {
  if (type.kind !== "map") return "string";
  return type.name === "" ? "map[string]string" : type.name.slice(type.name.indexOf(".") + 1);
}

const scalarTypes: Readonly<Record<ScalarName, readonly string[]>> = {
  string: ["string"],
  bytes: ["string"],
  numeric: ["number", "bigint"],
  boolean: ["boolean"],
  untyped: ["string", "number", "bigint", "boolean"],
  quantity: ["string", "number", "bigint"],
  time: ["string"],
  intOrString: ["string", "number", "bigint"],
};

function convertScalar(scalar: ScalarName, value: Json, place: Place): Json {
  if (!scalarTypes[scalar].includes(typeof value)) throw wrongType(value, place, goTypeNames[scalar]);
  if (scalar === "numeric" && typeof value === "number" && !Number.isInteger(value)) {
    throw wrongType(value, place, goTypeNames[scalar]);
  }
  if (scalar === "quantity") {
    const canonical = canonicalQuantity(String(value));
    if (canonical !== undefined) return canonical;
    throw new DecodeError(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
  }
  if (scalar === "bytes") return checkBase64(String(value));
  return value;
}

function checkBase64(text: string): string {
  const bad = /[^A-Za-z0-9+/=\r\n]/.exec(text);
  if (bad !== null) throw new DecodeError(`illegal base64 data at input byte ${bad.index}`);
  const plain = text.replace(/[\r\n]/g, "");
  if (plain.length % 4 !== 0)
    throw new DecodeError(`illegal base64 data at input byte ${plain.length - (plain.length % 4)}`);
  return plain;
}

function convertList(type: ListType, value: Json, walk: Walk): Json {
  if (!Array.isArray(value)) throw wrongType(value, walk.place, `[]${goStructName(type.element())}`);
  return value.map((item: Json, index) => {
    const place = { path: `${walk.place.path}[${index}]`, struct: walk.place.struct };
    const converted = convert(type.element, item, { place, options: walk.options });
    return converted ?? zeroOf(type.element, walk);
  });
}

function zeroOf(ref: TypeRef, walk: Walk): Json {
  const type = ref();
  if (type.kind === "map") return type.fields.size > 0 ? convertStruct(type, {}, walk) : {};
  if (type.kind !== "scalar") return null;
  if (type.scalar === "numeric") return 0;
  if (type.scalar === "boolean") return false;
  return type.scalar === "quantity" ? "0" : "";
}

function convertMap(type: MapType, value: JsonObject, walk: Walk): JsonObject {
  const out: Draft = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined || type.element === undefined) continue;
    out[key] = convert(type.element, member, walk) ?? zeroOf(type.element, walk);
  }
  return out;
}

function convertStruct(type: MapType, value: JsonObject, walk: Walk): JsonObject {
  const out: Draft = {};
  const prefix = walk.place.path === "" ? "" : `${walk.place.path}.`;
  const struct = type.name.slice(type.name.lastIndexOf(".") + 1);
  function fill(name: string, field: Field): void {
    const at: Walk = { place: { path: prefix + name, struct }, options: walk.options };
    const member = convertField(field, value[name], at);
    if (member !== undefined) out[name] = member;
  }
  // Given fields come first, so that unknown fields are reported in the order of the text.
  for (const name of Object.keys(value)) {
    const field = type.fields.get(name);
    if (field === undefined) walk.options.unknown?.push(prefix + name);
    else fill(name, field);
  }
  for (const [name, field] of type.fields) if (value[name] === undefined) fill(name, field);
  if (walk.options.defaults === "fill") applyDefaults(type.name, out);
  return out;
}

function convertField(field: Field, value: Json | undefined, walk: Walk): Json | undefined {
  const member = convert(field.type, value, walk);
  if (member === undefined) return absent(field, walk);
  switch (field.zero) {
    case "dropZero":
      return member === "" || member === 0 || member === false ? undefined : member;
    case "dropEmpty":
      return isJsonObject(member) && Object.keys(member).length === 0 ? undefined : member;
    case "leave":
      return isEmptyCollection(field, member) ? undefined : member;
    default:
      return member;
  }
}

function absent(field: Field, walk: Walk): Json | undefined {
  if (field.zero === "fill" || field.zero === "keepZero") return zeroOf(field.type, walk);
  return field.zero === "empty" ? null : undefined;
}

/** `omitempty` omits empty lists and maps, but not pointers to empty structs. */
function isEmptyCollection(field: Field, member: Json): boolean {
  if (Array.isArray(member)) return member.length === 0;
  if (!isJsonObject(member) || Object.keys(member).length > 0) return false;
  const type = field.type();
  return type.kind === "map" && type.fields.size === 0;
}
