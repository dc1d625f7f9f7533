import { readFileSync } from "node:fs";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";

/**
 * The value type of a scalar. All scalars except `numeric` and `boolean` are strings in JSON; `quantity` and
 * `intOrString` may also be numbers.
 */
export type ScalarName = "string" | "numeric" | "boolean" | "untyped" | "quantity" | "time" | "bytes" | "intOrString";

export interface ScalarType {
  readonly kind: "scalar";
  readonly scalar: ScalarName;
}

export interface ListType {
  readonly kind: "list";
  readonly element: TypeRef;
  readonly atomic: boolean;
  /** The keys of a map list. A list that has no keys and is not atomic is a set. */
  readonly keys: readonly string[];
}

export interface MapType {
  readonly kind: "map";
  /** The Go type (`core.v1.PodSpec`), used to find defaults; empty for maps and custom resources. */
  readonly name: string;
  readonly fields: ReadonlyMap<string, Field>;
  readonly element?: TypeRef;
  readonly atomic: boolean;
}

/** Content without a schema. Lists are atomic. Maps are atomic too, unless the content is `deduced`. */
export interface AnyType {
  readonly kind: "any";
  readonly deduced: boolean;
}

export type Type = ScalarType | ListType | MapType | AnyType;
/** Types refer to each other in cycles, so the code resolves a reference only when it follows it. */
export type TypeRef = () => Type;

/**
 * How Go writes a field without a value. `leave` omits it. `fill` writes an empty struct. `empty` writes null.
 * `dropZero` omits an explicit zero. `keepZero` writes the zero. `dropEmpty` omits an empty struct.
 */
export type ZeroRule = "leave" | "fill" | "empty" | "dropZero" | "keepZero" | "dropEmpty";

export interface Field {
  readonly type: TypeRef;
  readonly zero: ZeroRule;
  /** The value of this key when a list item does not have it. */
  readonly default?: Json;
  /** The patchMergeKey of a strategic merge patch; empty for a list of scalars that is merged as a set. */
  readonly mergeKey?: string;
  readonly retainKeys: boolean;
}

const zeroRules: Readonly<Record<string, ZeroRule>> = {
  "": "leave",
  f: "fill",
  e: "empty",
  z: "dropZero",
  "0": "keepZero",
  o: "dropEmpty",
};

const scalarNames: Readonly<Record<string, ScalarName>> = {
  s: "string",
  n: "numeric",
  b: "boolean",
  u: "untyped",
  Q: "quantity",
  T: "time",
  B: "bytes",
  i: "intOrString",
};

const scalarRefs: ReadonlyMap<string, TypeRef> = new Map(
  Object.entries(scalarNames).map(([code, scalar]) => {
    const type: ScalarType = { kind: "scalar", scalar };
    return [code, () => type];
  }),
);

const atomicAny: AnyType = { kind: "any", deduced: false };
const deducedAny: AnyType = { kind: "any", deduced: true };

/** The type of content without a schema that is merged key by key. */
export function deducedRef(): Type {
  return deducedAny;
}

/** A reference to the type of a scalar. */
export function scalarRef(scalar: ScalarName): TypeRef {
  const type: ScalarType = { kind: "scalar", scalar };
  return () => type;
}

/**
 * The types of the built-in kinds, one `[name, type, wire fields]` per line, derived from Kubernetes 1.36.2
 * (Apache-2.0). Structure, list types, keys and key defaults come from client-go
 * `applyconfigurations/internal/internal.go`. `omitempty`, pointers and patch strategies come from the struct tags of
 * k8s.io/api. `f` holds fields as `type` or `[type, zero rule, {d: default, p: merge key, rk: retain keys}]`, `m` the
 * element of a map, `l` and `k` the element and keys of a list, `a` marks an atomic type. The wire fields are the
 * numbers in the type's `generated.proto`, see `WireFields`.
 */
const builtinTypesFile = new URL("./builtin-types.ndjson", import.meta.url);

interface Definition {
  readonly type: JsonObject;
  readonly wire: string;
}

let definitions: ReadonlyMap<string, Definition> | undefined;
const resolved = new Map<string, Type>();

function builtinDefinition(name: string): Definition {
  definitions ??= new Map(
    readFileSync(builtinTypesFile, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const [each, type, wire = ""] = JSON.parse(line) as [string, JsonObject, string?];
        return [each, { type, wire }];
      }),
  );
  const definition = definitions.get(name);
  if (definition === undefined) throw new Error(`builtin-types.ndjson has no type "${name}"`);
  return definition;
}

