import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { labelSelectorErrors } from "#apiserver/kinds/label-selector.ts";
import type { Strategy } from "#apiserver/kinds/strategy.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const evictionPolicies = ["AlwaysAllow", "IfHealthyBudget"];
const percentMessage =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** Checks a number that must not be negative, or a percentage of at most 100. */
function shareErrors(value: Json | undefined, field: string): FieldError[] {
  if (typeof value === "number")
    return value < 0 ? [fieldErrors.invalid(field, value, "must be greater than or equal to 0")] : [];
  if (typeof value !== "string") return [];
  if (!/^[0-9]+%$/.test(value)) return [fieldErrors.invalid(field, value, percentMessage)];
  return Number.parseInt(value, 10) > 100 ? [fieldErrors.invalid(field, value, "must not be greater than 100%")] : [];
}

function budgetErrors(object: JsonObject): FieldError[] {
  const spec = isJsonObject(object.spec) ? object.spec : {};
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const printed = {
    MinAvailable: minAvailable,
    Selector: selector,
    MaxUnavailable: maxUnavailable,
    UnhealthyPodEvictionPolicy: policy ?? null,
  };
  const both = minAvailable !== undefined && maxUnavailable !== undefined;
  const unknown = typeof policy === "string" && !evictionPolicies.includes(policy);
  return [
    ...(both ? [fieldErrors.invalid("spec", printed, "minAvailable and maxUnavailable cannot be both set")] : []),
    ...shareErrors(minAvailable, "spec.minAvailable"),
    ...shareErrors(maxUnavailable, "spec.maxUnavailable"),
    ...labelSelectorErrors(selector, "spec.selector"),
    ...(unknown ? [fieldErrors.unsupported("spec.unhealthyPodEvictionPolicy", policy, evictionPolicies)] : []),
  ];
}

export const budgetStrategy: Strategy = { validate: budgetErrors };
