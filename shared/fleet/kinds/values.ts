/** Values of clusters: facts that templates may refer to. They are data, and never executed. */
import * as z from "zod";
import { hiddenValue } from "#shared/base/hidden-value.ts";

export type Value = string | number | boolean | readonly Value[] | { readonly [name: string]: Value };
export type Values = Readonly<Record<string, Value>>;

/** Size as JSON. The planner holds the values of every cluster of a group at once. */
const maxValuesBytes = 16_384;
const maxValues = 100;
/** Depth of nested lists and maps. */
const maxDepth = 8;

export const valueName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, "must be an identifier: at most 63 characters of A-Z, a-z, 0-9 and _");

export const valuesSchema = z
  .record(valueName, z.unknown())
  .refine((map) => Object.keys(map).length <= maxValues, `must have at most ${maxValues} members`)
  .superRefine((map, context) => {
    for (const [name, value] of Object.entries(map)) {
      const found = problemOf(value, 0);
      if (found === undefined) continue;
      context.addIssue({ code: "custom", path: [name, ...found.path], message: found.message });
    }
    if (new TextEncoder().encode(JSON.stringify(map, textOfNumber)).length <= maxValuesBytes) return;
    const message = `must have at most ${maxValuesBytes} bytes as JSON, all values together; keep what is larger in files`;
    context.addIssue({ code: "custom", message, params: hiddenValue });
  })
  .meta({ maxProperties: maxValues }) as unknown as z.ZodType<Values>;

interface Problem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

function problemOf(value: unknown, depth: number): Problem | undefined {
  if (typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return undefined;
  if (typeof value === "bigint" || typeof value === "number")
    return { path: [], message: "is a number that cannot be kept as it is; write it in quotes" };
  if (value === null || value === undefined) return { path: [], message: "is nothing; leave it out" };
  if (depth === maxDepth) return { path: [], message: `is nested deeper than ${maxDepth} lists and maps` };
  for (const [name, member] of Object.entries(value)) {
    const found = problemOf(member, depth + 1);
    if (found !== undefined) return { ...found, path: [Array.isArray(value) ? Number(name) : name, ...found.path] };
  }
  return undefined;
}

/** Integers beyond JSON's range were refused already. */
function textOfNumber(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** The text for people: a text as it is, any other value as JSON. */
export function valueText(value: Value): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