/** The fields of a protobuf message by number. A struct that JSON inlines is a nested message here. */
export type WireFields = ReadonlyMap<number, string | WireFields>;

/** The wire fields of a built-in struct. The file lists names in the order of their numbers; `7=` skips to number 7. */
export function builtinWireFields(name: string): WireFields {
  const tokens = builtinDefinition(name).wire.matchAll(/(?:(\d+)=)?(\(|[^\s()]+)|\)/g);
  return readWireFields(tokens);
}

function readWireFields(tokens: Iterator<RegExpExecArray>): WireFields {
  const fields = new Map<number, string | WireFields>();
  let number = 0;
  for (let next = tokens.next(); !next.done && next.value[0] !== ")"; next = tokens.next()) {
    const [, given, field = ""] = next.value;
    number = given === undefined ? number + 1 : Number(given);
    fields.set(number, field === "(" ? readWireFields(tokens) : field);
  }
  return fields;
}

/** The type of a built-in struct, such as `apps.v1.Deployment`. @throws Error when no struct has that name. */
export function builtinType(name: string): Type {
  const known = resolved.get(name);
  if (known !== undefined) return known;
  const type = readStruct(name, builtinDefinition(name).type);
  resolved.set(name, type);
  return type;
}

function readStruct(name: string, definition: JsonObject): Type {
  if (typeof definition.$ === "string") return readRef(definition.$)();
  const fields = new Map<string, Field>();
  for (const [field, code] of Object.entries(isJsonObject(definition.f) ? definition.f : {})) {
    fields.set(field, readField(code ?? null));
  }
  const element = definition.m === undefined ? {} : { element: readRef(definition.m) };
  return { kind: "map", name, fields, ...element, atomic: definition.a === 1 };
}

function readField(code: Json): Field {
  if (!Array.isArray(code)) return { type: readRef(code), zero: "leave", retainKeys: false };
  const [type, zero, extra] = code;
  const options = isJsonObject(extra) ? extra : {};
  return {
    type: readRef(type),
    zero: zeroRules[typeof zero === "string" ? zero : ""] ?? "leave",
    ...(options.d === undefined ? {} : { default: options.d }),
    ...(typeof options.p === "string" ? { mergeKey: options.p } : {}),
    retainKeys: options.rk === 1,
  };
}

function readRef(code: Json): TypeRef {
  if (typeof code === "string") return readNamedRef(code);
  if (!isJsonObject(code)) throw new Error(`builtin-types.ndjson: no type: ${JSON.stringify(code)}`);
  if (code.l !== undefined) {
    const keys = Array.isArray(code.k) ? code.k.map(String) : [];
    const list: ListType = { kind: "list", element: readRef(code.l), atomic: code.k === undefined, keys };
    return () => list;
  }
  if (code.m !== undefined) {
    const map: MapType = { kind: "map", name: "", fields: new Map(), element: readRef(code.m), atomic: code.a === 1 };
    return () => map;
  }
  const target = readRef(code.a ?? null);
  return () => {
    const type = target();
    return type.kind === "map" ? { ...type, atomic: true } : type;
  };
}

function readNamedRef(code: string): TypeRef {
  if (code === "X") return () => atomicAny;
  if (code === "U") return deducedRef;
  if (code.startsWith("@")) return () => builtinType(code.slice(1));
  const scalar = scalarRefs.get(code);
  if (scalar === undefined) throw new Error(`builtin-types.ndjson: no scalar "${code}"`);
  return scalar;
}

const anyScalar: ScalarType = { kind: "scalar", scalar: "untyped" };
const anyList: ListType = { kind: "list", element: () => atomicAny, atomic: true, keys: [] };
const atomicMap: MapType = { kind: "map", name: "", fields: new Map(), element: () => atomicAny, atomic: true };
const deducedMap: MapType = { kind: "map", name: "", fields: new Map(), element: deducedRef, atomic: false };

/** The type of a value. Content without a schema gets the type of its JSON form (structured-merge-diff, deduceAtom). */
export function typeFor(ref: TypeRef, value: Json | undefined): ScalarType | ListType | MapType {
  const type = ref();
  if (type.kind !== "any") return type;
  if (Array.isArray(value)) return anyList;
  if (isJsonObject(value)) return type.deduced ? deducedMap : atomicMap;
  return anyScalar;
}

/** The type of a member of a map; undefined where the schema does not know the field. */
export function memberType(type: MapType, key: string): TypeRef | undefined {
  return type.fields.get(key)?.type ?? type.element;
}
