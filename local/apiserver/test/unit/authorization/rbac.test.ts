import { expect, test } from "vitest";
import type { Access } from "#apiserver/authorization/access.ts";
import { decide, rulesFor } from "#apiserver/authorization/rbac.ts";
import { missingPermissions } from "#apiserver/authorization/rbac-escalation.ts";
import { ClusterStore } from "#apiserver/cluster-store.ts";
import type { JsonObject } from "#apiserver/json.ts";

const group = "rbac.authorization.k8s.io";

function rule(verbs: string, apiGroups: string, resources: string, resourceNames = ""): JsonObject {
  const words = (text: string) => text.split(" ").map((word) => (word === "core" ? "" : word));
  const names = resourceNames === "" ? {} : { resourceNames: words(resourceNames) };
  return { verbs: words(verbs), apiGroups: words(apiGroups), resources: words(resources), ...names };
}

const roles: Readonly<Record<string, readonly JsonObject[]>> = {
  "ClusterRole /reader": [rule("get list watch", "core", "pods configmaps")],
  "ClusterRole /all": [rule("*", "*", "*")],
  "ClusterRole /scaler": [rule("get update", "*", "*/scale")],
  "ClusterRole /urls": [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/api/*"] }],
  "Role a/named": [rule("get update", "core", "secrets", "one two"), rule("deletecollection", "core", "pods")],
  "Role a/logs": [rule("get", "core", "pods/log")],
};

const bindings: readonly (readonly [binding: string, role: string, ...subjects: readonly string[]])[] = [
  ["/readers", "ClusterRole reader", "Group readers"],
  ["/urls", "ClusterRole urls", "User ann"],
  ["/gone", "ClusterRole gone", "User lost"],
  ["a/named", "Role named", "User ann"],
  ["a/logs", "Role logs", "ServiceAccount robot", "ServiceAccount b/robot"],
  ["a/admin", "ClusterRole all", "User owner"],
  ["a/scale", "ClusterRole scaler", "User scaler"],
  ["b/gone", "Role named", "User ann"],
];

const store = new ClusterStore(1);

function named(text: string): JsonObject {
  const [namespace = "", name = ""] = text.split("/");
  return namespace === "" ? { name } : { name, namespace };
}

for (const [key, rules] of Object.entries(roles)) {
  const [kind = "", id = ""] = key.split(" ");
  store.put(`${group}/${kind.toLowerCase()}s`, { kind, metadata: named(id), rules });
}
for (const [id, roleRef, ...subjects] of bindings) {
  const [kind = "", name = ""] = roleRef.split(" ");
  const whole = id.startsWith("/") ? "ClusterRoleBinding" : "RoleBinding";
  store.put(`${group}/${whole.toLowerCase()}s`, {
    kind: whole,
    metadata: named(id),
    roleRef: { apiGroup: group, kind, name },
    subjects: subjects.map((subject) => {
      const [subjectKind = "", subjectName = ""] = subject.split(" ");
      return { kind: subjectKind, ...named(subjectName.includes("/") ? subjectName : `/${subjectName}`) };
    }),
  });
}

/** `VERB GROUP/RESOURCE[/SUBRESOURCE] [NAMESPACE[/NAME]]`, or `VERB URL:/path`. */
function access(who: string, what: string): Access {
  const [username = "", ...groups] = who.split("+");
  const user = { username, groups };
  const [verb = "", target = "", place = ""] = what.split(" ");
  if (target.startsWith("URL:")) return { user, verb, path: target.slice(4) };
  const [apiGroup = "", resource = "", subresource = ""] = target.split("/");
  const [namespace = "", name = ""] = place.split("/");
  const shown = apiGroup === "core" ? "" : apiGroup;
  return { user, verb, path: "", resource: { group: shown, resource, subresource, namespace, name } };
}

test.each([
  [
    "ann+readers",
    "get core/pods a/x",
    'allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "readers"',
  ],
  ["ann+readers", "list core/configmaps", 'allowed by ClusterRoleBinding "readers"'],
  ["ann", "update core/secrets a/one", 'allowed by RoleBinding "named/a" of Role "named" to User "ann"'],
  ["ann", "deletecollection core/pods a", 'allowed by RoleBinding "named/a"'],
  ["ann", "get URL:/healthz", 'allowed by ClusterRoleBinding "urls"'],
  ["ann", "get URL:/api/v1", 'allowed by ClusterRoleBinding "urls"'],
  ["owner", "escalate rbac.authorization.k8s.io/roles a/x", 'allowed by RoleBinding "admin/a" of ClusterRole "all"'],
  ["owner", "get core/pods/exec a/x", 'allowed by RoleBinding "admin/a"'],
  ["scaler", "update apps/deployments/scale a/web", 'allowed by RoleBinding "scale/a"'],
  ["system:serviceaccount:a:robot", "get core/pods/log a/x", 'to ServiceAccount "robot"'],
  ["system:serviceaccount:b:robot", "get core/pods/log a/x", 'to ServiceAccount "robot/b"'],
  ["anyone+system:masters", "delete core/nodes /n", ""],
])("%s may %s", (who, what, reason) => {
  const decision = decide(store, access(who, what));
  expect(decision.allowed).toBe(true);
  expect(decision.reason).toContain(reason);
});

test.each([
  ["ann+readers", "get core/pods/log a/x", "a subresource is not its object"],
  ["ann+readers", "delete core/pods a/x", "another verb"],
  ["ann+readers", "get apps/pods a/x", "another group"],
  ["ann", "get core/pods a/x", "a group she is not in"],
  ["reader", "get core/pods a/x", "a user named like a role"],
  ["ann", "get core/secrets a/three", "another name"],
  ["ann", "list core/secrets a", "no name"],
  ["ann", "get core/secrets b/one", "a Role of another namespace"],
  ["ann", "deletecollection core/pods", "a namespace's rights over the whole cluster"],
  ["ann", "get URL:/healthzz", "a longer path"],
  ["ann", "get URL:/api", "the folder itself"],
  ["ann", "post URL:/healthz", "another method"],
  ["owner", "get core/pods b/x", "a ClusterRole bound in one namespace"],
  ["owner", "get URL:/healthz", "URLs by a RoleBinding"],
  ["scaler", "update apps/deployments a/web", "the object of a subresource"],
  ["scaler", "update apps/deployments/status a/web", "another subresource"],
  ["system:serviceaccount:c:robot", "get core/pods/log a/x", "an account of another namespace"],
  ["robot", "get core/pods/log a/x", "a user named like an account"],
  ["system:masters", "get core/pods a/x", "a user named like the group"],
])("%s may not %s: %s", (who, what) => {
  expect(decide(store, access(who, what)).allowed).toBe(false);
});

test("a missing role is the reason of a refusal", () => {
  const { reason } = decide(store, access("lost", "get core/pods a/x"));
  expect(reason).toBe('RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found');
  expect(decide(store, access("ann", "get core/pods b/x")).reason).toBe(
    'RBAC: role.rbac.authorization.k8s.io "named" not found',
  );
});

test("the rules of a user are those of the cluster and of the namespace", () => {
  const ann = { username: "ann", groups: ["readers"] };
  expect(rulesFor(store, ann, "").map(({ verbs }) => verbs.join(" "))).toEqual(["get list watch", "get"]);
  expect(rulesFor(store, ann, "a")).toHaveLength(4);
});

const none = { verbs: [], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };

function policy(...parts: Parameters<typeof rule>) {
  return { ...none, ...rule(...parts) } as typeof none;
}

test.each([
  ["the same", policy("get", "core", "pods"), policy("get", "core", "pods"), []],
  ["less", policy("get list", "core apps", "pods secrets"), policy("list", "apps", "pods"), []],
  ["by a star", policy("*", "*", "*"), policy("get", "core", "pods/log", "x"), []],
  ["a star subresource", policy("get", "apps", "*/scale"), policy("get", "apps", "deployments/scale"), []],
  ["a name of all", policy("get", "core", "pods"), policy("get", "core", "pods", "x"), []],
  [
    "all names for one",
    policy("get", "core", "pods", "x"),
    policy("get", "core", "pods"),
    ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
  ],
  [
    "more verbs, in one line for each resource",
    policy("get", "core", "pods"),
    policy("list get delete", "core", "pods configmaps"),
    [
      '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "get" "delete"]}',
      '{APIGroups:[""], Resources:["pods"], Verbs:["list" "delete"]}',
    ],
  ],
  [
    "a line for each name",
    policy("get", "core", "pods"),
    policy("get", "core", "secrets", "b a"),
    [
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
    ],
  ],
  [
    "a line for each verb of a URL",
    { ...none, verbs: ["get"], nonResourceURLs: ["/a/*"] },
    { ...none, verbs: ["get", "put"], nonResourceURLs: ["/a/b", "/x"] },
    [
      '{NonResourceURLs:["/a/b"], Verbs:["put"]}',
      '{NonResourceURLs:["/x"], Verbs:["get"]}',
      '{NonResourceURLs:["/x"], Verbs:["put"]}',
    ],
  ],
])("what is missing: %s", (_name, owned, wanted, missing) => {
  expect(missingPermissions([owned], [wanted])).toEqual(missing);
});
