import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { labelSelectorErrors, selectorMatches } from "#apiserver/kinds/label-selector.ts";
import { fixedPartOfPod, podSpecErrors, podSpecWarnings } from "#apiserver/kinds/pod-validation.ts";
import {
  all,
  immutableAt,
  notNegative,
  type Rule,
  type Strategy,
  type StrategyContext,
} from "#apiserver/kinds/strategy.ts";
import { annotationsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const templateSpec = ["spec", "template", "spec"] as const;

/** Warns about a Pod template only if the object has changed. */
function templateWarnings(object: JsonObject, { live }: StrategyContext): string[] {
  const generation = (each: JsonObject) => valueAt(each, "metadata", "generation");
  if (live !== undefined && generation(live) === generation(object)) return [];
  return podSpecWarnings(valueAt(object, ...templateSpec), templateSpec.join("."));
}

function templateErrors(object: JsonObject): FieldError[] {
  const claims = listAt(object, "spec", "volumeClaimTemplates").map(
    (claim) => stringAt(claim, "metadata", "name") ?? "",
  );
  return podSpecErrors(valueAt(object, ...templateSpec), templateSpec.join("."), claims);
}

function alwaysRestart(object: JsonObject): FieldError[] {
  const policy = stringAt(object, ...templateSpec, "restartPolicy");
  if (policy === undefined || policy === "Always") return [];
  return [fieldErrors.unsupported("spec.template.spec.restartPolicy", policy, ["Always"])];
}

/**
 * Refuses a selector that is empty or does not match the labels of the template. `invalid` is the message for a
 * selector that is not valid.
 */
function selectorErrors(kind: string, invalid?: string): Rule {
  return (object) => {
    const selector = valueAt(object, "spec", "selector");
    const labels = valueAt(object, "spec", "template", "metadata", "labels");
    const given = isJsonObject(labels) ? labels : null;
    const detail = "`selector` does not match template `labels`";
    const mismatch = fieldErrors.invalid("spec.template.metadata.labels", given, detail);
    if (!isJsonObject(selector))
      return kind === "daemonset" ? [mismatch] : [fieldErrors.required("spec.selector"), mismatch];
    const errors = labelSelectorErrors(selector, "spec.selector");
    const isEmpty = ["matchLabels", "matchExpressions"].every((key) => valueAt(selector, key) === undefined);
    if (isEmpty) errors.push(fieldErrors.invalid("spec.selector", selector, `empty selector is invalid for ${kind}`));
    const matches = selectorMatches(selector, labels);
    if (matches === undefined && invalid !== undefined)
      errors.push(fieldErrors.invalid("spec.selector", selector, invalid));
    return matches === false ? [...errors, mismatch] : errors;
  };
}

const strategies = ["Recreate", "RollingUpdate"];

function rolloutErrors(object: JsonObject): FieldError[] {
  const type = stringAt(object, "spec", "strategy", "type") ?? "";
  const rolling = valueAt(object, "spec", "strategy", "rollingUpdate");
  if (!strategies.includes(type)) {
    return [fieldErrors.unsupported("spec.strategy", { Type: type, RollingUpdate: rolling ?? null }, strategies)];
  }
  if (type === "Recreate" && rolling !== undefined) {
    return [
      fieldErrors.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"),
    ];
  }
  const none = (value: Json | undefined) => value === 0 || value === "0%";
  if (!none(valueAt(rolling, "maxSurge")) || !none(valueAt(rolling, "maxUnavailable"))) return [];
  const field = "spec.strategy.rollingUpdate.maxUnavailable";
  return [fieldErrors.invalid(field, valueAt(rolling, "maxUnavailable"), "may not be 0 when `maxSurge` is 0")];
}

function collisionErrors(object: JsonObject, { live }: StrategyContext): FieldError[] {
  const before = valueAt(live, "status", "collisionCount");
  const after = valueAt(object, "status", "collisionCount") ?? 0;
  if (typeof before !== "number" || typeof after !== "number" || after >= before) return [];
  return [fieldErrors.invalid("status.collisionCount", after, "cannot be decremented")];
}

function replicated(selector: Rule): Rule {
  return all(notNegative("spec.replicas", "spec.minReadySeconds"), selector, templateErrors, alwaysRestart);
}

const noSelector = "invalid label selector";

/** Makes a strategy for a kind that contains a Pod template. */
function templated(...rules: readonly Rule[]): Strategy {
  return { validate: all(...rules), warn: templateWarnings };
}

const mutableStatefulSetFields = [
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
];

/** Refuses changes of a StatefulSet's spec outside the fields of the list. */
function statefulSetChanges(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined) return [];
  const fixed = (each: JsonObject) =>
    Object.fromEntries(
      Object.entries(isJsonObject(each.spec) ? each.spec : {}).filter(
        ([key]) => !mutableStatefulSetFields.includes(key),
      ),
    );
  if (deepEqual(fixed(object), fixed(live))) return [];
  const quoted = mutableStatefulSetFields.map((field) => `'${field}'`);
  const list = `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
  return [fieldErrors.forbidden("spec", `updates to statefulset spec for fields other than ${list} are forbidden`)];
}

const templateGeneration = "deprecated.daemonset.template.generation";

/** A DaemonSet counts the changes of its template in an annotation. */
function prepareDaemonSet(object: JsonObject, { live }: StrategyContext): JsonObject {
  const before = Number(annotationsOf(live)[templateGeneration] ?? 0);
  const changed =
    live === undefined || !deepEqual(valueAt(object, "spec", "template"), valueAt(live, "spec", "template"));
  const annotations = { ...annotationsOf(object), [templateGeneration]: String(changed ? before + 1 : before) };
  return withMetadata(object, { annotations });
}

/** A Job selects its Pods by its uid, which the server generates. */
function prepareJob(object: JsonObject, { live }: StrategyContext): JsonObject {
  const spec = isJsonObject(object.spec) ? object.spec : {};
  if (spec.manualSelector === true) return object;
  if (live !== undefined) return { ...object, spec: { ...spec, selector: valueAt(live, "spec", "selector") ?? {} } };
  const uid = stringAt(object, "metadata", "uid") ?? "";
  const labels = {
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": nameOf(object),
    "controller-uid": uid,
    "job-name": nameOf(object),
  };
  const template = isJsonObject(spec.template) ? spec.template : {};
  const given = valueAt(template, "metadata", "labels");
  const labelled = withMetadata(template, { labels: { ...(isJsonObject(given) ? given : {}), ...labels } });
  const own = valueAt(object, "metadata", "labels");
  const templateLabels = valueAt(labelled, "metadata", "labels") ?? {};
  const selector = { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
  const complete = { ...object, spec: { ...spec, manualSelector: false, selector, template: labelled } };
  return isJsonObject(own) && Object.keys(own).length > 0
    ? complete
    : withMetadata(complete, { labels: templateLabels });
}

function jobRestart(object: JsonObject): FieldError[] {
  const policy = stringAt(object, ...templateSpec, "restartPolicy");
  if (policy === "OnFailure" || policy === "Never") return [];
  return [fieldErrors.required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')];
}

/** The errors of a Job's spec, also for the template of a CronJob. */
export const jobSpecErrors: Rule = all(
  notNegative("spec.parallelism", "spec.completions", "spec.backoffLimit"),
  templateErrors,
  jobRestart,
);

const defaultTolerations = ["not-ready", "unreachable"].map((taint) => ({
  key: `node.kubernetes.io/${taint}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
}));

