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
])("bindings allow %s to %s", (who, what, reason) => {
  const decision = decide(store, access(who, what));
  expect(decision.allowed).toBe(true);
  expect(decision.reason).toContain(reason);
});

test.each([
  ["ann+readers", "get core/pods/log a/x", "the role covers the object but not its subresource"],
  ["ann+readers", "delete core/pods a/x", "the role has other verbs"],
  ["ann+readers", "get apps/pods a/x", "the role has another API group"],
  ["ann", "get core/pods a/x", "the user is not in the bound group"],
  ["reader", "get core/pods a/x", "a user with the name of a role is not bound to it"],
  ["ann", "get core/secrets a/three", "the role names other objects"],
  ["ann", "list core/secrets a", "the role names objects and the request does not"],
  ["ann", "get core/secrets b/one", "the Role is in another namespace"],
  ["ann", "deletecollection core/pods", "a RoleBinding grants nothing in the whole cluster"],
  ["ann", "get URL:/healthzz", "the role has a shorter path"],
  ["ann", "get URL:/api", "a trailing star does not cover the folder itself"],
  ["ann", "post URL:/healthz", "the role has another method"],
  ["owner", "get core/pods b/x", "the ClusterRole is bound in another namespace only"],
  ["owner", "get URL:/healthz", "a RoleBinding grants no URLs"],
  ["scaler", "update apps/deployments a/web", "the role covers the subresource but not its object"],
  ["scaler", "update apps/deployments/status a/web", "the role has another subresource"],
  ["system:serviceaccount:c:robot", "get core/pods/log a/x", "the account is in another namespace"],
  ["robot", "get core/pods/log a/x", "a user with the name of an account is not the account"],
  ["system:masters", "get core/pods a/x", "a user with the name of the group is not in the group"],
])("bindings do not allow %s to %s, because %s", (who, what) => {
  expect(decide(store, access(who, what)).allowed).toBe(false);
});

test("the reason of a refusal names the missing role of a binding", () => {
  const { reason } = decide(store, access("lost", "get core/pods a/x"));
  expect(reason).toBe('RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found');
  expect(decide(store, access("ann", "get core/pods b/x")).reason).toBe(
    'RBAC: role.rbac.authorization.k8s.io "named" not found',
  );
});

test("the rules of a user come from bindings of the cluster and of the namespace", () => {
  const ann = { username: "ann", groups: ["readers"] };
  expect(rulesFor(store, ann, "").map(({ verbs }) => verbs.join(" "))).toEqual(["get list watch", "get"]);
  expect(rulesFor(store, ann, "a")).toHaveLength(4);
});

const none = { verbs: [], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };

function policy(...parts: Parameters<typeof rule>) {
  return { ...none, ...rule(...parts) } as typeof none;
}

test.each([
  ["nothing for equal rules", policy("get", "core", "pods"), policy("get", "core", "pods"), []],
  ["nothing for a subset", policy("get list", "core apps", "pods secrets"), policy("list", "apps", "pods"), []],
  ["nothing if the owned rule has stars", policy("*", "*", "*"), policy("get", "core", "pods/log", "x"), []],
  [
    "nothing if the owned rule has a star before the subresource",
    policy("get", "apps", "*/scale"),
    policy("get", "apps", "deployments/scale"),
    [],
  ],
  [
    "nothing for one name of an owned rule for all names",
    policy("get", "core", "pods"),
    policy("get", "core", "pods", "x"),
    [],
  ],
  [
    "the rule for all names if the owned rule has one name",
    policy("get", "core", "pods", "x"),
    policy("get", "core", "pods"),
    ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
  ],
  [
    "the missing verbs, one line per resource",
    policy("get", "core", "pods"),
    policy("list get delete", "core", "pods configmaps"),
    [
      '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "get" "delete"]}',
      '{APIGroups:[""], Resources:["pods"], Verbs:["list" "delete"]}',
    ],
  ],
  [
    "one line per object name",
    policy("get", "core", "pods"),
    policy("get", "core", "secrets", "b a"),
    [
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
    ],
  ],
  [
    "one line per verb of a URL",
    { ...none, verbs: ["get"], nonResourceURLs: ["/a/*"] },
    { ...none, verbs: ["get", "put"], nonResourceURLs: ["/a/b", "/x"] },
    [
      '{NonResourceURLs:["/a/b"], Verbs:["put"]}',
      '{NonResourceURLs:["/x"], Verbs:["get"]}',
      '{NonResourceURLs:["/x"], Verbs:["put"]}',
    ],
  ],
])("the list of missing permissions contains %s", (_name, owned, desired, missing) => {
  expect(missingPermissions([owned], [desired])).toEqual(missing);
});
