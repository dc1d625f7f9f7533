import { InvalidArgumentError } from "commander";
import { type CustomColumn, parseColumns } from "#cli/output/parse-columns.ts";
import { parseTemplate } from "#cli/output/parse-template.ts";
import { JsonPathError, type Template } from "#cli/output/template.ts";

const words = ["wide", "json", "yaml", "name"] as const;

export interface JsonPathOutput {
  readonly template: Template;
}

export interface ColumnsOutput {
  readonly columns: readonly CustomColumn[];
  readonly headers: "show" | "hide";
}

/** Formats for programs: the whole value, or the result of expressions. */
export type DataOutput = "json" | "yaml" | JsonPathOutput | ColumnsOutput;
export type Output = (typeof words)[number] | DataOutput;

/** The values of `-o`. */
export const outputs: readonly string[] = [...words, "jsonpath=", "custom-columns="];

export function isData(output: Output | undefined): output is DataOutput {
  return output !== undefined && output !== "wide" && output !== "name";
}

/** Custom columns without headers; every other format as it is. */
export function withoutHeaders<Given extends Output | undefined>(output: Given): Given {
  return typeof output === "object" && "columns" in output ? { ...output, headers: "hide" } : output;
}

/** @throws InvalidArgumentError for an unknown word, and for an expression that cannot be parsed. */
export function parseOutput(given: string): Output {
  // kubectl accepts `-o=json`.
  const text = given.replace(/^=/, "");
  const word = words.find((one) => one === text);
  if (word !== undefined) return word;
  const [, format, expression = ""] = /^(jsonpath|custom-columns)=(.*)$/s.exec(text) ?? [];
  try {
    if (format === "jsonpath" && expression !== "") return { template: parseTemplate(expression) };
    if (format === "custom-columns" && expression !== "") return { columns: parseColumns(expression), headers: "show" };
  } catch (error) {
    throw error instanceof JsonPathError ? new InvalidArgumentError(error.message) : error;
  }
  if (text === "jsonpath" || format === "jsonpath")
    throw new InvalidArgumentError("the expression is missing; write -o jsonpath='{.items[*].metadata.name}'");
  if (text === "custom-columns" || format === "custom-columns")
    throw new InvalidArgumentError(
      "the columns are missing; write -o custom-columns=NAME:.metadata.name,STATE:.status.state",
    );
  throw new InvalidArgumentError(`Allowed choices are ${outputs.join(", ")}.`);
}
