import { isJsonObject, type Json, type JsonObject, stringifyJson } from "#shared/base/json.ts";

/** A request may contain any time. */
const sentTime = "2026-01-01T00:00:00Z";

/** The values that the placeholders of a file stand for. Each is bound when it first appears. */
export class Bindings {
  readonly #values: Map<string, string>;
  /** Versions of lists; an object may later have the same one. */
  readonly #assumed: Map<string, string>;
  readonly #order: "strict" | "any";

  /** @param order - "any" does not compare the order of `<rv:N>`, because controllers write at the same time. */
  constructor(order: "strict" | "any" = "strict", from?: Bindings) {
    this.#values = new Map(from === undefined ? [] : from.#values);
    this.#assumed = new Map(from === undefined ? [] : from.#assumed);
    this.#order = order;
  }

  /** A copy for one answer, which replaces the original if the answer fits. */
  copy(): Bindings {
    return new Bindings(this.#order, this);
  }

  get(placeholder: string): string | undefined {
    return this.#values.get(placeholder);
  }

  /** Binds the placeholder, or compares it with its value. @returns the problem, or undefined if the value fits. */
  bind(placeholder: string, value: string): string | undefined {
    const known = this.#values.get(placeholder);
    if (known !== undefined) {
      const same = placeholder.startsWith(continued) ? positionIn(known) === positionIn(value) : known === value;
      return same ? undefined : `${placeholder} was ${known} and is now ${value}`;
    }
    this.#values.set(placeholder, value);
    return placeholder.startsWith("<rv:") && this.#order === "strict"
      ? this.#outOfOrder(placeholder, value)
      : undefined;
  }

  /** Binds the version of an object that may be unchanged and so have the version of an earlier placeholder. */
  take(placeholder: string | undefined, value: string | undefined): void {
    if (placeholder === undefined || value === undefined || this.#values.has(placeholder)) return;
    this.#values.set(placeholder, value);
  }

  /** Binds the version of an object that may have changed since the placeholder was bound. */
  move(placeholder: string | undefined, value: string | undefined): void {
    if (placeholder !== undefined && value !== undefined) this.#values.set(placeholder, value);
  }

  /** Notes the version of a list for later requests. No answer is compared with it. */
  assume(placeholder: string | undefined, value: string | undefined): void {
    if (placeholder !== undefined && value !== undefined) this.#assumed.set(placeholder, value);
  }

  /** Replaces every bound placeholder in the text, and expands repeats. */
  fill(text: string): string {
    return text
      .replaceAll(/<repeat:(.):(\d+)>/g, (_all, char: string, count: string) => char.repeat(Number(count)))
      .replaceAll("<time>", sentTime)
      .replaceAll(/<[a-z]+:\d+>/g, (name) => this.#values.get(name) ?? this.#assumed.get(name) ?? name);
  }

  /** A larger number in `<rv:N>` is a later version. */
  #outOfOrder(placeholder: string, value: string): string | undefined {
    const own = Number(/\d+/.exec(placeholder)?.[0]);
    for (const [other, otherValue] of this.#values) {
      if (!other.startsWith("<rv:") || other === placeholder) continue;
      const number = Number(/\d+/.exec(other)?.[0]);
      const right = number < own ? Number(otherValue) < Number(value) : Number(otherValue) > Number(value);
      if (!right) return `${placeholder} = ${value} is not ordered with ${other} = ${otherValue}`;
    }
    return undefined;
  }
}

const continued = "<continue:";

/** The position in a continue token, without its version: the leases of a real server raise it every ten seconds. */
function positionIn(token: string): string {
  try {
    const { rv: _version, ...position } = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    return JSON.stringify(position);
  } catch {
    return token;
  }
}

const patterns: Readonly<Record<string, string>> = {
  uid: "[0-9a-f-]{36}",
  rv: "\\d+",
  time: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z",
  ip: "\\d+\\.\\d+\\.\\d+\\.\\d+",
  nodeport: "\\d+",
  gen: "[a-z0-9]+",
  continue: "[A-Za-z0-9_=-]+",
};

const placeholderPattern = /<(uid|rv|ip|nodeport|gen|continue):\d+>|<(time|token|pem|hash|server|age|n)>/g;

/** The name of a scheme is a line of code in the build of the server. */
const schemeName = /(?<= in scheme )"[^"]*"/g;

const goDifference = "\n@@ ";

/** An object or struct as Go prints it. The order of its members varies, and messages of Go's decoder follow it. */
const quotedValue = /(Invalid value: )(?:"\{\\?"|\{"(?:labels|metadata)":).*/s;

function unifyText(expected: string, actual: string, bindings: Bindings): string | undefined {
  if (expected === "<left out>") return undefined;
  if (expected.search(schemeName) >= 0) {
    const unnamed = (text: string) => text.replaceAll(schemeName, "(any)");
    return unifyText(unnamed(expected), unnamed(actual), bindings);
  }
  // Only the text before the printed difference of two specs is compared.
  const cut = expected.indexOf(goDifference);
  if (cut >= 0) return unifyText(expected.slice(0, cut), actual.split(goDifference, 1)[0] ?? "", bindings);
  if (quotedValue.test(expected)) {
    const before = (text: string) => text.replace(quotedValue, "$1");
    return unifyText(before(expected), before(actual), bindings);
  }
  const filled = expected.replaceAll(/<repeat:(.):(\d+)>/g, (_all, char: string, count: string) =>
    char.repeat(Number(count)),
  );
  if (!filled.includes("<")) return filled === actual ? undefined : `expected ${short(expected)}, got ${short(actual)}`;
  const names: string[] = [];
  let pattern = "";
  let last = 0;
  for (const match of filled.matchAll(placeholderPattern)) {
    pattern += escapePattern(filled.slice(last, match.index));
    last = match.index + match[0].length;
    const known = match[1] === "continue" ? undefined : bindings.get(match[0]);
    pattern +=
      known === undefined ? `(${patterns[match[1] ?? match[2] ?? ""] ?? "[^]*?"})` : `(${escapePattern(known)})`;
    names.push(match[0]);
  }
  pattern += escapePattern(filled.slice(last));
  const found = new RegExp(`^${pattern}$`).exec(actual);
  if (found === null) return `expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`;
  for (const [index, name] of names.entries()) {
    if (!name.includes(":")) continue;
    const problem = bindings.bind(name, found[index + 1] ?? "");
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

export interface UnifyOptions {
  readonly bindings: Bindings;
  /** Whether members that the recording left out are not compared. */
  readonly partial: boolean;
  /** Paths that are not compared at all, such as `.message`. */
  readonly ignore: ReadonlySet<string>;
  /** The path of the values in the answer. */
  readonly path?: string;
}

/** Lists whose order varies. */
const setPath = /\.(causes|resourceRules|nonResourceRules)$/;

/** Every difference between a recorded value and an answer, each with its path. */
export function differences(expected: Json | undefined, actual: Json | undefined, options: UnifyOptions): string[] {
  const { path = "" } = options;
  if (options.ignore.has(path) || path.endsWith(".storageVersionHash")) return [];
  if (typeof expected === "string" && options.partial && isJsonObject(actual))
    return differences(expected, actual.name, options);
  if (typeof expected === "string") return textDifferences(expected, actual, options);
  if (path.endsWith(".managedFields") && Array.isArray(expected)) return managerDifferences(expected, actual, options);
  if (setPath.test(path) && Array.isArray(expected)) return setDifferences(expected, actual, options);
  if (options.partial && Array.isArray(expected) && Array.isArray(actual) && expected.every(isNamed)) {
    return namedDifferences(expected, actual, options);
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return [`${path}: expected a list, got ${short(actual)}`];
    if (actual.length !== expected.length)
      return [`${path}: expected ${expected.length} items, got ${actual.length}: ${short(actual)}`];
    return expected.flatMap((item: Json, index) =>
      differences(item, actual[index], { ...options, path: `${path}[${index}]` }),
    );
  }
  if (!isJsonObject(expected))
    return expected === actual ? [] : [`${path}: expected ${short(expected)}, got ${short(actual)}`];
  if (typeof expected["<item>"] === "string") return itemDifferences(expected["<item>"], actual, path);
  if (Array.isArray(expected["<left out>"]))
    return differences([...expected["<left out>"]].sort(), Object.keys(actual ?? {}).sort(), options);
  if (path === "" && isJsonObject(actual) && typeof expected.count === "number" && Array.isArray(actual.items))
    return differences(expected.count, actual.items.length, options);
  if (!isJsonObject(actual)) return [`${path}: expected an object, got ${short(actual)}`];
  if (expected.columnDefinitions !== undefined && expected.kind === "Table")
    return tableDifferences(expected, actual, options);
  const found = Object.keys(expected).flatMap((key) => {
    if (actual[key] === undefined) return [`${path}.${key}: is missing, expected ${short(expected[key])}`];
    return differences(expected[key], actual[key], { ...options, path: `${path}.${key}` });
  });
  if (options.partial) return found;
  const extra = Object.keys(actual).filter(
    (key) => expected[key] === undefined && !options.ignore.has(`${path}.${key}`),
  );
  return [...found, ...extra.map((key) => `${path}.${key}: is not expected: ${short(actual[key])}`)];
}

/** Compares columns by name, type and priority, cells except the age, and rows by their objects. */
function tableDifferences(expected: JsonObject, actual: JsonObject, options: UnifyOptions): string[] {
  const columns = (table: JsonObject) =>
    listOf(table.columnDefinitions).map((column) =>
      isJsonObject(column) ? `${String(column.name)}:${String(column.type)}:${String(column.priority)}` : "",
    );
  const left = columns(expected);
  const right = columns(actual);
  if (left.join() !== right.join()) return [`.columnDefinitions: expected ${left.join()}, got ${right.join()}`];
  const { columnDefinitions: _left, ...comparable } = expected;
  const { columnDefinitions: _right, ...given } = actual;
  return differences(comparable, given, options);
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The members that name an item of a discovery document. */
const nameKeys = ["name", "resource", "subresource", "version", "metadata"] as const;

function nameOf(item: Json): string | undefined {
  if (!isJsonObject(item)) return undefined;
  const key = nameKeys.find((each) => item[each] !== undefined);
  if (key === "metadata")
    return isJsonObject(item.metadata) && Object.keys(item.metadata).length < 2
      ? stringifyJson(item.metadata)
      : undefined;
  return key === undefined ? undefined : String(item[key]);
}

function isNamed(item: Json): boolean {
  return nameOf(item) !== undefined;
}

/** Compares the remaining items of a trimmed list by name. */
function namedDifferences(expected: readonly Json[], actual: readonly Json[], options: UnifyOptions): string[] {
  const { path = "" } = options;
  return expected.flatMap((item) => {
    const other = actual.find((each) => nameOf(each) === nameOf(item));
    return differences(item, other, { ...options, path: `${path}[${nameOf(item)}]` });
  });
}

function textDifferences(expected: string, actual: Json | undefined, options: UnifyOptions): string[] {
  const { path = "" } = options;
  if (expected === "<left out>") return [];
  if (path === ".message" && typeof actual === "string" && sameParts(expected, actual)) return [];
  const nodePort = expected.startsWith("<nodeport:") && typeof actual === "number";
  if (typeof actual !== "string" && !nodePort) return [`${path}: expected ${short(expected)}, got ${short(actual)}`];
  const problem = unifyText(expected, String(actual), options.bindings);
  return problem === undefined ? [] : [`${path}: ${problem}`];
}

/** Compares the errors within one message as a set. */
function sameParts(expected: string, actual: string): boolean {
  const parts = (text: string) => /^(.*? is invalid: )\[(.*)\]$/s.exec(text);
  const left = parts(expected);
  const right = parts(actual);
  if (left === null || right === null || left[1] !== right[1]) return false;
  return [...(left[2] ?? "")].sort().join("") === [...(right[2] ?? "")].sort().join("");
}

function itemDifferences(expected: string, actual: Json | undefined, path: string): string[] {
  const metadata = isJsonObject(actual) && isJsonObject(actual.metadata) ? actual.metadata : {};
  const got = `${String(metadata.namespace ?? "")}/${String(metadata.name)}`;
  return got === expected ? [] : [`${path}: expected ${expected}, got ${got}`];
}

const managerKeys = ["manager", "operation", "apiVersion", "subresource"] as const;

function managerKey(entry: Json): string {
  return isJsonObject(entry) ? managerKeys.map((key) => String(entry[key] ?? "")).join("|") : "";
}

/** Compares managedFields as a set of (manager, operation, apiVersion, subresource, fieldsV1). */
function managerDifferences(expected: readonly Json[], actual: Json | undefined, options: UnifyOptions): string[] {
  const { path = "" } = options;
  const given = Array.isArray(actual) ? actual : [];
  const left = expected.map(managerKey).sort();
  const right = given.map(managerKey).sort();
  if (left.join() !== right.join()) return [`${path}: expected ${left.join(" ")}, got ${right.join(" ")}`];
  return expected.flatMap((entry) => {
    const other = given.find((each: Json) => managerKey(each) === managerKey(entry));
    const fields = isJsonObject(entry) ? entry.fieldsV1 : undefined;
    return fieldDifferences(fields, isJsonObject(other) ? other.fieldsV1 : undefined, {
      ...options,
      path: `${path}<${managerKey(entry)}>`,
    });
  });
}

/** Compares fieldsV1, whose keys may contain placeholders: `k:{"uid":"<uid:4>"}`. */
function fieldDifferences(expected: Json | undefined, actual: Json | undefined, options: UnifyOptions): string[] {
  const filled =
    expected === undefined ? undefined : (JSON.parse(options.bindings.fill(stringifyJson(expected))) as Json);
  return differences(filled, actual, { ...options, partial: false });
}

function setDifferences(expected: readonly Json[], actual: Json | undefined, options: UnifyOptions): string[] {
  const { path = "" } = options;
  if (!Array.isArray(actual) || actual.length !== expected.length)
    return [`${path}: expected ${short(expected)}, got ${short(actual)}`];
  const left = [...actual] as Json[];
  const missing: string[] = [];
  for (const item of expected) {
    const index = left.findIndex((each) => differences(item, each, { ...options, path: `${path}[]` }).length === 0);
    if (index < 0) missing.push(`${path}: misses ${short(item)} in ${short(left)}`);
    else left.splice(index, 1);
  }
  return missing;
}

function short(value: Json | undefined): string {
  const text = value === undefined ? "nothing" : stringifyJson(value);
  return text.length > 300 ? `${text.slice(0, 300)}...` : text;
}
