import { afterEach, expect, test } from "vitest";
import { type ClusterConnection, type ClusterHost, startClusterHost } from "#local/cluster/cluster-host.ts";
import type { JsonObject } from "#shared/domain/json.ts";
import { listAt, stringAt, valueAt } from "#shared/domain/kube-object.ts";
import { type ClusterAnswer, clusterRequest, objectOf, readFrom } from "#test/support/cluster-request.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const group = "rbac.authorization.k8s.io";
const users: Readonly<Record<string, string>> = { alice: "dev", bob: "ops" };

let host: ClusterHost | undefined;

afterEach(() => host?.stop());

/** A cluster that knows alice of dev and bob of ops by their names. */
async function start(controllers: "on" | "off" = "off"): Promise<ClusterConnection> {
  host = await startClusterHost({
    controllers,
    authenticator: async (token) => {
      const of = users[token];
      return of === undefined ? undefined : { username: token, groups: [of] };
    },
  });
  return host.addCluster("a");
}

interface Call {
  readonly as?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function post(to: ClusterConnection, path: string, body: JsonObject, call: Call = {}): Promise<ClusterAnswer> {
  const token = call.as === undefined ? {} : { token: call.as };
  return clusterRequest(to, { method: "POST", path, body, headers: call.headers ?? {}, ...token });
}

async function messageOf(answer: Promise<ClusterAnswer>): Promise<string> {
  const { status, text } = await answer;
  return status < 300 ? String(status) : `${status} ${stringAt(JSON.parse(text) as JsonObject, "message") ?? ""}`;
}

/** A ClusterRole with these rules, given to a user or group everywhere. */
async function grant(to: ClusterConnection, subject: JsonObject, name: string, rules: readonly JsonObject[]) {
  const role = { apiGroup: group, kind: "ClusterRole", name };
  expect(await messageOf(post(to, `${rbac}/clusterroles`, { metadata: { name }, rules }))).toBe("201");
  const binding = { metadata: { name }, roleRef: role, subjects: [subject] };
  expect(await messageOf(post(to, `${rbac}/clusterrolebindings`, binding))).toBe("201");
}

const dev = { kind: "Group", name: "dev" };

test("nobody gives away what they have not got", async () => {
  const cluster = await start();
  await grant(cluster, dev, "writers", [
    { verbs: ["get", "create", "patch"], apiGroups: [group], resources: ["*"] },
    { verbs: ["get"], apiGroups: [""], resources: ["pods"] },
  ]);
  const alice = { as: "alice" };
  const create = (plural: string, object: JsonObject) => messageOf(post(cluster, `${rbac}/${plural}`, object, alice));
  const rules = (resource: string) => [{ verbs: ["get"], apiGroups: [""], resources: [resource] }];
  const missing =
    'is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}';
  expect(await create("clusterroles", { metadata: { name: "x" }, rules: rules("secrets") })).toBe(
    `403 clusterroles.${group} "x" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) ${missing}`,
  );
  expect(await create("clusterroles", { metadata: { name: "x" }, rules: rules("pods") })).toBe("201");
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] };
  expect(await create("clusterroles", { metadata: { name: "y" }, aggregationRule })).toBe(
    `403 clusterroles.${group} "y" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
  );
  const bind = (name: string) => {
    const roleRef = { apiGroup: group, kind: "ClusterRole", name };
    return create("clusterrolebindings", { metadata: { name: "z" }, roleRef, subjects: [dev] });
  };
  expect(await bind("gone")).toBe(`404 clusterrolebindings.${group} "gone" not found`);
  expect(await bind("system:monitoring")).toContain('{NonResourceURLs:["/metrics"], Verbs:["get"]}');
  expect(await bind("x")).toBe("201");
  await grant(cluster, dev, "binders", [{ verbs: ["bind", "escalate"], apiGroups: [group], resources: ["*"] }]);
  expect(
    await messageOf(post(cluster, `${rbac}/clusterroles`, { metadata: { name: "w" }, rules: rules("secrets") }, alice)),
  ).toBe("201");
});

test("an apply that creates needs the verb create, and a selected name is a name", async () => {
  const cluster = await start();
  const named = { apiGroups: [""], resources: ["configmaps"], resourceNames: ["q"] };
  await grant(cluster, dev, "patchers", [{ ...named, verbs: ["patch", "list"] }]);
  const path = "/api/v1/namespaces/default/configmaps";
  const call = (method: string, rest: string, body?: JsonObject) =>
    messageOf(
      clusterRequest(cluster, {
        method,
        path: `${path}${rest}`,
        token: "alice",
        headers: { "content-type": "application/apply-patch+yaml" },
        ...(body === undefined ? {} : { body }),
      }),
    );
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "q" } };
  expect(await call("PATCH", "/q?fieldManager=m", object)).toContain(
    'User "alice" cannot create resource "configmaps"',
  );
  expect(await call("GET", "")).toContain('User "alice" cannot list resource "configmaps"');
  expect(await call("GET", "?fieldSelector=metadata.name%3Dq")).toBe("200");
  expect((await post(cluster, path, object)).status).toBe(201);
  expect(await call("PATCH", "/q?fieldManager=m", object)).toBe("200");
});

test("a token of a service account is accepted until its account or its time is over", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  host = await startClusterHost({ controllers: "off", clock: () => now });
  const cluster = host.addCluster("a");
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  expect((await post(cluster, accounts, { metadata: { name: "sa" } })).status).toBe(201);
  const ask = (spec: JsonObject) => post(cluster, `${accounts}/sa/token`, { spec });
  const tokenOf = async (spec: JsonObject) => stringAt(objectOf(await ask(spec)), "status", "token") ?? "";
  expect(await messageOf(ask({ expirationSeconds: 60 }))).toContain("may not specify a duration less than 10 minutes");
  const token = await tokenOf({ expirationSeconds: 600 });
  const who = (as: string) => post(cluster, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, { as });
  expect(valueAt(objectOf(await who(token)), "status", "userInfo")).toMatchObject({
    username: "system:serviceaccount:default:sa",
    groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
  });
  expect((await who(await tokenOf({ audiences: ["vault"] }))).status).toBe(401);
  expect((await who(`${token.slice(0, -2)}AA`)).status).toBe(401);
  now += 601_000;
  expect((await who(token)).status).toBe(401);
  const fresh = await tokenOf({});
  expect((await who(fresh)).status).toBe(201);
  await clusterRequest(cluster, { method: "DELETE", path: `${accounts}/sa` });
  expect((await post(cluster, accounts, { metadata: { name: "sa" } })).status).toBe(201);
  expect((await who(fresh)).status).toBe(401);
});

test("who may impersonate, and whom", async () => {
  const cluster = await start();
  const review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const as = (headers: Readonly<Record<string, string>>, token?: string) =>
    post(cluster, review, {}, { headers, ...(token === undefined ? {} : { as: token }) });
  expect(
    valueAt(objectOf(await as({ "impersonate-user": "system:serviceaccount:a:b" })), "status", "userInfo"),
  ).toEqual({
    username: "system:serviceaccount:a:b",
    groups: ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
  });
  const headers = { "impersonate-user": "x", "impersonate-uid": "7", "impersonate-extra-a%2fb": "c" };
  expect(valueAt(objectOf(await as(headers)), "status", "userInfo")).toEqual({
    username: "x",
    uid: "7",
    groups: ["system:authenticated"],
    extra: { "a/b": ["c"] },
  });
  expect(await messageOf(as({ "impersonate-user": "bob" }, "alice"))).toBe(
    '403 selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
  );
  await grant(cluster, dev, "impersonators", [
    { verbs: ["impersonate"], apiGroups: [""], resources: ["users"], resourceNames: ["bob"] },
    { verbs: ["impersonate"], apiGroups: ["authentication.k8s.io"], resources: ["userextras/team"] },
  ]);
  expect((await as({ "impersonate-user": "bob" }, "alice")).status).toBe(201);
  expect((await as({ "impersonate-user": "bob", "impersonate-extra-team": "x" }, "alice")).status).toBe(201);
  expect((await as({ "impersonate-user": "eve" }, "alice")).status).toBe(403);
  expect((await as({ "impersonate-user": "bob", "impersonate-group": "system:masters" }, "alice")).status).toBe(403);
  expect((await as({ "impersonate-user": "bob", "impersonate-extra-other": "x" }, "alice")).status).toBe(403);
});

test("a controller gathers the rules of aggregated ClusterRoles", async () => {
  const cluster = await start("on");
  const view = `${rbac}/clusterroles/view`;
  const resourcesOf = async () =>
    listAt(await readFrom(cluster, view), "rules").flatMap((rule) => listAt(rule, "resources"));
  expect(await resourcesOf()).toContain("configmaps");
  const labels = { [`${group}/aggregate-to-view`]: "true" };
  const rules = [{ verbs: ["get"], apiGroups: ["example.com"], resources: ["widgets"] }];
  await post(cluster, `${rbac}/clusterroles`, { metadata: { name: "more", labels }, rules });
  expect(await resourcesOf()).toContain("widgets");
  await clusterRequest(cluster, { method: "DELETE", path: `${rbac}/clusterroles/more` });
  expect(await resourcesOf()).not.toContain("widgets");
  const managers = listAt(await readFrom(cluster, view), "metadata", "managedFields");
  expect(managers.map((entry) => `${stringAt(entry, "operation")} ${stringAt(entry, "manager")}`)).toContain(
    "Apply clusterrole-aggregation-controller",
  );
});
