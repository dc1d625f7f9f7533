import { dump } from "js-yaml";
import type { Output } from "#cli/session/session.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { plainText } from "#shared/base/plain-text.ts";

/** JSON or YAML that other programs read; the YAML quotes what kubectl would read as something else. */
export function serialise(value: unknown, output: Extract<Output, "json" | "yaml">): string {
  if (output === "json") return `${plainText(stringifyJson(value, 2))}\n`;
  return dump(JSON.parse(stringifyJson(value)), { noRefs: true });
}
