/**
 * JSON as Kubernetes writes it: integers are 64 bits wide, and JavaScript numbers are not.
 *
 * Manifests travel from git to the API server through `parseJson` and `stringifyJson` only, so that
 * 9007199254740993 arrives as 9007199254740993 and not as its even neighbour.
 */

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Sixteen digits in a row is the shortest integer that may leave the safe range. */
const mayHoldUnsafeInteger = /\d{16}/;
const integerLiteral = /^-?\d+$/;

interface ReviverContext {
  readonly source?: string;
}

function keepIntegers(_key: string, value: unknown, context?: ReviverContext): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || context?.source === undefined) return value;
  return integerLiteral.test(context.source) ? BigInt(context.source) : value;
}

/**
 * Parses JSON text; integer literals outside ±(2^53 - 1) become `bigint`, everything else is as `JSON.parse` gives it.
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseJson(text: string): Json {
  return needsSources(text) ? JSON.parse(text, keepIntegers) : JSON.parse(text);
}

/** Whether integers of the text may have to be read digit by digit: that takes a multiple of the memory. */
export function needsSources(text: string): boolean {
  return mayHoldUnsafeInteger.test(text);
}

/** Writes JSON text; `bigint` becomes an integer literal, `undefined` members are left out. */
export function stringifyJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (error) {
    // It has a bigint, as few have: to ask of each member takes twice the time.
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, (_key, member) => (typeof member === "bigint" ? rawJson(member) : member), indent);
  }
}

function rawJson(value: bigint): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(value.toString());
}

/** True for a JSON object, false for null, lists and scalars. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * JSON text with the members of every object in code-point order: equal values give equal text, so its hash is an
 * identity. Used for digests, never for what is sent to a server.
 */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sortMembers(value));
}

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isJsonObject(value)) return value;
  const sorted: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) {
    const member = sortMembers(value[key]);
    // Set as others are, it would be no member.
    if (key === "__proto__") Object.defineProperty(sorted, key, { value: member, enumerable: true });
    else sorted[key] = member;
  }
  return sorted;
}
