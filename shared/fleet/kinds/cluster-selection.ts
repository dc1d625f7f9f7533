import * as z from "zod";
import { boundedList } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { ownValue } from "#shared/base/own-value.ts";
import { labelKeySchema, labelsSchema, labelValueSchema } from "#shared/fleet/kinds/metadata.ts";

const values = boundedList(labelValueSchema, 1000).min(1);
const matchExpression = z.discriminatedUnion("operator", [
  z.strictObject({ key: labelKeySchema, operator: z.literal("In"), values }),
  z.strictObject({ key: labelKeySchema, operator: z.literal("NotIn"), values }),
  z.strictObject({ key: labelKeySchema, operator: z.literal("Exists") }),
  z.strictObject({ key: labelKeySchema, operator: z.literal("DoesNotExist") }),
]);
/** A label replaces a longer list of clusters. */
const names = boundedList(nameSchema, 1000).min(1);

/** Kubernetes' label selector. An empty one would match everything, so it is refused. @param empty - says that. */
export function labelSelector(empty: string) {
  return z
    .strictObject({
      matchLabels: labelsSchema.optional(),
      matchExpressions: boundedList(matchExpression, 100).optional(),
    })
    .refine(
      (selector) => Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length > 0,
      empty,
    );
}
export const labelSelectorSchema = labelSelector(
  "is empty and would match every cluster; write clusters: {all: true} if that is meant",
);
export type LabelSelector = z.infer<typeof labelSelectorSchema>;

/** One type for every selection of clusters. An absent or empty one is refused. */
export const clusterSelectionSchema = z
  .strictObject({
    selector: labelSelectorSchema.optional(),
    names: names.optional(),
    notNames: names.optional(),
    all: z.literal(true, "must be true; leave it out to select fewer clusters").optional(),
  })
  .refine(
    (selection) =>
      [selection.selector, selection.names, selection.all].filter((part) => part !== undefined).length === 1,
    "needs exactly one of selector, names or all: true (notNames may be added to any of them)",
  );
export type ClusterSelection = z.infer<typeof clusterSelectionSchema>;

export interface SelectableCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function matchesSelector(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {}))
    if (ownValue(labels, key) !== value) return false;
  for (const expression of selector.matchExpressions ?? []) {
    const value = ownValue(labels, expression.key);
    if (expression.operator === "Exists" && value === undefined) return false;
    if (expression.operator === "DoesNotExist" && value !== undefined) return false;
    if (expression.operator === "In" && (value === undefined || !expression.values.includes(value))) return false;
    if (expression.operator === "NotIn" && value !== undefined && expression.values.includes(value)) return false;
  }
  return true;
}

export function selects(selection: ClusterSelection, cluster: SelectableCluster): boolean {
  if (selection.notNames?.includes(cluster.name)) return false;
  if (selection.all === true) return true;
  if (selection.names !== undefined) return selection.names.includes(cluster.name);
  return selection.selector !== undefined && matchesSelector(selection.selector, cluster.labels);
}

/** A selection of clusters in words. */
export function selectionText(selection: ClusterSelection): string {
  const not = selection.notNames === undefined ? "" : ` but ${selection.notNames.join(", ")}`;
  if (selection.all === true) return `all${not}`;
  if (selection.names !== undefined) return `${selection.names.join(", ")}${not}`;
  const labels = Object.entries(selection.selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selection.selector?.matchExpressions ?? []).map((expression) => {
    if (expression.operator === "Exists") return expression.key;
    if (expression.operator === "DoesNotExist") return `!${expression.key}`;
    return `${expression.key} ${expression.operator === "In" ? "in" : "notin"} (${expression.values.join(",")})`;
  });
  return `${[...labels, ...expressions].join(",")}${not}`;
}