/** Adds what the admission plugins and the Pod strategy add to a new Pod. */
function preparePod(object: JsonObject, { live }: StrategyContext): JsonObject {
  if (live !== undefined) return object;
  const spec = isJsonObject(object.spec) ? object.spec : {};
  const given = listAt(spec, "tolerations");
  const missing = defaultTolerations.filter(({ key }) => !given.some((each) => stringAt(each, "key") === key));
  return {
    ...object,
    spec: {
      ...spec,
      tolerations: [...given, ...missing],
      priority: spec.priority ?? 0,
      preemptionPolicy: spec.preemptionPolicy ?? "PreemptLowerPriority",
    },
    status: { phase: "Pending", qosClass: qosClass(spec) },
  };
}

function qosClass(spec: JsonObject): string {
  const containers = [...listAt(spec, "initContainers"), ...listAt(spec, "containers")];
  const resources = containers.map((container) => ({
    limits: valueAt(container, "resources", "limits"),
    requests: valueAt(container, "resources", "requests"),
  }));
  if (resources.every(({ limits, requests }) => limits === undefined && requests === undefined)) return "BestEffort";
  const guaranteed = resources.every(
    ({ limits, requests }) =>
      valueAt(limits, "cpu") !== undefined && valueAt(limits, "memory") !== undefined && deepEqual(limits, requests),
  );
  return guaranteed ? "Guaranteed" : "Burstable";
}

function podChanges(object: JsonObject, { live }: StrategyContext): FieldError[] {
  if (live === undefined || deepEqual(fixedPartOfPod(object), fixedPartOfPod(live))) return [];
  const detail =
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
  return [fieldErrors.forbidden("spec", detail)];
}

/** By `group/plural`. */
export const workloadStrategies: Readonly<Record<string, Strategy>> = {
  "/pods": {
    prepare: preparePod,
    validate: all((object) => podSpecErrors(object.spec, "spec"), podChanges),
    warn: (object, { live }) => (live === undefined ? podSpecWarnings(object.spec, "spec") : []),
  },
  "apps/deployments": {
    ...templated(replicated(selectorErrors("deployment", noSelector)), rolloutErrors, immutableAt("spec.selector")),
    validateStatus: collisionErrors,
  },
  "apps/daemonsets": {
    ...templated(replicated(selectorErrors("daemonset")), immutableAt("spec.selector")),
    prepare: prepareDaemonSet,
  },
  "apps/replicasets": templated(replicated(selectorErrors("deployment", noSelector)), immutableAt("spec.selector")),
  "apps/statefulsets": templated(replicated(selectorErrors("statefulset", "")), statefulSetChanges),
  "batch/jobs": {
    ...templated(
      jobSpecErrors,
      immutableAt("spec.selector", "spec.template", "spec.completions", "spec.completionMode"),
    ),
    prepare: prepareJob,
  },
};
