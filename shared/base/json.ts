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

/** The fewest digits of an integer outside of the safe range. */
export const unsafeDigits = 16;
const mayHoldUnsafeInteger = new RegExp(`\\d{${unsafeDigits}}`);
const integerLiteral = /^-?\d+$/;

interface ReviverContext {
  readonly source?: string;
}

function keepIntegers(_key: string, value: unknown, context?: ReviverContext): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || context?.source === undefined) return value;
  return integerLiteral.test(context.source) ? BigInt(context.source) : value;
}

/**
 * Parses JSON text. Integer literals outside ±(2^53 - 1) become `bigint`; everything else is as in `JSON.parse`.
 * @throws SyntaxError like `JSON.parse`.
 */
export function parseJson(text: string): Json {
  return parseMeasuredJson(text, { hasLongNumbers: mayHoldUnsafeInteger.test(text) });
}

/**
 * The same for a text that was already measured.
 * @param found.hasLongNumbers - the text has `unsafeDigits` in a row, and is read digit by digit, which needs several
 * times the memory.
 */
export function parseMeasuredJson(text: string, found: { readonly hasLongNumbers: boolean }): Json {
  return found.hasLongNumbers ? JSON.parse(text, keepIntegers) : JSON.parse(text);
}

/** Writes JSON text; `bigint` becomes an integer literal, `undefined` members are left out. */
export function stringifyJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (error) {
    // The value contains a bigint, which is rare. Checking each member in advance would take twice the time.
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
 * JSON text with the members of every object in code-point order. Equal values give equal text, so that its hash is an
 * identity. It is for digests, not for requests to a server.
 */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sortMembers(value));
}

/**
 * A value that is already in order is returned unchanged, which is true for most answers of a server. Every answer to
 * an apply passes through here twice, so that no copies are made.
 */
function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return sortItems(value);
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value);
  const isInOrder = isAscending(names);
  if (!isInOrder) names.sort();
  let sorted: Record<string, unknown> | undefined = isInOrder ? undefined : {};
  for (const [index, name] of names.entries()) {
    const member = sortMembers(value[name]);
    if (sorted === undefined && member !== value[name]) sorted = copyOf(value, names.slice(0, index));
    if (sorted !== undefined) setMember(sorted, name, member);
  }
  return sorted ?? value;
}

function sortItems(items: readonly unknown[]): readonly unknown[] {
  let isSame = true;
  const sorted = items.map((item) => {
    const same = sortMembers(item);
    if (same !== item) isSame = false;
    return same;
  });
  return isSame ? items : sorted;
}

function isAscending(names: readonly string[]): boolean {
  let before = "";
  for (const name of names) {
    if (name < before) return false;
    before = name;
  }
  return true;
}

function copyOf(value: JsonObject, names: readonly string[]): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of names) setMember(copy, name, value[name]);
  return copy;
}

function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  // A normal assignment of `__proto__` would not create a member.
  if (name === "__proto__") Object.defineProperty(object, name, { value, enumerable: true });
  else object[name] = value;
}
