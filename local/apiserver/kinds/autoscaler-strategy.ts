import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { quantityValue } from "#apiserver/kinds/quantity.ts";
import type { Strategy } from "#apiserver/kinds/strategy.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { labelRule, pathSegmentRule } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const { forbidden, invalid, required, unsupported } = fieldErrors;
const targetTypes = ["Utilization", "Value", "AverageValue"];
const selectPolicies = ["Disabled", "Max", "Min"];
const policyTypes = ["Percent", "Pods"];
const maxStabilizationSeconds = 3_600;
const maxPeriodSeconds = 1_800;

/** The field that holds a metric, by metric type, in the order in which a server checks them. */
const sources = {
  Object: { key: "object", errors: objectErrors },
  External: { key: "external", errors: externalErrors },
  Pods: { key: "pods", errors: podsErrors },
  Resource: { key: "resource", errors: resourceErrors },
  ContainerResource: { key: "containerResource", errors: containerErrors },
} as const;

function autoscalerErrors(object: JsonObject): FieldError[] {
  const spec = isJsonObject(object.spec) ? object.spec : {};
  const least = Number(spec.minReplicas ?? 1);
  const most = Number(spec.maxReplicas ?? 0);
  const scalesToZero = listAt(spec, "metrics").some((metric) =>
    ["Object", "External"].includes(stringAt(metric, "type") ?? ""),
  );
  return [
    ...(least < 1 ? [invalid("spec.minReplicas", least, "must be greater than or equal to 1")] : []),
    ...(most < 1 ? [required("spec.maxReplicas", "must be set and greater than 0")] : []),
    ...(most < least ? [invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")] : []),
    ...referenceErrors(spec.scaleTargetRef, "spec.scaleTargetRef"),
    ...groupErrors(spec.scaleTargetRef, "spec.scaleTargetRef.apiVersion"),
    ...listAt(spec, "metrics").flatMap((metric, index) => metricErrors(metric, `spec.metrics[${index}]`)),
    ...(least === 0 && !scalesToZero
      ? [
          forbidden(
            "spec.metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
          ),
        ]
      : []),
    ...["scaleUp", "scaleDown"].flatMap((way) => rulesErrors(valueAt(spec, "behavior", way), `spec.behavior.${way}`)),
  ];
}

/** Checks a reference to an object: its kind and its name must be valid segments of a path. */
function referenceErrors(reference: Json | undefined, at: string): FieldError[] {
  return ["kind", "name"].flatMap((key) => {
    const value = stringAt(reference, key) ?? "";
    const problem = pathSegmentRule(value);
    if (value === "") return [required(`${at}.${key}`)];
    return problem === undefined ? [] : [invalid(`${at}.${key}`, value, problem)];
  });
}

/** Only a ReplicationController may be scaled without an API group. */
function groupErrors(reference: Json | undefined, field: string): FieldError[] {
  const apiVersion = stringAt(reference, "apiVersion") ?? "";
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [invalid(field, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const isCore = apiVersion === "v1" && stringAt(reference, "kind") === "ReplicationController";
  if (isCore || (parts.length === 2 && parts[0] !== "")) return [];
  return [invalid(field, apiVersion, "apiVersion must specify API group")];
}

function metricErrors(metric: Json, at: string): FieldError[] {
  const type = stringAt(metric, "type") ?? "";
  const errors: FieldError[] = [];
  if (type === "") errors.push(required(`${at}.type`, "must specify a metric source type"));
  const own = Object.hasOwn(sources, type) ? sources[type as keyof typeof sources].key : undefined;
  // A real server reports this error twice.
  const unknown = unsupported(`${at}.type`, type, Object.keys(sources).sort());
  if (own === undefined) errors.push(unknown, unknown);
  const given = Object.values(sources).filter(({ key }) => valueAt(metric, key) !== undefined);
  const [first] = given;
  if (first !== undefined) errors.push(...first.errors(valueAt(metric, first.key), `${at}.${first.key}`));
  if (own !== undefined && valueAt(metric, own) === undefined)
    errors.push(required(`${at}.${own}`, "must populate information for the given metric source"));
  if (given.length < 2) return errors;
  const others = given.filter(({ key }) => key !== own);
  return [
    ...errors,
    ...others.map(({ key }) => forbidden(`${at}.${key}`, "must populate the given metric source only")),
  ];
}

function objectErrors(source: Json | undefined, at: string): FieldError[] {
  const [errors, value, average] = measured(source, at);
  return [
    ...referenceErrors(valueAt(source, "describedObject"), `${at}.describedObject`),
    ...errors,
    ...(value || average
      ? []
      : [required(`${at}.target.averageValue`, "must set either a target value or averageValue")]),
  ];
}

function externalErrors(source: Json | undefined, at: string): FieldError[] {
  const [errors, value, average] = measured(source, at);
  const detail = "must set either a target value for metric or a per-pod target";
  return [
    ...errors,
    ...(value || average ? [] : [required(`${at}.target.averageValue`, detail)]),
    ...(value && average
      ? [forbidden(`${at}.target.value`, "may not set both a target value for metric and a per-pod target")]
      : []),
  ];
}

function podsErrors(source: Json | undefined, at: string): FieldError[] {
  const [errors, , average] = measured(source, at);
  const isPositive = average && quantityValue(stringAt(source, "target", "averageValue") ?? "") > 0n;
  if (isPositive) return errors;
  return [...errors, required(`${at}.target.averageValue`, "must specify a positive target averageValue")];
}

/** The errors of a metric's name and target, and whether the target has `value` and `averageValue`. */
function measured(source: Json | undefined, at: string): [FieldError[], boolean, boolean] {
  const name = stringAt(source, "metric", "name") ?? "";
  const problem = pathSegmentRule(name);
  const errors = [
    ...(name === "" ? [required(`${at}.metric.name`, "must specify a metric name")] : []),
    ...(problem === undefined ? [] : [invalid(`${at}.metric.name`, name, problem)]),
    ...targetErrors(valueAt(source, "target"), `${at}.target`),
  ];
  const has = (key: string) => valueAt(source, "target", key) !== undefined;
  return [errors, has("value"), has("averageValue")];
}

function resourceErrors(source: Json | undefined, at: string): FieldError[] {
  const unnamed = (stringAt(source, "name") ?? "") === "";
  return [...(unnamed ? [required(`${at}.name`, "must specify a resource name")] : []), ...usageErrors(source, at)];
}

function containerErrors(source: Json | undefined, at: string): FieldError[] {
  const container = stringAt(source, "container") ?? "";
  const problem = labelRule(container);
  const lacks = (key: string) => (stringAt(source, key) ?? "") === "";
  return [
    ...(lacks("name") ? [required(`${at}.name`, "must specify a resource name")] : []),
    ...(lacks("container") ? [required(`${at}.container`, "must specify a container")] : []),
    ...(lacks("container") || problem === undefined ? [] : [invalid(`${at}.container`, container, problem)]),
    ...usageErrors(source, at),
  ];
}

function usageErrors(source: Json | undefined, at: string): FieldError[] {
  const target = valueAt(source, "target");
  const share = valueAt(target, "averageUtilization") !== undefined;
  const amount = valueAt(target, "averageValue") !== undefined;
  const errors = targetErrors(target, `${at}.target`);
  const either = "must set either a target raw value or a target utilization";
  const both = "may not set both a target raw value and a target utilization";
  if (!share && !amount) errors.push(required(`${at}.target.averageUtilization`, either));
  if (share && amount) errors.push(forbidden(`${at}.target.averageValue`, both));
  return errors;
}

function targetErrors(target: Json | undefined, at: string): FieldError[] {
  const type = stringAt(target, "type") ?? "";
  const share = valueAt(target, "averageUtilization");
  const errors: FieldError[] = [];
  if (type === "") errors.push(required(`${at}.type`, "must specify a metric target type"));
  if (!targetTypes.includes(type))
    errors.push(invalid(`${at}.type`, type, "must be either Utilization, Value, or AverageValue"));
  for (const key of ["value", "averageValue"]) {
    const amount = stringAt(target, key);
    if (amount !== undefined && quantityValue(amount) <= 0n)
      errors.push(invalid(`${at}.${key}`, amount, "must be positive"));
  }
  if (typeof share === "number" && share < 1)
    errors.push(invalid(`${at}.averageUtilization`, share, "must be greater than 0"));
  return errors;
}

function rulesErrors(rules: Json | undefined, at: string): FieldError[] {
  if (!isJsonObject(rules)) return [];
  const window = rules.stabilizationWindowSeconds;
  const select = stringAt(rules, "selectPolicy") ?? "";
  const tolerance = stringAt(rules, "tolerance");
  const policies = listAt(rules, "policies");
  return [
    ...boundErrors(window, `${at}.stabilizationWindowSeconds`, { least: 0, most: maxStabilizationSeconds }),
    ...(selectPolicies.includes(select) ? [] : [unsupported(`${at}.selectPolicy`, select, selectPolicies)]),
    ...(policies.length === 0 ? [required(`${at}.policies`, "must specify at least one Policy")] : []),
    ...policies.flatMap((policy, index) => policyErrors(policy, `${at}.policies[${index}]`)),
    ...(tolerance !== undefined && quantityValue(tolerance) < 0n
      ? [invalid(`${at}.tolerance`, tolerance, "must be greater than or equal to 0")]
      : []),
  ];
}

function policyErrors(policy: Json, at: string): FieldError[] {
  const type = stringAt(policy, "type") ?? "";
  return [
    ...(policyTypes.includes(type) ? [] : [unsupported(`${at}.type`, type, policyTypes)]),
    ...boundErrors(valueAt(policy, "value"), `${at}.value`, { least: 1 }),
    ...boundErrors(valueAt(policy, "periodSeconds"), `${at}.periodSeconds`, { least: 1, most: maxPeriodSeconds }),
  ];
}

function boundErrors(
  value: Json | undefined,
  field: string,
  { least, most = Number.POSITIVE_INFINITY }: { readonly least: 0 | 1; readonly most?: number },
): FieldError[] {
  if (typeof value !== "number") return [];
  const lower = least === 0 ? "must be greater than or equal to zero" : "must be greater than zero";
  if (value < least) return [invalid(field, value, lower)];
  return value > most ? [invalid(field, value, `must be less than or equal to ${most}`)] : [];
}

export const autoscalerStrategy: Strategy = { validate: autoscalerErrors };
