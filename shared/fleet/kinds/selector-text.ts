import { excerpt, excerptOf } from "#shared/base/excerpt.ts";
import type { LabelSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { labelKeySchema, labelValueSchema } from "#shared/fleet/kinds/metadata.ts";

/** Longer than a query string that API Gateway accepts. */
const maxLength = 10_000;

const setRequirement = /^(\S+)\s+(in|notin)\s+\(([^()]*)\)$/;
const equality = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/;
const presence = /^(!?)\s*([^=!\s()]+)$/;

export type SelectorText =
  | { readonly ok: true; readonly selector: LabelSelector }
  | { readonly ok: false; readonly message: string };

/** A label selector in the form of kubectl's `-l`: `env=prod,tier!=gold,ring in (canary,early),!legacy`. */
export function parseSelectorText(text: string): SelectorText {
  const expressions: NonNullable<LabelSelector["matchExpressions"]> = [];
  if (text.length > maxLength) {
    return { ok: false, message: `has ${text.length} characters; expected at most ${maxLength}` };
  }
  for (const part of requirementsOf(text)) {
    const set = setRequirement.exec(part);
    if (set !== null) {
      const values = (set[3] ?? "").split(",").map((value) => value.trim());
      expressions.push({ key: set[1] ?? "", operator: set[2] === "in" ? "In" : "NotIn", values });
      continue;
    }
    const equal = equality.exec(part);
    if (equal !== null) {
      expressions.push({ key: equal[1] ?? "", operator: equal[2] === "!=" ? "NotIn" : "In", values: [equal[3] ?? ""] });
      continue;
    }
    const present = presence.exec(part);
    if (present === null) {
      return {
        ok: false,
        message: `"${excerpt(part)}" is no label requirement; expected key=value, key!=value, key in (a,b), key notin (a,b), key or !key`,
      };
    }
    expressions.push({ key: present[2] ?? "", operator: present[1] === "!" ? "DoesNotExist" : "Exists" });
  }
  const message = expressions.map(impossibleIn).find((each) => each !== undefined);
  return message === undefined ? { ok: true, selector: { matchExpressions: expressions } } : { ok: false, message };
}

/** A key or value that no label can have, such as a quoted one: it would match nothing, or with `!=` everything. */
function impossibleIn(expression: NonNullable<LabelSelector["matchExpressions"]>[number]): string | undefined {
  const { key } = expression;
  const values = "values" in expression ? expression.values : [];
  const said = labelKeySchema.safeParse(key);
  if (!said.success) return `key ${said.error.issues[0]?.message} (got ${excerptOf(key)})`;
  for (const value of values) {
    const { success, error } = labelValueSchema.safeParse(value);
    if (!success) return `a value of ${excerpt(key)} ${error.issues[0]?.message} (got ${excerptOf(value)})`;
  }
  return undefined;
}

/** Splits at the commas outside of parentheses. */
function requirementsOf(text: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "(") inside = true;
    if (text[at] === ")") inside = false;
    if (text[at] !== "," || inside) continue;
    parts.push(text.slice(from, at).trim());
    from = at + 1;
  }
  return [...parts, text.slice(from).trim()];
}
