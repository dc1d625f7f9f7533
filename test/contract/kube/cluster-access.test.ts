/** The RBAC rules for Starling suffice for the whole life of a Sync and allow no more, on both API servers. */

import { startClusterHost } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { applyRbac } from "#cli/access/grant-access.ts";
import { grantedLink } from "#functions/apply/check/granted-link.ts";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import { defaultGroup } from "#shared/fleet/access/cluster-rbac.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import {
  type ClusterFixture,
  clusterFixture,
  configMap,
  deployment,
  endpointOf,
  manifest,
  namespace,
} from "#test/support/cluster-fixture.ts";
import { untilEqual } from "#test/support/until-equal.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** A server with a token for a user in Starling's group. */
interface Server {
  readonly admin: KubeEndpoint;
  readonly starling: KubeEndpoint;
  readonly controllers: "on" | "off";
  stop(): Promise<void>;
}

const user = { name: "starling:session", groups: [defaultGroup] };

async function startEmbedded(): Promise<Server> {
  const host = await startClusterHost({
    authenticator: async (token) => (token === "s" ? { username: user.name, groups: user.groups } : undefined),
  });
  const cluster = host.addCluster("a");
  return {
    admin: endpointOf(cluster),
    starling: endpointOf({ ...cluster, token: "s" }),
    controllers: "on",
    stop: () => host.stop(),
  };
}

async function startReal(assets: KubeAssets): Promise<Server> {
  const controllers = assets.kubeControllerManager === undefined ? "off" : "on";
  const started = await startKubeApiServer({ assets, controllers, users: [user] });
  const token = started.tokens[user.name] ?? "";
  return { admin: endpointOf(started), starling: endpointOf({ ...started, token }), controllers, stop: started.stop };
}

const targets: readonly (readonly [string, () => Promise<Server>])[] = [
  ["the embedded API server", startEmbedded],
  ...[kubeAssets].flatMap((assets) =>
    assets === undefined ? [] : [["kube-apiserver", () => startReal(assets)] as const],
  ),
];

const rbac = "rbac.authorization.k8s.io/v1";
const shop = { namespace: "shop" };
const named = (name: string) => ({ name, ...shop });
const pod = { containers: [{ name: "web", image: "web:1" }] };
const reads = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"] }];
const subjects = [{ kind: "ServiceAccount", name: "web", ...shop }];

/** The folder of a team: one object of each kind that most fleets apply. None of them waits for a kubelet. */
function fleetObjects(controllers: Server["controllers"]): readonly ManifestObject[] {
  const asleep = { ...deployment("shop/web"), spec: { ...(deployment("shop/web").spec as object), replicas: 0 } };
  const objects = [
    namespace("shop"),
    configMap("shop/settings"),
    manifest({ apiVersion: "v1", kind: "Secret", metadata: named("key"), stringData: { key: "s" } }),
    manifest({ apiVersion: "v1", kind: "ServiceAccount", metadata: named("web") }),
    manifest({ apiVersion: "v1", kind: "Service", metadata: named("web"), spec: { ports: [{ port: 80 }] } }),
    manifest({ apiVersion: rbac, kind: "Role", metadata: named("web"), rules: reads }),
    manifest({
      apiVersion: rbac,
      kind: "RoleBinding",
      metadata: named("web"),
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "web" },
      subjects,
    }),
    manifest({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: named("web"),
      spec: { podSelector: {}, policyTypes: ["Ingress"] },
    }),
    manifest({
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: named("nightly"),
      spec: {
        schedule: "0 3 * * *",
        jobTemplate: { spec: { template: { spec: { ...pod, restartPolicy: "Never" } } } },
      },
    }),
  ];
  // Without controllers the status of a Deployment is never written.
  return controllers === "on" ? [...objects, manifest(asleep)] : objects;
}

