/** JSON as Kubernetes writes it. Its integers have 64 bits; JavaScript numbers cannot hold all of them. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** An unsafe integer has at least sixteen digits in a row. Texts without one take the faster parser. */
const mayHoldUnsafeInteger = /\d{16}/;

function keepIntegers(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || context?.source === undefined) return value;
  return /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

/** Parses JSON; integers outside ±(2^53 - 1) become `bigint`. @throws SyntaxError as `JSON.parse` does. */
export function parseJson(text: string): Json {
  return mayHoldUnsafeInteger.test(text) ? JSON.parse(text, keepIntegers) : JSON.parse(text);
}

/** Writes JSON; a `bigint` becomes an integer literal. */
export function stringifyJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_key, member) => (typeof member === "bigint" ? rawJson(member) : member), indent);
}

function rawJson(value: bigint): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(value.toString());
}

/** True for a JSON object; false for null, lists and scalars. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON with sorted members, so that equal values give equal text. */
export function canonicalJson(value: Json): string {
  return stringifyJson(sortMembers(value));
}

function sortMembers(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((each: Json) => sortMembers(each) ?? null);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortMembers(value[key])]),
  );
}
