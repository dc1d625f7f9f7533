/** JSONPath as kubectl has it: a text with expressions in braces, with `range` and `end`, and `..`, filters and unions. */

export type Template = readonly Part[];

export type Part =
  | { readonly text: string }
  | { readonly path: TemplatePath }
  /** `{range PATH}BODY{end}`. */
  | { readonly each: TemplatePath; readonly body: Template };

export type TemplatePath = readonly TemplateStep[];

export type TemplateStep =
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "all" }
  /** Everything below, and the value itself. */
  | { readonly kind: "descent" }
  | { readonly kind: "slice"; readonly slice: Slice }
  | { readonly kind: "union"; readonly paths: readonly TemplatePath[] }
  | { readonly kind: "filter"; readonly filter: Filter }
  | { readonly kind: "literal"; readonly value: string | number | boolean };

/** Negative numbers count from the end; a single index has only `from`, and is no slice. */
export type Slice =
  | { readonly index: number }
  | { readonly from?: number | undefined; readonly to?: number | undefined; readonly step?: number | undefined };

export interface Filter {
  readonly left: TemplatePath;
  /** Absent: whether `left` is there. */
  readonly compared?: { readonly operator: Operator; readonly right: TemplatePath };
}

export const operators = ["==", "!=", "<=", ">=", "<", ">"] as const;
export type Operator = (typeof operators)[number];

/** What is wrong with an expression, or with what it is asked of. The message says what to write. */
export class JsonPathError extends Error {}