describe.each(targets)("Starling's group on %s", (_name, start) => {
  let server: Server;
  let admin: ClusterFixture;
  let starling: ClusterFixture;
  beforeAll(async () => {
    server = await start();
    [admin, starling] = [clusterFixture({ endpoint: server.admin }), clusterFixture({ endpoint: server.starling })];
  }, 120_000);
  afterAll(async () => {
    await Promise.all([admin.stop(), starling.stop()]);
    await server.stop();
  });

  /** Applies the same rules as `starling cluster add --grant`. */
  async function giveAccess(): Promise<void> {
    await applyRbac(admin.client, defaultGroup);
    // A real server decides by its informers' caches, which lag behind.
    await untilEqual(() => starling.statusOf("/api/v1/namespaces/starling-system/configmaps/x"), 404);
    await untilEqual(() => starling.statusOf("/api/v1/namespaces/other/secrets/x"), 404);
  }

  /** The result of `starling cluster check` for the authorization. */
  async function checked() {
    const connection = new KubeConnection(server.starling);
    try {
      return await grantedLink(connection.reviews({ deadlineMs: Date.now() + 20_000 }));
    } finally {
      connection.close();
    }
  }

  test("the group may do nothing before the access is granted, and a check names what it may not do", async () => {
    expect(await starling.statusOf("/api/v1/namespaces/kube-system")).toBe(403);
    expect(await checked()).toMatchObject({
      state: "broken",
      message:
        "Starling may not get namespaces kube-system, get namespaces starling-system, list anything, get customresourcedefinitions.apiextensions.k8s.io, get/create/update/delete configmaps in starling-system",
    });
    await giveAccess();
    expect(await starling.statusOf("/api/v1/namespaces/kube-system")).toBe(200);
    expect(await checked()).toEqual({ link: "authorization", state: "ok" });
    expect(await applyRbac(admin.client, defaultGroup)).toEqual([]);
  });

  test("a check finds a missing binding or verb, and another grant restores it", async () => {
    await giveAccess();
    await admin.raw("DELETE", `/apis/${rbac}/clusterrolebindings/starling-fleet`);
    await untilEqual(async () => (await checked()).state, "broken");
    expect(await applyRbac(admin.client, defaultGroup)).toEqual(["ClusterRoleBinding starling-fleet created"]);
    const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["get", "create", "patch"] }];
    await admin.raw("PATCH", `/apis/${rbac}/clusterroles/starling-fleet`, { as: "merge-patch", body: { rules } });
    await untilEqual(async () => (await checked()).state, "limited");
    expect((await checked()).message).toMatch(/^manifests of a fleet may not delete configmaps, /);
    expect(await applyRbac(admin.client, defaultGroup)).toEqual(["ClusterRole starling-fleet configured"]);
    await untilEqual(checked, { link: "authorization", state: "ok" });
  });

  test("the access suffices for a Sync from its first apply to its deletion, and may be granted twice", async () => {
    await giveAccess();
    await giveAccess();
    const connection = new KubeConnection(server.starling);
    const world = await new WorkerWorld({
      connect: async (_cluster, deadline) => connection.client({ deadlineMs: deadline.getTime() }),
      distrust() {},
    }).begin();
    const check = async (phase: string) => {
      world.aheadMs += 900_000;
      await world.work();
      return (await world.phase("web")) === phase ? phase : (await world.sync("web"))?.observed;
    };
    const objects = fleetObjects(server.controllers);
    await world.assign("web", objects);
    await world.work();
    await untilEqual(() => check("Ready"), "Ready");

    // Starling corrects a field that was changed by hand, and deletes objects that left the folder.
    const settings = "/api/v1/namespaces/shop/configmaps/settings";
    await admin.raw("PATCH", settings, { as: "merge-patch", body: { data: { k: "edited" } } });
    await untilEqual(() => check("Ready"), "Ready");
    expect(await admin.raw("GET", settings)).toMatchObject({ data: { k: "1" } });
    await world.assign(
      "web",
      objects.filter(({ kind }) => kind !== "CronJob" && kind !== "RoleBinding"),
    );
    await world.work();
    await untilEqual(() => check("Ready"), "Ready");
    expect(await admin.statusOf("/apis/batch/v1/namespaces/shop/cronjobs/nightly")).toBe(404);
    expect(await admin.statusOf(`/apis/${rbac}/namespaces/shop/rolebindings/web`)).toBe(404);

    // Starling deletes a Namespace only after it has seen that it is empty. The namespace controller then removes it.
    await world.assignDelete("web");
    const isGone = async () => {
      world.aheadMs += 60_000;
      await world.work();
      return Promise.all([settings, "/api/v1/namespaces/shop/secrets/key"].map(admin.statusOf));
    };
    await untilEqual(isGone, [404, 404]);
    const shop = "/api/v1/namespaces/shop";
    if (server.controllers === "on") await untilEqual(() => admin.statusOf(shop), 404);
    else expect(await admin.raw("GET", shop)).toMatchObject({ status: { phase: "Terminating" } });
    connection.close();
  });

  const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
  const admins = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" };
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  /** Each request would reach more than the manifests of a fleet. */
  const beyond: readonly (readonly [what: string, ...Parameters<ClusterFixture["raw"]>])[] = [
    ["run a Pod", "POST", "/api/v1/namespaces/default/pods", { body: { metadata: { name: "p" }, spec: pod } }],
    ["run a command in a Pod", "POST", "/api/v1/namespaces/default/pods/p/exec?command=id"],
    ["read a node", "GET", "/api/v1/nodes/n"],
    ["change a node", "PATCH", "/api/v1/nodes/n", { as: "merge-patch", body: { spec: { unschedulable: true } } }],
    ["read another's ClusterRole", "GET", `/apis/${rbac}/clusterroles/cluster-admin`],
    [
      "make a ClusterRole",
      "POST",
      `/apis/${rbac}/clusterroles`,
      { body: { metadata: { name: "r" }, rules: everything } },
    ],
    [
      "widen its own ClusterRole",
      "PATCH",
      `/apis/${rbac}/clusterroles/starling-fleet`,
      { as: "merge-patch", body: { rules: everything } },
    ],
    [
      "make a Role with more rights than its own",
      "POST",
      `/apis/${rbac}/namespaces/default/roles`,
      { body: { metadata: { name: "r" }, rules: everything } },
    ],
    [
      "bind a ClusterRole with more rights than its own",
      "POST",
      `/apis/${rbac}/namespaces/default/rolebindings`,
      { body: { metadata: { name: "b" }, roleRef: admins, subjects } },
    ],
    [
      "get a token of a ServiceAccount",
      "POST",
      "/api/v1/namespaces/default/serviceaccounts/default/token",
      { body: { spec: {} } },
    ],
    ["delete all of a kind at once", "DELETE", "/api/v1/namespaces/default/configmaps"],
    [
      "replace a ConfigMap outside of starling-system",
      "PUT",
      "/api/v1/namespaces/default/configmaps/c",
      { body: { metadata: { name: "c" } } },
    ],
    [
      "define a kind",
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      { body: { metadata: { name: "x.y" } } },
    ],
    [
      "register a webhook",
      "POST",
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
      { body: { metadata: { name: "w" } } },
    ],
  ];

  test("the group may not do anything beyond the manifests of a fleet", async () => {
    await giveAccess();
    const bodies = await Promise.all(
      beyond.map(async ([what, method, path, request]) => {
        const status = await starling.raw(method, path, { ...request, expect: 403 }).catch((error: Error) => error);
        return [what, status instanceof Error ? status.message : status.code];
      }),
    );
    expect(bodies).toEqual(beyond.map(([what]) => [what, 403]));
    const other = new KubeConnection(server.starling);
    const asAdmin = other.client({
      deadlineMs: Date.now() + 20_000,
      impersonate: { user: "admin", groups: ["system:masters"] },
    });
    await expect(asAdmin.serverVersion()).rejects.toMatchObject({ status: 403 });
    other.close();
    // The requests came from Starling's user all the time.
    const who = await starling.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { body: review });
    expect(who).toMatchObject({ status: { userInfo: { username: user.name } } });
  });
});
