import { clusterRoleResource } from "#apiserver/authorization/rbac.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import type { Json, JsonObject } from "#apiserver/json.ts";
import { listAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";
import { matchesLabels } from "#apiserver/operations/table.ts";

const manager = "clusterrole-aggregation-controller";

/** Gives a ClusterRole with an aggregationRule the rules of all ClusterRoles that it selects. */
export function aggregateRules(context: ControllerContext, role: JsonObject): void {
  const selectors = listAt(role, "aggregationRule", "clusterRoleSelectors");
  if (selectors.length === 0) return;
  const rules: Json[] = [];
  for (const other of context.cluster.store.list(clusterRoleResource)) {
    if (nameOf(other) === nameOf(role)) continue;
    if (!selectors.some((selector) => matchesLabels(other, valueAt(selector, "matchLabels")))) continue;
    for (const rule of listAt(other, "rules")) if (!rules.some((each) => deepEqual(each, rule))) rules.push(rule);
  }
  if (!deepEqual(listAt(role, "rules"), rules)) {
    context.apply(clusterRoleResource, { metadata: { name: nameOf(role) }, rules }, manager);
  }
}

/** The keys of the ClusterRoles that may change when another ClusterRole changes. */
export function aggregatedRoles({ cluster }: ControllerContext): string[] {
  const roles = cluster.store.list(clusterRoleResource).filter((role) => role.aggregationRule !== undefined);
  return roles.map((role) => `/${nameOf(role)}`);
}
