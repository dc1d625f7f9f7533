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

/** So many digits in a row is the shortest integer that may leave the safe range. */
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
 * Parses JSON text; integer literals outside ±(2^53 - 1) become `bigint`, everything else is as `JSON.parse` gives it.
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseJson(text: string): Json {
  return parseMeasuredJson(text, { hasLongNumbers: mayHoldUnsafeInteger.test(text) });
}

/**
 * The same of a text that was looked through already.
 * @param found.hasLongNumbers - one has `unsafeDigits` in a row: it is read digit by digit, for a multiple of the memory.
 */
export function parseMeasuredJson(text: string, found: { readonly hasLongNumbers: boolean }): Json {
  return found.hasLongNumbers ? JSON.parse(text, keepIntegers) : JSON.parse(text);
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

/**
 * What is in order already is given back as it is: most of what a server says of fields is. Every answer to an apply comes
 * through here twice, so that nothing is made in between.
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
  // Set as others are, it would be no member.
  if (name === "__proto__") Object.defineProperty(object, name, { value, enumerable: true });
  else object[name] = value;
}
