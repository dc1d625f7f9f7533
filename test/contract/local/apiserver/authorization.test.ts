/** The authorization of requests is the same on the embedded API server and on a real one. */

import { type ClusterConnection, startClusterHost } from "@starling/embedded-apiserver";
import { type ClusterAnswer, clusterRequest, objectOf, readFrom } from "@starling/embedded-apiserver/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { listAt, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { kubeAssets } from "#test/contract/targets.ts";

type Connection = Pick<ClusterConnection, "server" | "caData" | "token">;

/** A server with a token for the user alice in the group dev. */
interface Server {
  readonly cluster: Connection;
  readonly alice: string;
  readonly controllers: "on" | "off";
  stop(): Promise<void>;
}

const users = [{ name: "alice", groups: ["dev"] }];

async function startEmbedded(): Promise<Server> {
  const host = await startClusterHost({
    authenticator: async (token) => (token === "alice" ? { username: "alice", groups: ["dev"] } : undefined),
  });
  return { cluster: host.addCluster("a"), alice: "alice", controllers: "on", stop: host.stop };
}

async function startReal(assets: KubeAssets): Promise<Server> {
  const controllers = assets.kubeControllerManager === undefined ? "off" : "on";
  const started = await startKubeApiServer({ assets, controllers, users });
  return { cluster: started, alice: started.tokens.alice ?? "", controllers, stop: started.stop };
}

const targets: readonly (readonly [string, () => Promise<Server>])[] = [
  ["the embedded API server", startEmbedded],
  ...[kubeAssets].flatMap((assets) =>
    assets === undefined ? [] : [["kube-apiserver", () => startReal(assets)] as const],
  ),
];

const group = "rbac.authorization.k8s.io";
const rbac = `/apis/${group}/v1`;
const reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const accounts = "/api/v1/namespaces/default/serviceaccounts";
const dev = { kind: "Group", name: "dev", apiGroup: group };
/** A real server decides by its informers' caches, which lag behind. */
const settles = { timeout: 10_000, interval: 50 };

function get(apiGroup: string, resource: string): JsonObject {
  return { verbs: ["get"], apiGroups: [apiGroup], resources: [resource] };
}

