import { columnsText } from "#cli/format/columns-text.ts";
import { evaluateTemplate } from "#cli/format/evaluate-template.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import type { DataOutput } from "#cli/output/output.ts";
import { JsonPathError } from "#cli/output/template.ts";
import { usageFailure } from "#cli/session/failure.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { plainText } from "#shared/base/plain-text.ts";
import { compareText } from "#shared/base/text-order.ts";

/**
 * Prints JSON or YAML for other programs, or the result of expressions. The YAML quotes texts that kubectl would read as another
 * type. Members are sorted by name, as in kubectl, because the table does not keep their order.
 * @throws CliFailure when an expression does not fit the value.
 */
export function serialise(value: unknown, output: DataOutput): string {
  const sorted = inOrder(value);
  if (output === "json") return `${plainText(stringifyJson(sorted, 2))}\n`;
  if (output === "yaml") return manifestYaml(sorted);
  try {
    return "columns" in output ? columnsText(sorted, output) : plainText(evaluateTemplate(output.template, sorted));
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    throw usageFailure(
      `-o does not fit the answer: ${error.message}`,
      "the same command with -o json, which prints the whole answer",
    );
  }
}

/** Prints each value by itself. Custom columns print all values as one table. */
export function serialiseEach(values: readonly unknown[], output: DataOutput): string {
  const isTable = typeof output === "object" && "columns" in output;
  if (isTable && values.length > 0) return serialise({ items: values }, output);
  return values.map((value) => serialise(value, output)).join("");
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => compareText(a, b));
  return Object.fromEntries(
    members.flatMap(([name, member]) => (member === undefined ? [] : [[name, inOrder(member)]])),
  );
}
