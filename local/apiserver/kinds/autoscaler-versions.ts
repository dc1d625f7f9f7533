import { isJsonObject, type Json, type JsonObject, parseJson, stringifyJson } from "#apiserver/json.ts";
import { annotationsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { withMetadata } from "#apiserver/operations/object-meta.ts";

/** The annotations of autoscaling/v1 for fields that exist only in v2 (k8s.io/api/autoscaling/v1, annotations.go). */
const annotation = {
  metrics: "autoscaling.alpha.kubernetes.io/metrics",
  behavior: "autoscaling.alpha.kubernetes.io/behavior",
  conditions: "autoscaling.alpha.kubernetes.io/conditions",
} as const;

/** Converts an autoscaler, or a part of one, between the versions v1 and v2. Current metrics are not converted. */
export function autoscalerIn(object: JsonObject, apiVersion: string): JsonObject {
  return apiVersion === "autoscaling/v1" ? toV1(object) : toV2(object);
}

function toV1(object: JsonObject): JsonObject {
  const { metrics: _, behavior, ...spec } = part(object, "spec");
  const { currentMetrics: _current, conditions, ...status } = part(object, "status");
  const metrics = listAt(object, "spec", "metrics");
  const cpu = metrics.find(isCpuShare);
  const others = metrics.filter((metric) => metric !== cpu).map(metricToV1);
  const share = valueAt(cpu, "resource", "target", "averageUtilization");
  const added: Record<string, string> = {
    ...(others.length === 0 ? {} : { [annotation.metrics]: stringifyJson(others) }),
    ...(isJsonObject(behavior) ? { [annotation.behavior]: stringifyJson(behaviorToV1(behavior)) } : {}),
    ...(Array.isArray(conditions)
      ? { [annotation.conditions]: stringifyJson(conditions.map(inOrder(conditionFields))) }
      : {}),
  };
  const counts = { currentReplicas: status.currentReplicas ?? 0 };
  return {
    ...annotated(object, { ...annotationsOf(object), ...added }),
    apiVersion: "autoscaling/v1",
    ...(object.spec === undefined
      ? {}
      : { spec: { ...spec, ...(share === undefined ? {} : { targetCPUUtilizationPercentage: share }) } }),
    ...(object.status === undefined ? {} : { status: { ...status, ...counts } }),
  };
}

function toV2(object: JsonObject): JsonObject {
  const { targetCPUUtilizationPercentage: share, ...spec } = part(object, "spec");
  const { currentCPUUtilizationPercentage: _, currentReplicas, ...status } = part(object, "status");
  const { [annotation.metrics]: metricsText, [annotation.behavior]: behaviorText, ...rest } = annotationsOf(object);
  const { [annotation.conditions]: conditionsText, ...annotations } = rest;
  const others = read(metricsText);
  const behavior = read(behaviorText);
  const conditions = read(conditionsText);
  const metrics = [
    ...(Array.isArray(others) ? others.map(metricToV2) : []),
    ...(typeof share === "number" ? [cpuMetric(share)] : []),
  ];
  const known = typeof currentReplicas === "number" && currentReplicas > 0 ? { currentReplicas } : {};
  const shownConditions = Array.isArray(conditions) ? { conditions } : {};
  return {
    ...annotated(object, annotations),
    apiVersion: "autoscaling/v2",
    ...(object.spec === undefined
      ? {}
      : {
          spec: {
            ...spec,
            ...(metrics.length === 0 ? {} : { metrics }),
            ...(isJsonObject(behavior) ? { behavior: behaviorToV2(behavior) } : {}),
          },
        }),
    ...(object.status === undefined
      ? {}
      : { status: { ...status, ...known, ...shownConditions, currentMetrics: null } }),
  };
}

function part(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isJsonObject(value) ? value : {};
}

function annotated(object: JsonObject, annotations: JsonObject): JsonObject {
  if (object.metadata === undefined) return object;
  return withMetadata(object, { annotations: Object.keys(annotations).length === 0 ? undefined : annotations });
}

/** A user can write any text into an annotation. */
function read(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function cpuMetric(share: number): JsonObject {
  return { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: share } } };
}

function isCpuShare(metric: Json): boolean {
  return (
    stringAt(metric, "resource", "name") === "cpu" &&
    valueAt(metric, "resource", "target", "averageUtilization") !== undefined
  );
}