describe.each(targets)("authorization on %s", (_name, start) => {
  let server: Server;
  beforeAll(async () => {
    server = await start();
  }, 120_000);
  afterAll(() => server.stop());

  function post(path: string, body: JsonObject, call: { as?: string; headers?: Record<string, string> } = {}) {
    const token = call.as === undefined ? {} : { token: call.as };
    return clusterRequest(server.cluster, { method: "POST", path, body, headers: call.headers ?? {}, ...token });
  }

  /** The status of an answer, with the message if it is a refusal. */
  async function outcome(answer: Promise<ClusterAnswer>): Promise<string> {
    const { status, text } = await answer;
    return status < 300 ? String(status) : `${status} ${stringAt(JSON.parse(text) as JsonObject, "message") ?? ""}`;
  }

  function asAlice(plural: string, object: JsonObject): Promise<string> {
    return outcome(post(`${rbac}/${plural}`, object, { as: server.alice }));
  }

  /** Binds a ClusterRole with these rules to the group dev in all namespaces. */
  async function grant(name: string, rules: readonly JsonObject[]): Promise<void> {
    const roleRef = { apiGroup: group, kind: "ClusterRole", name };
    expect(await outcome(post(`${rbac}/clusterroles`, { metadata: { name }, rules }))).toBe("201");
    expect(await outcome(post(`${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects: [dev] }))).toBe(
      "201",
    );
  }

  test("a user can grant only permissions that the user has", async () => {
    await grant("writers", [{ ...get(group, "*"), verbs: ["get", "create", "patch"] }, get("", "pods")]);
    const missing =
      'is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}';
    const secrets = { metadata: { name: "secrets" }, rules: [get("", "secrets")] };
    await expect
      .poll(() => asAlice("clusterroles", secrets), settles)
      .toBe(
        `403 clusterroles.${group} "secrets" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) ${missing}`,
      );
    expect(await asAlice("clusterroles", { metadata: { name: "pods" }, rules: [get("", "pods")] })).toBe("201");
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] };
    expect(await asAlice("clusterroles", { metadata: { name: "y" }, aggregationRule })).toBe(
      `403 clusterroles.${group} "y" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
    );
    const bind = (name: string) => {
      const roleRef = { apiGroup: group, kind: "ClusterRole", name };
      return asAlice("clusterrolebindings", { metadata: { name: "bound" }, roleRef, subjects: [dev] });
    };
    expect(await bind("gone")).toBe(`404 clusterrolebindings.${group} "gone" not found`);
    expect(await bind("system:monitoring")).toContain('{NonResourceURLs:["/metrics"], Verbs:["get"]}');
    await expect.poll(() => bind("pods"), settles).toBe("201");
    await grant("escalators", [{ ...get(group, "*"), verbs: ["bind", "escalate"] }]);
    await expect.poll(() => asAlice("clusterroles", secrets), settles).toBe("201");
  });

  test("an apply that creates needs the verb create, and a list by name needs only permission for that name", async () => {
    const named = { ...get("", "configmaps"), resourceNames: ["q"], verbs: ["patch", "list"] };
    await grant("patchers", [named]);
    const path = "/api/v1/namespaces/default/configmaps";
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "q" } };
    const list = (query: string) =>
      outcome(clusterRequest(server.cluster, { path: `${path}${query}`, token: server.alice }));
    const apply = () =>
      outcome(
        clusterRequest(server.cluster, {
          method: "PATCH",
          path: `${path}/q?fieldManager=m`,
          token: server.alice,
          headers: { "content-type": "application/apply-patch+yaml" },
          body: object,
        }),
      );
    await expect.poll(() => list("?fieldSelector=metadata.name%3Dq"), settles).toBe("200");
    expect(await list("")).toContain('User "alice" cannot list resource "configmaps"');
    expect(await apply()).toBe(
      '403 configmaps "q" is forbidden: User "alice" cannot create resource "configmaps" in API group "" in the namespace "default"',
    );
    expect(await outcome(post(path, object))).toBe("201");
    expect(await apply()).toBe("200");
  });

  test("a PUT that creates needs the verb create", async () => {
    await grant("updaters", [{ ...get("", "services"), verbs: ["get", "update"] }]);
    const path = "/api/v1/namespaces/default/services/put";
    const body = { apiVersion: "v1", kind: "Service", metadata: { name: "put" }, spec: { ports: [{ port: 80 }] } };
    const put = () => outcome(clusterRequest(server.cluster, { method: "PUT", path, token: server.alice, body }));
    await expect
      .poll(put, settles)
      .toBe(
        '403 services "put" is forbidden: User "alice" cannot create resource "services" in API group "" in the namespace "default"',
      );
    await grant("creators", [{ ...get("", "services"), verbs: ["create"] }]);
    await expect.poll(put, settles).toBe("201");
  });

  test("a token of a service account authenticates it, but only if its audience is the API server", async () => {
    expect(await outcome(post(accounts, { kind: "ServiceAccount", metadata: { name: "sa" } }))).toBe("201");
    const ask = (spec: JsonObject) =>
      post(`${accounts}/sa/token`, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
    const tokenOf = async (spec: JsonObject) => stringAt(objectOf(await ask(spec)), "status", "token") ?? "";
    const who = (as: string) => post(reviews, { kind: "SelfSubjectReview" }, { as });
    expect(await outcome(ask({ expirationSeconds: 60 }))).toBe(
      '422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes',
    );
    const token = await tokenOf({ expirationSeconds: 600 });
    await expect.poll(async () => (await who(token)).status, settles).toBe(201);
    expect(valueAt(objectOf(await who(token)), "status", "userInfo")).toMatchObject({
      username: "system:serviceaccount:default:sa",
      groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    });
    expect((await who(await tokenOf({ audiences: ["vault"] }))).status).toBe(401);
    expect((await who(`${token.slice(0, -6)}AAAAAA`)).status).toBe(401);
  });

  test("a user may impersonate only the users and extras that a rule allows", async () => {
    const as = (headers: Record<string, string>, token?: string) =>
      post(reviews, { kind: "SelfSubjectReview" }, { headers, ...defined({ as: token }) });
    const infoOf = async (headers: Record<string, string>) =>
      valueAt(objectOf(await as(headers)), "status", "userInfo");
    expect(await infoOf({ "impersonate-user": "system:serviceaccount:a:b" })).toEqual({
      username: "system:serviceaccount:a:b",
      groups: ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
    });
    expect(await infoOf({ "impersonate-user": "system:node:n" })).toEqual({
      username: "system:node:n",
      groups: ["system:nodes", "system:authenticated"],
    });
    expect(await infoOf({ "impersonate-user": "x", "impersonate-uid": "7", "impersonate-extra-a%2fb": "c" })).toEqual({
      username: "x",
      uid: "7",
      groups: ["system:authenticated"],
      extra: { "a/b": ["c"] },
    });
    expect(await outcome(as({ "impersonate-group": "g" }))).toBe(
      '400 requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name',
    );
    expect(await outcome(as({ "impersonate-user": "bob" }, server.alice))).toBe(
      '403 selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
    );
    await grant("impersonators", [
      { verbs: ["impersonate"], apiGroups: [""], resources: ["users"], resourceNames: ["bob"] },
      { verbs: ["impersonate"], apiGroups: ["authentication.k8s.io"], resources: ["userextras/team"] },
    ]);
    const status = async (headers: Record<string, string>) => (await as(headers, server.alice)).status;
    await expect.poll(() => status({ "impersonate-user": "bob" }), settles).toBe(201);
    expect(await status({ "impersonate-user": "bob", "impersonate-extra-team": "x" })).toBe(201);
    expect(await status({ "impersonate-user": "eve" })).toBe(403);
    expect(await status({ "impersonate-user": "bob", "impersonate-group": "system:masters" })).toBe(403);
    expect(await status({ "impersonate-user": "bob", "impersonate-extra-other": "x" })).toBe(403);
  });

  test("invalid Roles and bindings are refused with all their errors", async () => {
    const refused = (path: string, object: JsonObject) =>
      outcome(post(`${rbac}/${path}`, { metadata: { name: "v" }, ...object }));
    const url = { verbs: ["get"], nonResourceURLs: ["/x"] };
    expect(await refused("namespaces/default/roles", { rules: [{ verbs: [] }, url] })).toBe(
      `422 Role.${group} "v" is invalid: [rules[0].verbs: Required value: verbs must contain at least one value, rules[0].apiGroups: Required value: resource rules must supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one resource, rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs]`,
    );
    expect(await refused("clusterroles", { aggregationRule: {}, rules: [{ ...url, resources: ["pods"] }] })).toBe(
      `422 ClusterRole.${group} "v" is invalid: [rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs, aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil]`,
    );
    const roleRef = { apiGroup: group, kind: "ClusterRole", name: "a" };
    const subjects = [{ kind: "ServiceAccount", name: "a" }, { kind: "X", name: "a" }, { kind: "Group" }];
    expect(await refused("clusterrolebindings", { roleRef, subjects })).toBe(
      `422 ClusterRoleBinding.${group} "v" is invalid: [subjects[0].namespace: Required value, subjects[1].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group", subjects[2].name: Required value]`,
    );
  });

  test("a controller copies rules into aggregated ClusterRoles", async ({ skip }) => {
    if (server.controllers === "off") skip("no kube-controller-manager");
    const view = `${rbac}/clusterroles/view`;
    const resourcesOf = async () =>
      listAt(await readFrom(server.cluster, view), "rules").flatMap((rule) => listAt(rule, "resources"));
    await expect.poll(resourcesOf, settles).toContain("configmaps");
    const labels = { [`${group}/aggregate-to-view`]: "true" };
    const rules = [get("example.com", "widgets")];
    await post(`${rbac}/clusterroles`, { metadata: { name: "more", labels }, rules });
    await expect.poll(resourcesOf, settles).toContain("widgets");
    await clusterRequest(server.cluster, { method: "DELETE", path: `${rbac}/clusterroles/more` });
    await expect.poll(resourcesOf, settles).not.toContain("widgets");
    const managers = listAt(await readFrom(server.cluster, view), "metadata", "managedFields");
    expect(managers.map((entry) => `${stringAt(entry, "operation")} ${stringAt(entry, "manager")}`)).toContain(
      "Apply clusterrole-aggregation-controller",
    );
  });
});
