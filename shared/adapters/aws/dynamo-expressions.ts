/** Writes conditions and changes in DynamoDB's expression language. */
import type { Precondition, RowUpdate } from "#shared/ports.ts";

export interface Expression {
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Record<string, unknown>;
}

export function versionCondition(when: "absent" | { readonly version: number } | undefined): Expression {
  if (when === undefined) return {};
  if (when === "absent") return { ConditionExpression: "attribute_not_exists(pk)" };
  return {
    ConditionExpression: "#version = :version",
    ExpressionAttributeNames: { "#version": "version" },
    ExpressionAttributeValues: { ":version": when.version },
  };
}

export function expressionOf(conditions: readonly Precondition[], glue: " AND " | " OR "): Expression {
  const names: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  const parts = conditions.map((condition, index) => {
    names[`#c${index}`] = condition.attribute;
    if ("absent" in condition) return `attribute_not_exists(#c${index})`;
    values[`:c${index}`] = "equals" in condition ? condition.equals : condition.lessThan;
    return `#c${index} ${"equals" in condition ? "=" : "<"} :c${index}`;
  });
  return {
    ConditionExpression: parts.join(glue),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

export function updateExpression(write: RowUpdate): Expression & { UpdateExpression: string } {
  const when = write.when ?? [];
  const condition = when.length === 0 ? {} : expressionOf(when, write.any === true ? " OR " : " AND ");
  const names: Record<string, string> = { ...condition.ExpressionAttributeNames };
  const values: Record<string, unknown> = { ...condition.ExpressionAttributeValues };
  const clauses: string[] = [];
  const clause = (verb: string, entries: readonly [string, unknown][], separator: string) => {
    const parts = entries.map(([name, value], index) => {
      names[`#${verb}${index}`] = name;
      if (value === undefined) return `#${verb}${index}`;
      values[`:${verb}${index}`] = value;
      return `#${verb}${index}${separator}:${verb}${index}`;
    });
    if (parts.length > 0) clauses.push(`${verb} ${parts.join(", ")}`);
  };
  clause("SET", Object.entries(write.set ?? {}), " = ");
  clause("ADD", Object.entries(write.add ?? {}), " ");
  clause(
    "REMOVE",
    (write.remove ?? []).map((name) => [name, undefined]),
    "",
  );
  return {
    ...condition,
    UpdateExpression: clauses.join(" "),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}
