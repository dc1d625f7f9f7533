import type { LabelSelector } from "#shared/domain/kinds/cluster-selection.ts";

const setRequirement = /^(\S+)\s+(in|notin)\s+\(([^()]*)\)$/;
const equality = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/;
const presence = /^(!?)\s*([^=!\s()]+)$/;

export type SelectorText =
  | { readonly ok: true; readonly selector: LabelSelector }
  | { readonly ok: false; readonly message: string };

/** A label selector as kubectl's `-l` takes it: `env=prod,tier!=gold,ring in (canary,early),!legacy`. */
export function parseSelectorText(text: string): SelectorText {
  const expressions: NonNullable<LabelSelector["matchExpressions"]> = [];
  for (const part of text.split(/,(?![^(]*\))/).map((piece) => piece.trim())) {
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
        message: `"${part}" is no label requirement; expected key=value, key!=value, key in (a,b), key notin (a,b), key or !key`,
      };
    }
    expressions.push({ key: present[2] ?? "", operator: present[1] === "!" ? "DoesNotExist" : "Exists" });
  }
  return { ok: true, selector: { matchExpressions: expressions } };
}
