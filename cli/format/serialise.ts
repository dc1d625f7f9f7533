import { manifestYaml } from "#cli/format/manifest-yaml.ts";
import type { Output } from "#cli/session/session.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { plainText } from "#shared/base/plain-text.ts";
import { compareText } from "#shared/base/text-order.ts";

/**
 * JSON or YAML that other programs read; the YAML quotes what kubectl would read as something else. Members are in the order
 * of their names, as kubectl has them: the table gives those of a map back in an order of its own.
 */
export function serialise(value: unknown, output: Extract<Output, "json" | "yaml">): string {
  const sorted = inOrder(value);
  if (output === "json") return `${plainText(stringifyJson(sorted, 2))}\n`;
  return manifestYaml(sorted);
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => compareText(a, b));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
