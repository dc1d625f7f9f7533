/**
 * `{{ eks.name }}`, `{{ eks.accountId }}` and `{{ eks.region }}` in the name of a discovered cluster, and in paths: a
 * closed list, without code.
 */
import { excerpt } from "#shared/base/excerpt.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";

const reference = /\{\{ *eks\.(name|accountId|region) *\}\}/g;

/** @returns the problem of the text, or undefined. */
export function checkNameTemplate(text: string): string | undefined {
  const unknown = unknownExpression(text);
  if (unknown !== undefined) return unknown;
  if (!text.includes("{{")) {
    return `"${excerpt(text)}" is the same for every cluster; make it of {{ eks.name }}, and of {{ eks.accountId }} and {{ eks.region }} where one name is in more than one`;
  }
  const tried = filledWith(text, { name: "a", accountId: "1", region: "a" });
  return nameSchema.safeParse(tried).success ? undefined : `"${excerpt(text)}" makes no name: it ${nameRule}`;
}

/** @returns the problem of the expressions in a text, or undefined. */
export function unknownExpression(text: string): string | undefined {
  const rest = text.replaceAll(reference, "");
  if (!rest.includes("{{") && !rest.includes("}}")) return undefined;
  return `"${excerpt(text)}" has an expression that Starling does not know; use {{ eks.name }}, {{ eks.accountId }} and {{ eks.region }}`;
}

const nameRule = "must be 1 to 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit";

export type NamedCluster =
  | { readonly ok: true; readonly name: string }
  | { readonly ok: false; readonly message: string };

/**
 * EKS allows capitals and underscores, which names in Starling do not. A long name is refused, because cut names
 * collide.
 */
export function clusterNameOf(template: string, cluster: Pick<EksArn, "name" | "accountId" | "region">): NamedCluster {
  const name = filledWith(template, cluster).toLowerCase().replaceAll("_", "-");
  if (nameSchema.safeParse(name).success) return { ok: true, name };
  const why = name.length > 63 ? `has ${name.length} characters; a name has at most 63` : nameRule;
  return { ok: false, message: `its name would be "${excerpt(name, 120)}", which ${why}: shorten spec.name` };
}

/** Replaces each expression by the cluster's value. */
export function filledWith(template: string, values: Pick<EksArn, "name" | "accountId" | "region">): string {
  return template.replaceAll(reference, (_all, field: keyof typeof values) => values[field]);
}
