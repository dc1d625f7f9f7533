import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { portRange } from "#apiserver/kinds/port-validation.ts";
import type { Rule, Strategy, StrategyContext } from "#apiserver/kinds/strategy.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";
import { dns1035Rule, nameOf, subdomainRule } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

/** An APIService that kube-apiserver serves itself is available from its creation. */
function prepare(object: JsonObject, { live, cluster }: StrategyContext): JsonObject {
  if (live !== undefined || valueAt(object, "spec", "service") !== undefined) return object;
  const why = { reason: "Local", message: "Local APIServices are always available" };
  return {
    ...object,
    status: { conditions: [{ type: "Available", status: "True", lastTransitionTime: cluster.now(), ...why }] },
  };
}

/** As ValidateAPIService of kube-aggregator. */
const validate: Rule = (object) => {
  const group = stringAt(object, "spec", "group") ?? "";
  const version = stringAt(object, "spec", "version") ?? "";
  const desired = `${version}.${group}`;
  const errors: FieldError[] = [];
  if (nameOf(object) !== desired) {
    const detail = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(desired)}`;
    errors.push(fieldErrors.invalid("metadata.name", nameOf(object), detail));
  }
  const groupProblem = group === "" ? undefined : subdomainRule(group);
  if (group === "" && version !== "v1")
    errors.push(fieldErrors.required("spec.group", "only v1 may have an empty group and it better be legacy kube"));
  if (groupProblem !== undefined) errors.push(fieldErrors.invalid("spec.group", group, groupProblem));
  const versionProblem = dns1035Rule(version);
  if (versionProblem !== undefined) errors.push(fieldErrors.invalid("spec.version", version, versionProblem));
  for (const [key, most] of [
    ["groupPriorityMinimum", 20_000],
    ["versionPriority", 1_000],
  ] as const) {
    const value = valueAt(object, "spec", key);
    if (typeof value === "number" && value > 0 && value <= most) continue;
    errors.push(fieldErrors.invalid(`spec.${key}`, value ?? 0, `must be positive and less than ${most}`));
  }
  return [...errors, ...serviceErrors(object)];
};

function serviceErrors(object: JsonObject): FieldError[] {
  const service = valueAt(object, "spec", "service");
  const bundle = stringAt(object, "spec", "caBundle") ?? "";
  const skips = valueAt(object, "spec", "insecureSkipTLSVerify") === true;
  const skipField = "spec.insecureSkipTLSVerify";
  const errors: FieldError[] = [];
  if (!isJsonObject(service)) {
    const bytes = Buffer.from(bundle, "base64").length;
    if (bytes > 0)
      errors.push(fieldErrors.invalid("spec.caBundle", `${bytes} bytes`, "local APIServices may not have a caBundle"));
    if (skips)
      errors.push(fieldErrors.invalid(skipField, true, "local APIServices may not have insecureSkipTLSVerify"));
    return errors;
  }
  for (const key of ["namespace", "name"]) {
    if ((stringAt(service, key) ?? "") === "") errors.push(fieldErrors.required(`spec.service.${key}`));
  }
  const port = service.port;
  if (typeof port === "number" && (port < 1 || port > 65_535))
    errors.push(fieldErrors.invalid("spec.service.port", port, `port is not valid: ${portRange}`));
  if (skips && bundle !== "")
    errors.push(fieldErrors.invalid(skipField, true, "may not be true if caBundle is present"));
  return errors;
}

export const apiServiceStrategy: Strategy = { prepare, validate };
