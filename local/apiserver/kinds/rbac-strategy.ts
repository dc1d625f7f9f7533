import { rbacGroup } from "#apiserver/authorization/rbac.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import type { Rule, Strategy } from "#apiserver/kinds/strategy.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { pathSegmentRule, subdomainRule } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

/** The errors of a rule of a Role or ClusterRole. */
function policyRuleErrors(rule: Json, at: string, scope: "namespace" | "cluster"): FieldError[] {
  const { required, invalid } = fieldErrors;
  const has = (key: string) => listAt(rule, key).length > 0;
  const errors = has("verbs") ? [] : [required(`${at}.verbs`, "verbs must contain at least one value")];
  if (has("nonResourceURLs")) {
    const refuse = (why: string) =>
      errors.push(invalid(`${at}.nonResourceURLs`, listAt(rule, "nonResourceURLs") as Json, why));
    if (scope === "namespace") refuse("namespaced rules cannot apply to non-resource URLs");
    if (has("apiGroups") || has("resources") || has("resourceNames"))
      refuse("rules cannot apply to both regular resources and non-resource URLs");
    return errors;
  }
  if (!has("apiGroups")) errors.push(required(`${at}.apiGroups`, "resource rules must supply at least one api group"));
  if (!has("resources")) errors.push(required(`${at}.resources`, "resource rules must supply at least one resource"));
  return errors;
}

function roleErrors(scope: "namespace" | "cluster"): Rule {
  return (role) => {
    const errors = listAt(role, "rules").flatMap((rule, index) => policyRuleErrors(rule, `rules[${index}]`, scope));
    if (role.aggregationRule === undefined || listAt(role, "aggregationRule", "clusterRoleSelectors").length > 0)
      return errors;
    const detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    return [...errors, fieldErrors.required("aggregationRule.clusterRoleSelectors", detail)];
  };
}

/** The roleRef of a binding as Go prints the struct. */
function printedRole(object: JsonObject): JsonObject {
  const [APIGroup, Kind, Name] = ["apiGroup", "kind", "name"].map((key) => valueAt(object, "roleRef", key) ?? "");
  return { APIGroup, Kind, Name };
}

/** The errors of a roleRef. An update may not change it. */
function roleRefErrors(object: JsonObject, live: JsonObject | undefined, kinds: readonly string[]): FieldError[] {
  const text = (key: string) => stringAt(object, "roleRef", key) ?? "";
  const errors: FieldError[] = [];
  if (text("apiGroup") !== rbacGroup)
    errors.push(fieldErrors.unsupported("roleRef.apiGroup", text("apiGroup"), [rbacGroup]));
  if (!kinds.includes(text("kind"))) errors.push(fieldErrors.unsupported("roleRef.kind", text("kind"), kinds));
  const problem = pathSegmentRule(text("name"));
  if (text("name") === "") errors.push(fieldErrors.required("roleRef.name"));
  else if (problem !== undefined) errors.push(fieldErrors.invalid("roleRef.name", text("name"), problem));
  if (live !== undefined && !deepEqual(object.roleRef, live.roleRef)) {
    errors.push(fieldErrors.invalid("roleRef", printedRole(object), "cannot change roleRef"));
  }
  return errors;
}

const subjectGroups: Readonly<Record<string, string>> = { ServiceAccount: "", User: rbacGroup, Group: rbacGroup };

function subjectErrors(subject: Json, at: string, scope: "namespace" | "cluster"): FieldError[] {
  const text = (key: string) => stringAt(subject, key) ?? "";
  const [kind, name] = [text("kind"), text("name")];
  if (name === "") return [fieldErrors.required(`${at}.name`)];
  const group = subjectGroups[kind];
  if (group === undefined) return [fieldErrors.unsupported(`${at}.kind`, kind, Object.keys(subjectGroups))];
  const account = kind === "ServiceAccount";
  const problem = account ? subdomainRule(name) : undefined;
  return [
    ...(problem === undefined ? [] : [fieldErrors.invalid(`${at}.name`, name, problem)]),
    ...(text("apiGroup") === group ? [] : [fieldErrors.unsupported(`${at}.apiGroup`, text("apiGroup"), [group])]),
    ...(account && scope === "cluster" && text("namespace") === "" ? [fieldErrors.required(`${at}.namespace`)] : []),
  ];
}

function bindingErrors(scope: "namespace" | "cluster"): Rule {
  const kinds = scope === "cluster" ? ["ClusterRole"] : ["Role", "ClusterRole"];
  return (binding, { live }) => [
    ...roleRefErrors(binding, live, kinds),
    ...listAt(binding, "subjects").flatMap((subject, index) => subjectErrors(subject, `subjects[${index}]`, scope)),
  ];
}

export const rbacStrategies: Readonly<Record<string, Strategy>> = {
  [`${rbacGroup}/roles`]: { validate: roleErrors("namespace") },
  [`${rbacGroup}/clusterroles`]: { validate: roleErrors("cluster") },
  [`${rbacGroup}/rolebindings`]: { validate: bindingErrors("namespace") },
  [`${rbacGroup}/clusterrolebindings`]: { validate: bindingErrors("cluster") },
};
