import {
  decide,
  isMaster,
  type PolicyRule,
  rbacGroup,
  referencedRules,
  rulesFor,
  rulesOf,
} from "#apiserver/authorization/rbac.ts";
import { missingPermissions } from "#apiserver/authorization/rbac-escalation.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { stringAt } from "#apiserver/object-fields.ts";
import { nameOf, resourceSubject, withMetadata } from "#apiserver/operations/object-meta.ts";
import type { WriteRequest } from "#apiserver/operations/write-request.ts";
import { forbidden, notFound } from "#apiserver/status-error.ts";

const all = ["*"];
const everything: readonly PolicyRule[] = [
  { verbs: all, apiGroups: all, resources: all, resourceNames: [], nonResourceURLs: [] },
  { verbs: all, apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: all },
];

type Refusal = string | undefined;

/**
 * Refuses a role or binding that grants more than its author holds (registry/rbac, policybased). @throws StatusError
 * 403 or 404.
 */
export function checkGrants(request: WriteRequest, object: JsonObject, live: JsonObject | undefined): void {
  const { kind, user } = request;
  if (kind.group !== rbacGroup || user === undefined || isMaster(user)) return;
  if (live !== undefined && deepEqual(withoutOwnership(object), withoutOwnership(live))) return;
  const refusal = kind.plural.endsWith("bindings") ? bindingRefusal(request, object) : roleRefusal(request, object);
  if (refusal !== undefined) throw forbidden(resourceSubject(kind, nameOf(object)), refusal);
}

/** The object without the fields that the garbage collector changes: a change of these needs no permission check. */
function withoutOwnership(object: JsonObject): JsonObject {
  return withMetadata(object, { ownerReferences: undefined, finalizers: undefined, managedFields: undefined });
}

function may(request: WriteRequest, verb: string, what: { readonly resource: string; readonly name: string }): boolean {
  const { user, namespace, cluster } = request;
  if (user === undefined) return true;
  const resource = { ...what, group: rbacGroup, subresource: "", namespace };
  return decide(cluster.store, { user, verb, path: "", resource }).allowed;
}

function roleRefusal(request: WriteRequest, role: JsonObject): Refusal {
  if (may(request, "escalate", { resource: request.kind.plural, name: request.name })) return undefined;
  const refusal = escalation(request, rulesOf(role));
  if (refusal !== undefined || role.aggregationRule === undefined) return refusal;
  return escalation(request, everything) && "must have cluster-admin privileges to use the aggregationRule";
}

function bindingRefusal(request: WriteRequest, binding: JsonObject): Refusal {
  const { cluster, namespace, kind } = request;
  const name = stringAt(binding, "roleRef", "name") ?? "";
  const resource = `${(stringAt(binding, "roleRef", "kind") ?? "").toLowerCase()}s`;
  if (may(request, "bind", { resource, name })) return undefined;
  const rules = referencedRules(cluster.store, binding.roleRef, namespace);
  // The real server combines the role's name with the binding's resource in this message.
  if (rules === undefined) throw notFound(resourceSubject(kind, name));
  return escalation(request, rules);
}

function escalation({ cluster, user, namespace }: WriteRequest, rules: readonly PolicyRule[]): Refusal {
  if (user === undefined) return undefined;
  const missing = missingPermissions(rulesFor(cluster.store, user, namespace), rules);
  if (missing.length === 0) return undefined;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(" ");
  return `user ${JSON.stringify(user.username)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${missing.join("\n")}`;
}
