import type { Json, JsonObject } from "#shared/base/json.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";

/**
 * The object as YAML. Strings that contain `$` are written as Go writes them, without quotes where YAML allows it. A
 * substituted value then has the type that it looks like. Everything else is written as JSON.
 */
export function openYaml(object: JsonObject): string {
  return `${mapText(object, "").trimStart()}\n`;
}

const deeper = "  ";

function valueText(value: Json, indent: string): string {
  if (Array.isArray(value))
    return value.length === 0
      ? " []"
      : value.map((item: Json) => `\n${indent}-${valueText(item, indent + deeper)}`).join("");
  if (isJsonObject(value)) return mapText(value, indent);
  if (typeof value !== "string" || !value.includes("$")) return ` ${jsonAsYaml(value)}`;
  return ` ${isLiteral(value) ? literal(value, indent) : line(value)}`;
}

function mapText(map: JsonObject, indent: string): string {
  const members = Object.entries(map).flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]));
  if (members.length === 0) return " {}";
  return members
    .map(
      ([key, value]) =>
        `\n${indent}${key.includes("$") ? line(key) : jsonAsYaml(key)}:${valueText(value, indent + deeper)}`,
    )
    .join("");
}

/** Characters for which Go uses double quotes: control characters and invalid characters. */
const unfit = /[^\n\u0020-\u007e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;

function isLiteral(text: string): boolean {
  return text.includes("\n") && !unfit.test(text) && !/ \n/.test(text) && !text.endsWith(" ");
}

function literal(text: string, indent: string): string {
  const chomping = text.endsWith("\n") ? (/^\n*$|\n\n$/.test(text) ? "+" : "") : "-";
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${deeper.length}${chomping}\n${lines.map((each) => (each === "" ? "" : `${indent}${each}`)).join("\n")}`;
}

/**
 * Without quotes when the first character, colons, number signs and blanks have no special meaning, otherwise in single
 * quotes.
 */
function line(text: string): string {
  if (unfit.test(text) || text.includes("\n")) return jsonAsYaml(text);
  const isPlain = !/^[-?:,[\]{}#&*!|>'"%@`\s]|: |:$| #|\s$/.test(text) && !/^(?:---|\.\.\.)/.test(text);
  return isPlain || /^[-?:](?=[^\s])(?!.*(?:: | #|:$|\s$))/.test(text) ? text : `'${text.replaceAll("'", "''")}'`;
}
