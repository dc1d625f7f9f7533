import { stringifyJson } from "#shared/base/json.ts";

/** Characters that JSON allows, and that YAML forbids or reads as the end of a line. */
const special = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** The value as JSON that every YAML parser reads as the same value. */
export function jsonAsYaml(value: unknown): string {
  return yamlOfJson(stringifyJson(value));
}

/** The same for a text that is JSON. These characters occur only inside its strings. */
export function yamlOfJson(json: string): string {
  return json.replaceAll(special, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
