import {
  builtinType,
  builtinWireFields,
  type ScalarName,
  type Type,
  type WireFields,
} from "#apiserver/apply/schema.ts";
import { type Json, type JsonObject, parseJson, stringifyJson } from "#apiserver/json.ts";
import { apiVersionParts, goTypeName } from "#apiserver/kinds/kind.ts";

/** One field of a message: an integer or bytes. */
interface WireValue {
  readonly number: number;
  readonly value: bigint | Buffer;
}

const wire = { varint: 0n, fixed64: 1n, bytes: 2n, fixed32: 5n } as const;

/** @throws RangeError when the message is cut off, Error for a wire type that proto2 does not use. */
function* readMessage(message: Buffer): Generator<WireValue> {
  let at = 0;
  function varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  while (at < message.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const type = tag & 7n;
    if (type === wire.varint) {
      yield { number, value: BigInt.asIntN(64, varint()) };
      continue;
    }
    const length = type === wire.bytes ? Number(varint()) : type === wire.fixed64 ? 8 : 4;
    if (type !== wire.bytes && type !== wire.fixed64 && type !== wire.fixed32) throw new Error(`wire type ${type}`);
    if (at + length > message.length) throw new RangeError("the message ends within a field");
    yield { number, value: message.subarray(at, at + length) };
    at += length;
  }
}

function bytesOf(value: bigint | Buffer | undefined): Buffer {
  return typeof value === "bigint" || value === undefined ? Buffer.alloc(0) : value;
}

function numberOf(value: bigint | Buffer | undefined): Json {
  if (typeof value !== "bigint") return bytesOf(value).length === 8 ? bytesOf(value).readDoubleLE() : 0;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** The last value of each field, for messages without repeated fields. */
function members(value: bigint | Buffer): ReadonlyMap<number, bigint | Buffer> {
  return new Map([...readMessage(bytesOf(value))].map((field) => [field.number, field.value]));
}

/** The JSON inside a RawExtension or FieldsV1. */
function rawJson(value: bigint | Buffer): Json | undefined {
  const raw = bytesOf(members(value).get(1));
  return raw.length === 0 ? undefined : parseJson(raw.toString());
}

const scalarReaders: Readonly<Record<ScalarName, (value: bigint | Buffer) => Json | undefined>> = {
  string: (value) => bytesOf(value).toString(),
  bytes: (value) => bytesOf(value).toString("base64"),
  boolean: (value) => value !== 0n,
  numeric: numberOf,
  quantity: (value) => bytesOf(members(value).get(1)).toString(),
  untyped: rawJson,
  intOrString: (value) => {
    const parts = members(value);
    return parts.get(1) === 1n ? bytesOf(parts.get(3)).toString() : numberOf(parts.get(2));
  },
  time: (value) => {
    const seconds = members(value).get(1);
    // An empty message is Go's zero time, which JSON omits.
    return seconds === undefined ? undefined : new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z");
  },
};

function readValue(type: Type, value: bigint | Buffer): Json | undefined {
  if (type.kind === "scalar") return scalarReaders[type.scalar](value);
  if (type.kind === "any") return rawJson(value);
  // A list in a place for one value is a message of its own, for example in the extra of a user.
  if (type.kind === "list")
    return [...readMessage(bytesOf(value))].flatMap((item) => readValue(type.element(), item.value) ?? []);
  if (type.name === "") throw new Error("a map is read entry by entry");
  const object: Record<string, Json> = {};
  readFields(type.name, builtinWireFields(type.name), bytesOf(value), object);
  return object;
}

/** Adds the fields of a message to an object. A struct that JSON inlines is a nested message. */
function readFields(typeName: string, fields: WireFields, message: Buffer, object: Record<string, Json>): void {
  const type = builtinType(typeName);
  for (const { number, value } of readMessage(message)) {
    const field = fields.get(number);
    if (field === undefined || type.kind !== "map") continue;
    if (typeof field !== "string") {
      readFields(typeName, field, bytesOf(value), object);
      continue;
    }
    const fieldType = type.fields.get(field)?.type();
    if (fieldType === undefined) continue;
    const read = readField(fieldType, value, object[field]);
    if (read !== undefined) object[field] = read;
  }
}

function readField(type: Type, value: bigint | Buffer, before: Json | undefined): Json | undefined {
  if (type.kind === "list") {
    const item = readValue(type.element(), value);
    return [...(Array.isArray(before) ? (before as readonly Json[]) : []), ...(item === undefined ? [] : [item])];
  }
  if (type.kind !== "map" || type.element === undefined) return readValue(type, value);
  const entry = members(value);
  const element = readValue(type.element(), entry.get(2) ?? Buffer.alloc(0));
  return { ...(before as JsonObject | undefined), [bytesOf(entry.get(1)).toString()]: element ?? null };
}

const magic = Buffer.from("k8s\0");

/**
 * The JSON of a body that client-go sent as `application/vnd.kubernetes.protobuf`. Such a body is an envelope
 * (runtime.Unknown) with the apiVersion, the kind and the encoded object. Undefined where no built-in type fits.
 */
export function protobufToJson(body: Buffer): string | undefined {
  if (!body.subarray(0, magic.length).equals(magic)) return undefined;
  try {
    const envelope = members(body.subarray(magic.length));
    const named = members(bytesOf(envelope.get(1)));
    const [apiVersion, kind] = [1, 2].map((number) => bytesOf(named.get(number)).toString());
    if (apiVersion === undefined || kind === undefined) return undefined;
    const own = goTypeName({ ...apiVersionParts(apiVersion), kind });
    const typeName = kind === "DeleteOptions" ? "meta.v1.DeleteOptions" : own;
    const object = readValue(builtinType(typeName), bytesOf(envelope.get(2)));
    return stringifyJson({ ...(object as JsonObject), apiVersion, kind });
  } catch {
    // The body is cut off or has an unknown type. The server answers as for any unknown format.
    return undefined;
  }
}