/** The names of a target's values in v1. */
const targetNames = [
  ["targetValue", "value", "Value"],
  ["targetAverageValue", "averageValue", "AverageValue"],
  ["targetAverageUtilization", "averageUtilization", "Utilization"],
] as const;

function present(entries: readonly (readonly [string, Json | undefined])[]): JsonObject {
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Go writes the fields of a struct in the order of their declaration. */
const conditionFields = ["type", "status", "lastTransitionTime", "reason", "message"];
const referenceFields = ["kind", "name", "apiVersion"];

function inOrder(fields: readonly string[]): (value: Json) => JsonObject {
  return (value) => present(fields.map((field) => [field, isJsonObject(value) ? value[field] : undefined]));
}

function sourceOf(metric: Json): [string, Json | undefined] {
  const key = Object.keys(isJsonObject(metric) ? metric : {}).find((each) => each !== "type") ?? "";
  return [key, valueAt(metric, key)];
}

function metricToV1(metric: Json): JsonObject {
  const [key, source] = sourceOf(metric);
  const described = valueAt(source, "describedObject");
  const targets = targetNames.map(([name, value]): [string, Json | undefined] => {
    // The average of an Object metric has another name than that of other metrics.
    const isObjects = key === "object" && value === "averageValue";
    return [isObjects ? "averageValue" : name, valueAt(source, "target", value)];
  });
  const flat = present([
    ["target", described === undefined ? undefined : inOrder(referenceFields)(described)],
    ["name", valueAt(source, "name")],
    ["metricName", valueAt(source, "metric", "name")],
    ...targets,
    ["selector", valueAt(source, "metric", "selector")],
    ["container", valueAt(source, "container")],
  ]);
  return present([
    ["type", valueAt(metric, "type")],
    [key, flat],
  ]);
}

function metricToV2(metric: Json): JsonObject {
  const [key, source] = sourceOf(metric);
  const [, target, type] = targetNames.find(([name]) => valueAt(source, name) !== undefined) ?? [];
  const values = targetNames.map(([name, value]): [string, Json | undefined] => [
    value,
    valueAt(source, name) ?? (key === "object" ? valueAt(source, value) : undefined),
  ]);
  const metricName = valueAt(source, "metricName");
  const named = present([
    ["name", metricName],
    ["selector", valueAt(source, "selector")],
  ]);
  const full = present([
    ["describedObject", key === "object" ? valueAt(source, "target") : undefined],
    ["name", valueAt(source, "name")],
    ["container", valueAt(source, "container")],
    ["metric", metricName === undefined ? undefined : named],
    ["target", { type: target === undefined ? "AverageValue" : type, ...present(values) }],
  ]);
  return present([
    ["type", valueAt(metric, "type")],
    [key, full],
  ]);
}

/** The annotation holds every field under its Go name. */
function behaviorToV1(behavior: JsonObject): JsonObject {
  const policyOf = (policy: Json) => ({
    Type: valueAt(policy, "type") ?? "",
    Value: valueAt(policy, "value") ?? 0,
    PeriodSeconds: valueAt(policy, "periodSeconds") ?? 0,
  });
  const rulesOf = (rules: Json | undefined) =>
    rules === undefined
      ? null
      : {
          StabilizationWindowSeconds: valueAt(rules, "stabilizationWindowSeconds") ?? null,
          SelectPolicy: valueAt(rules, "selectPolicy") ?? null,
          Policies: listAt(rules, "policies").map(policyOf),
          Tolerance: valueAt(rules, "tolerance") ?? null,
        };
  return { ScaleUp: rulesOf(behavior.scaleUp), ScaleDown: rulesOf(behavior.scaleDown) };
}

function behaviorToV2(behavior: JsonObject): JsonObject {
  const policyOf = (policy: Json) => ({
    type: valueAt(policy, "Type") ?? "",
    value: valueAt(policy, "Value") ?? 0,
    periodSeconds: valueAt(policy, "PeriodSeconds") ?? 0,
  });
  const rulesOf = (rules: Json | undefined) =>
    !isJsonObject(rules)
      ? undefined
      : present([
          ["stabilizationWindowSeconds", rules.StabilizationWindowSeconds ?? undefined],
          ["selectPolicy", rules.SelectPolicy ?? undefined],
          ["policies", listAt(rules, "Policies").map(policyOf)],
          ["tolerance", rules.Tolerance ?? undefined],
        ]);
  return present([
    ["scaleUp", rulesOf(behavior.ScaleUp)],
    ["scaleDown", rulesOf(behavior.ScaleDown)],
  ]);
}
