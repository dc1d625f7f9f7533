import { YAMLException } from "js-yaml";
import { isJsonObject, type Json, type JsonObject, parseJson } from "#apiserver/json.ts";
import { goJsonProblem } from "#apiserver/operations/go-json.ts";
import { badRequest, unsupportedMediaType } from "#apiserver/status-error.ts";
import { parseYaml, parseYamlWithDuplicates } from "#apiserver/yaml-body.ts";

export type FieldValidation = "Ignore" | "Warn" | "Strict";

/** A parsed body, with the problems that a strict decoder reports. */
export interface ParsedBody {
  readonly value: Json;
  /** Paths of keys that occur twice in one object. */
  readonly duplicates: readonly string[];
}

const jsonOrYaml = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

export function mediaType(header: string | undefined): string {
  return (header ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** The part of an unreadable body that the server shows in its error. */
function summary(text: string): string {
  if (text === "") return "<empty>";
  const shown = text.startsWith("{") ? text : Buffer.from(text).toString("hex");
  return shown.length > 30 && !text.startsWith("{") ? `${shown.slice(0, 60)} ...` : shown;
}

/** Parses the body of a POST or PUT. @throws StatusError 400 or 415. */
export function parseObjectBody(text: string, contentType: string | undefined, kind: string): ParsedBody {
  const type = mediaType(contentType);
  if (type === "application/yaml") return { value: parseYaml(text), duplicates: [] };
  if (type !== "application/json" && type !== "") throw unsupportedMediaType(jsonOrYaml);
  const problem = goJsonProblem(text);
  if (problem !== undefined) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${problem} (${summary(text)})`,
    );
  }
  const value = parseJson(text);
  if (isJsonObject(value)) return { value, duplicates: duplicateKeys(text) };
  const what = Array.isArray(value) ? "array" : typeof value;
  throw badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: json: cannot unmarshal ${what} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (${summary(text)})`,
  );
}

/** The configuration of an apply in JSON or YAML, with warnings about duplicate keys. @throws StatusError 400. */
export function parseApplyBody(text: string, validation: FieldValidation): { value: JsonObject; warnings: string[] } {
  const trimmed = text.trimStart();
  try {
    if (trimmed.startsWith("{")) {
      const value = parseJson(text);
      if (isJsonObject(value)) return { value, warnings: [] };
    }
  } catch {
    // A text in YAML flow style is not JSON. The YAML decoder below reads it.
  }
  const warnings: string[] = [];
  const value = decodeApplyYaml(text, { warnings, strict: validation === "Strict" });
  if (isJsonObject(value)) return { value, warnings: validation === "Ignore" ? [] : warnings };
  throw badRequest("error decoding YAML: json: cannot unmarshal into Go value of type map[string]interface {}");
}

const goYamlReasons: Readonly<Record<string, string>> = {
  "bad indentation of a mapping entry": "mapping values are not allowed in this context",
};

function decodeApplyYaml(text: string, how: { readonly warnings: string[]; readonly strict: boolean }): Json {
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    if (error.reason !== "duplicated mapping key") {
      const reason = goYamlReasons[error.reason] ?? error.reason;
      throw badRequest(`error decoding YAML: error converting YAML to JSON: yaml: ${reason}`);
    }
    const line = (error.mark?.line ?? 0) + 1;
    const key = /^\s*(?:- )?"?([^":]+)"?\s*:/.exec(text.split("\n")[line - 1] ?? "")?.[1] ?? "";
    const problem = `line ${line}: key ${JSON.stringify(key)} already set in map`;
    if (how.strict) {
      throw badRequest(
        `error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ${problem}`,
      );
    }
    how.warnings.push(problem);
    return parseYamlWithDuplicates(text);
  }
}

/** The body of a patch other than apply. It is JSON, whatever its content type. @throws StatusError 400. */
export function parsePatch(text: string): Json {
  const problem = goJsonProblem(text);
  if (problem !== undefined) throw badRequest(`error decoding patch: ${problem}`);
  return parseJson(text);
}

/** Paths of object members that occur twice, in text order. The text must be valid JSON. */
function duplicateKeys(text: string): string[] {
  const found: string[] = [];
  const stack: { readonly path: string; readonly keys: Set<string> | undefined; index: number; key: string }[] = [];
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;
  let expectKey = false;
  for (const [part] of text.matchAll(token)) {
    const top = stack.at(-1);
    if (part === "{" || part === "[") {
      stack.push({ path: pathOf(top), keys: part === "{" ? new Set() : undefined, index: 0, key: "" });
      expectKey = part === "{";
    } else if (part === "}" || part === "]") {
      stack.pop();
      expectKey = false;
    } else if (part === ",") {
      if (top !== undefined) top.index += 1;
      expectKey = top?.keys !== undefined;
    } else if (part.startsWith('"') && expectKey && top?.keys !== undefined) {
      const key = String(JSON.parse(part));
      top.key = key;
      if (top.keys.has(key)) found.push(pathOf(top));
      top.keys.add(key);
      expectKey = false;
    }
  }
  return found;
}

function pathOf(
  top:
    | { readonly path: string; readonly keys: Set<string> | undefined; readonly index: number; readonly key: string }
    | undefined,
): string {
  if (top === undefined) return "";
  if (top.keys === undefined) return `${top.path}[${top.index}]`;
  return top.path === "" ? top.key : `${top.path}.${top.key}`;
}
