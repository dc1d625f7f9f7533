import type { Access, ResourceAccess } from "#apiserver/authorization/access.ts";
import type { User } from "#apiserver/authorization/user.ts";
import { type ClusterStore, objectKey } from "#apiserver/cluster-store.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt } from "#apiserver/object-fields.ts";

/** A PolicyRule. `*` stands for every value. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** An empty list allows every name. */
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

export interface Decision {
  readonly allowed: boolean;
  /** The binding that allows the access, or the role that is missing; empty otherwise. */
  readonly reason: string;
}

export const rbacGroup = "rbac.authorization.k8s.io";
export const clusterRoleResource = `${rbacGroup}/clusterroles`;
const roleResources: Readonly<Record<string, string>> = {
  Role: `${rbacGroup}/roles`,
  ClusterRole: clusterRoleResource,
};

/** Members of this group may do everything, regardless of bindings. */
const mastersGroup = "system:masters";

export function isMaster(user: User): boolean {
  return user.groups.includes(mastersGroup);
}

const serviceAccountPrefix = "system:serviceaccount:";

/** The service account that a user name stands for, if any. */
export function serviceAccountOf(username: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!username.startsWith(serviceAccountPrefix)) return undefined;
  const [namespace = "", name = "", ...more] = username.slice(serviceAccountPrefix.length).split(":");
  return namespace === "" || name === "" || more.length > 0 ? undefined : { namespace, name };
}

export function serviceAccountUser(namespace: string, name: string): User {
  return {
    username: `${serviceAccountPrefix}${namespace}:${name}`,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
  };
}

/** The rules of a stored Role or ClusterRole. */
export function rulesOf(role: JsonObject): PolicyRule[] {
  return listAt(role, "rules").map((rule) => {
    const strings = (key: string) => listAt(rule, key).map(String);
    return {
      verbs: strings("verbs"),
      apiGroups: strings("apiGroups"),
      resources: strings("resources"),
      resourceNames: strings("resourceNames"),
      nonResourceURLs: strings("nonResourceURLs"),
    };
  });
}

/** The rules of the role that a `roleRef` names; undefined where that role does not exist. */
export function referencedRules(store: ClusterStore, roleRef: Json | undefined, namespace: string) {
  const kind = stringAt(roleRef, "kind") ?? "";
  const key = objectKey(kind === "Role" ? namespace : "", stringAt(roleRef, "name") ?? "");
  const role = store.get(roleResources[kind] ?? "", key);
  return role && rulesOf(role);
}

function has(set: readonly string[], value: string): boolean {
  return set.includes("*") || set.includes(value);
}

function resourceMatches(rule: PolicyRule, { resource, subresource }: ResourceAccess): boolean {
  if (subresource === "") return has(rule.resources, resource);
  return has(rule.resources, `${resource}/${subresource}`) || rule.resources.includes(`*/${subresource}`);
}

/** A trailing `*` in a rule matches every path below it. */
export function urlCovers(rule: string, url: string): boolean {
  return rule === "*" || rule === url || (rule.endsWith("*") && url.startsWith(rule.replace(/\*+$/, "")));
}

function allows(rule: PolicyRule, { verb, path, resource }: Access): boolean {
  if (!has(rule.verbs, verb)) return false;
  if (resource === undefined) return rule.nonResourceURLs.some((url) => urlCovers(url, path));
  return (
    has(rule.apiGroups, resource.group) &&
    resourceMatches(rule, resource) &&
    (rule.resourceNames.length === 0 || rule.resourceNames.includes(resource.name))
  );
}

function subjectIs(subject: Json, user: User, namespace: string): boolean {
  const name = stringAt(subject, "name") ?? "";
  switch (stringAt(subject, "kind")) {
    case "User":
      return user.username === name;
    case "Group":
      return user.groups.includes(name);
    case "ServiceAccount":
      return user.username === serviceAccountUser(stringAt(subject, "namespace") ?? namespace, name).username;
    default:
      return false;
  }
}

interface Grant {
  readonly rule: PolicyRule;
  readonly binding: JsonObject;
  readonly subject: Json;
}

/**
 * The rules that bindings grant a user, first from ClusterRoleBindings, then from RoleBindings. Missing roles go to
 * `problems`.
 */
function* grantsTo(
  store: ClusterStore,
  user: User,
  where: { readonly namespace: string; readonly problems: string[] },
): Generator<Grant> {
  const { namespace, problems } = where;
  const bindings = [
    ...store.list(`${rbacGroup}/clusterrolebindings`),
    ...(namespace === "" ? [] : store.list(`${rbacGroup}/rolebindings`, namespace)),
  ];
  for (const binding of bindings) {
    const own = stringAt(binding, "metadata", "namespace") ?? "";
    const subject = listAt(binding, "subjects").find((each) => subjectIs(each, user, own));
    if (subject === undefined) continue;
    const rules = referencedRules(store, binding.roleRef, own);
    if (rules === undefined) problems.push(missingRole(binding));
    for (const rule of rules ?? []) yield { rule, binding, subject };
  }
}

function missingRole(binding: JsonObject): string {
  const kind = (stringAt(binding, "roleRef", "kind") ?? "").toLowerCase();
  return `${kind}.${rbacGroup} ${JSON.stringify(stringAt(binding, "roleRef", "name"))} not found`;
}

function described({ binding, subject }: Grant): string {
  const namespaced = (object: Json, ...path: readonly string[]) => {
    const namespace = stringAt(object, ...path, "namespace");
    return JSON.stringify(`${stringAt(object, ...path, "name")}${namespace === undefined ? "" : `/${namespace}`}`);
  };
  const roleRef = `${stringAt(binding, "roleRef", "kind")} ${JSON.stringify(stringAt(binding, "roleRef", "name"))}`;
  return `${binding.kind} ${namespaced(binding, "metadata")} of ${roleRef} to ${stringAt(subject, "kind")} ${namespaced(subject)}`;
}

/** Decides whether an access is allowed, as the RBAC authorizer decides over the stored Roles and bindings. */
export function decide(store: ClusterStore, access: Access): Decision {
  if (isMaster(access.user)) return { allowed: true, reason: "" };
  const problems: string[] = [];
  const namespace = access.resource?.namespace ?? "";
  for (const grant of grantsTo(store, access.user, { namespace, problems })) {
    if (allows(grant.rule, access)) return { allowed: true, reason: `RBAC: allowed by ${described(grant)}` };
  }
  const distinct = [...new Set(problems)];
  if (distinct.length === 0) return { allowed: false, reason: "" };
  return { allowed: false, reason: `RBAC: ${distinct.length === 1 ? distinct[0] : `[${distinct.join(", ")}]`}` };
}

/** Every rule that applies to a user in a namespace; an empty namespace means cluster scope. */
export function rulesFor(store: ClusterStore, user: User, namespace: string): PolicyRule[] {
  return [...grantsTo(store, user, { namespace, problems: [] })].map((grant) => grant.rule);
}
