import { stringifyJson } from "#shared/base/json.ts";

/** What JSON may hold as it is and YAML may not, or reads as the end of a line. */
const special = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** The value as JSON that every YAML parser reads as the same value. */
export function jsonAsYaml(value: unknown): string {
  return stringifyJson(value).replaceAll(
    special,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
