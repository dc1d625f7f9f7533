/** Values and blocks in Terraform's language, in the layout of `terraform fmt`. */

export type HclValue = string | boolean | readonly HclValue[] | { readonly [key: string]: HclValue };

/** An expression instead of a text: `var.group`. */
export interface HclExpression {
  readonly expression: string;
}

export interface HclBlock {
  /** `resource "aws_iam_role" "access"` */
  readonly head: string;
  readonly comment?: string;
  /** In their order. A value of several lines stands alone. */
  readonly attributes?: Readonly<Record<string, HclValue | HclExpression>>;
  readonly blocks?: readonly HclBlock[];
}

export function printBlock({ head, comment, attributes = {}, blocks = [] }: HclBlock): string {
  const inner = [attributeLines(Object.entries(attributes)), ...blocks.map(printBlock)].filter((text) => text !== "");
  const lead = comment === undefined ? "" : `# ${comment}\n`;
  if (inner.length === 0) return `${lead}${head} {}`;
  return `${lead}${head} {\n${indented(inner.join("\n\n"))}\n}`;
}

function attributeLines(attributes: readonly (readonly [string, HclValue | HclExpression])[]): string {
  const printed = attributes.map(([name, value]) => ({
    name,
    value: isExpression(value) ? value.expression : print(value),
  }));
  const groups: { name: string; value: string }[][] = [];
  for (const one of printed) {
    const last = groups.at(-1);
    const joins = last !== undefined && !one.value.includes("\n") && !last.some(({ value }) => value.includes("\n"));
    if (joins) last.push(one);
    else groups.push([one]);
  }
  return groups
    .flatMap((group) => {
      const width = Math.max(...group.map(({ name }) => name.length));
      return group.map(({ name, value }) => `${name.padEnd(width)} = ${value}`);
    })
    .join("\n");
}

function isExpression(value: HclValue | HclExpression): value is HclExpression {
  return typeof value === "object" && !Array.isArray(value) && "expression" in value;
}

export function expression(text: string): HclExpression {
  return { expression: text };
}

/** A reference within a text. */
export function ref(name: string): string {
  return `\${${name}}`;
}

/** A variable of type string. */
export function variable(
  name: string,
  { description, default: fallback }: { readonly description: string; readonly default?: HclExpression },
): HclBlock {
  const attributes = { description, type: expression("string") };
  return {
    head: `variable "${name}"`,
    attributes: fallback === undefined ? attributes : { ...attributes, default: fallback },
  };
}

/** `jsonencode(…)` of a policy whose texts may hold `${…}`. */
export function jsonEncoded(value: HclValue): HclExpression {
  return { expression: `jsonencode(${print(value)})` };
}

function print(value: HclValue): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "boolean") return String(value);
  if (isList(value)) {
    if (value.every((item) => typeof item === "string")) return `[${value.map(print).join(", ")}]`;
    return `[\n${indented(value.map(print).join(",\n"))}\n]`;
  }
  const named = Object.entries(value).map(
    ([key, each]) => [/^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key), each] as const,
  );
  return `{\n${indented(attributeLines(named))}\n}`;
}

function isList(value: HclValue): value is readonly HclValue[] {
  return Array.isArray(value);
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
