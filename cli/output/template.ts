/** kubectl's JSONPath: a text with expressions in braces, with `range` and `end`, `..`, filters and unions. */

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
  /** The value itself, and everything below it. */
  | { readonly kind: "descent" }
  | { readonly kind: "slice"; readonly slice: Slice }
  | { readonly kind: "union"; readonly paths: readonly TemplatePath[] }
  | { readonly kind: "filter"; readonly filter: Filter }
  | { readonly kind: "literal"; readonly value: string | number | boolean };

/** A slice or a single index. Negative numbers count from the end. */
export type Slice =
  | { readonly index: number }
  | { readonly from?: number | undefined; readonly to?: number | undefined; readonly step?: number | undefined };

export interface Filter {
  readonly left: TemplatePath;
  /** Absent: the filter passes if `left` exists. */
  readonly compared?: { readonly operator: Operator; readonly right: TemplatePath };
}

export const operators = ["==", "!=", "<=", ">=", "<", ">"] as const;
export type Operator = (typeof operators)[number];

/** An error in an expression, or in the value that it is evaluated on. The message says what to write. */
export class JsonPathError extends Error {}
