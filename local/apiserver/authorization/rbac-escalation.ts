import { type PolicyRule, urlCovers } from "#apiserver/authorization/rbac.ts";

function coversAll(owned: readonly string[], desired: readonly string[]): boolean {
  return owned.includes("*") || desired.every((each) => owned.includes(each));
}

function coversResources(owned: readonly string[], desired: readonly string[]): boolean {
  if (coversAll(owned, desired)) return true;
  return desired.every((each) => owned.includes(each) || owned.includes(each.replace(/^[^/]*\//, "*/")));
}

function covers(owned: PolicyRule, desired: PolicyRule): boolean {
  return (
    coversAll(owned.verbs, desired.verbs) &&
    coversAll(owned.apiGroups, desired.apiGroups) &&
    coversResources(owned.resources, desired.resources) &&
    desired.nonResourceURLs.every((url) => owned.nonResourceURLs.some((rule) => urlCovers(rule, url))) &&
    (owned.resourceNames.length === 0 ||
      (desired.resourceNames.length > 0 && coversAll(owned.resourceNames, desired.resourceNames)))
  );
}

const nothing: PolicyRule = { verbs: [], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };

/** Splits a rule into single permissions of one group, one resource, one name and one verb. */
function* breakDown(rule: PolicyRule): Generator<PolicyRule> {
  const names = rule.resourceNames.length === 0 ? [[]] : rule.resourceNames.map((name) => [name]);
  for (const group of rule.apiGroups) {
    for (const resource of rule.resources) {
      for (const verb of rule.verbs) {
        for (const resourceNames of names) {
          yield { ...nothing, verbs: [verb], apiGroups: [group], resources: [resource], resourceNames };
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs) {
    for (const verb of rule.verbs) yield { ...nothing, verbs: [verb], nonResourceURLs: [url] };
  }
}

/** Joins the verbs of permissions on the same resource into one rule. Permissions on URLs stay single. */
function compact(permissions: readonly PolicyRule[]): PolicyRule[] {
  const rules = new Map<string, PolicyRule>();
  for (const permission of permissions) {
    const { verbs, ...target } = permission;
    const key = JSON.stringify(permission.nonResourceURLs.length === 0 ? target : permission);
    const known = rules.get(key);
    rules.set(key, { ...permission, verbs: [...(known?.verbs ?? []), ...verbs] });
  }
  return [...rules.values()];
}

function quoted(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(" ")}]`;
}

function printed(rule: PolicyRule): string {
  const parts = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const shown = parts.filter(([, values]) => values.length > 0).map(([name, values]) => `${name}:${quoted(values)}`);
  return `{${shown.join(", ")}}`;
}

/** The permissions in `desired` that `owned` does not cover, one line each. */
export function missingPermissions(owned: readonly PolicyRule[], desired: readonly PolicyRule[]): string[] {
  const missing = desired
    .flatMap((rule) => [...breakDown(rule)])
    .filter((permission) => !owned.some((rule) => covers(rule, permission)));
  return [...new Set(compact(missing).map(printed))].sort();
}
