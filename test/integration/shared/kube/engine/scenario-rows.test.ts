/** The rows A of the acceptance scenarios about requests to a cluster, each with its number. */
import { startClusterHost } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { type ManifestObject, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import {
  claimFor,
  clusterFixture,
  configMap,
  definition,
  deployment,
  endpointOf,
  manifest,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { applyRequest, engineWorld, pruneRequest } from "#test/support/engine-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const rbac = "rbac.authorization.k8s.io";
const widgets = "w.example.com";

/** A cluster that records its requests, and a worker with limited permissions. */
const world = forEachTest(async () => {
  const limited = async (token: string) =>
    token === "limited" ? { username: "limited", groups: ["workers"] } : undefined;
  const host = await startClusterHost({ controllers: "off", authenticator: limited });
  const connection = host.addCluster("c1");
  const engine = engineWorld({ endpoint: endpointOf(connection), stop: () => host.stop() });
  const worker = clusterFixture({ endpoint: endpointOf({ ...connection, token: "limited" }) });
  return {
    ...engine,
    host,
    limited: worker.client,
    async stop() {
      await worker.stop();
      await engine.stop();
    },
  };
});

/** The writes to the cluster, in the order of the answers: `Pod p`, and `-Pod p` for a deletion. */
function written(): readonly string[] {
  return world.host.requests().flatMap(({ method, dryRun, status, object = "" }) => {
    if (method === "GET" || dryRun || status >= 300) return [];
    return [`${method === "DELETE" ? "-" : ""}${plainly(object)}`];
  });
}

/** Kind and name of a `group/Kind namespace/name`. */
function plainly(object = ""): string {
  return object
    .split(" ")
    .map((part) => part.slice(part.indexOf("/") + 1))
    .join(" ");
}

const outcomes = (objects: readonly { readonly id: { readonly kind: string }; readonly outcome: string }[]) =>
  Object.fromEntries(objects.map(({ id, outcome }) => [id.kind, outcome]));

function role(name: string, resource: string): ManifestObject {
  const rules = [{ apiGroups: [""], resources: [resource], verbs: ["get"] }];
  return manifest({ apiVersion: `${rbac}/v1`, kind: "Role", metadata: { name, namespace: "shop" }, rules });
}

function binding(name: string): ManifestObject {
  return manifest({
    apiVersion: `${rbac}/v1`,
    kind: "RoleBinding",
    metadata: { name, namespace: "shop" },
    roleRef: { apiGroup: rbac, kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name: "web", namespace: "shop" }],
  });
}

const pod = manifest({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "shop" },
  spec: {
    serviceAccountName: "web",
    priorityClassName: "high",
    runtimeClassName: "sandboxed",
    containers: [{ name: "c", image: "c:1" }],
  },
});
const account = manifest({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "web", namespace: "shop" } });
const priority = manifest({
  apiVersion: "scheduling.k8s.io/v1",
  kind: "PriorityClass",
  metadata: { name: "high" },
  value: 1000,
});
const runtime = manifest({
  apiVersion: "node.k8s.io/v1",
  kind: "RuntimeClass",
  metadata: { name: "sandboxed" },
  handler: "runsc",
});
const hook = manifest({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: "guard" },
  webhooks: [
    {
      name: "guard.example.com",
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
      failurePolicy: "Fail",
      clientConfig: { service: { name: "guard", namespace: "shop" } },
      rules: [
        { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["deployments"] },
      ],
    },
  ],
});
const clusterRole = manifest({ apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name: "all" }, rules: [] });
const clusterBinding = manifest({
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRoleBinding",
  metadata: { name: "all" },
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "all" },
});

/** Legend: row, the objects with the last one first, the expected writes in order. */
const orders: readonly (readonly [string, readonly ManifestObject[], readonly string[]])[] = [
  [
    "A01",
    [deployment("shop/web"), clusterBinding, clusterRole, widget(widgets, "shop/w"), definition(widgets)],
    [
      `CustomResourceDefinition widgets.${widgets}`,
      "ClusterRole all",
      "ClusterRoleBinding all",
      "Widget w",
      "Deployment web",
    ],
  ],
  ["A19", [hook, deployment("shop/guard")], ["Deployment guard", "ValidatingWebhookConfiguration guard"]],
  ["A21", [pod, account], ["ServiceAccount web", "Pod p"]],
  ["A22", [pod], ["Pod p"]],
  ["A23", [pod, runtime, priority], ["RuntimeClass sandboxed", "PriorityClass high", "Pod p"]],
];

test.each(orders)(
  "%s: one run writes the objects in their order, and a second run writes nothing",
  async (_row, objects, desired) => {
    const all = [...objects, namespace("shop")];
    const inventory = await world.applied("rows", all);
    expect(written()).toEqual(["Namespace shop", ...desired]);
    const before = world.host.objects("c1");
    const again = await world.apply("rows", all, { inventory });
    expect(world.host.objects("c1")).toEqual(before);
    expect(new Set(again.objects.map(({ outcome }) => outcome))).toEqual(new Set(["unchanged"]));
  },
);

test("A01: a definition is established before the first object of its kind is sent", async () => {
  const seen: unknown[] = [];
  world.host.intercept(({ method, path, phase }) => {
    if (phase === "before" && method !== "GET" && path.includes("/widgets/")) {
      const found = world.host.objects("c1").find(({ kind }) => kind === "CustomResourceDefinition");
      const conditions = (valueAt(found, "status", "conditions") ?? []) as readonly { type: string; status: string }[];
      seen.push(conditions.find(({ type }) => type === "Established")?.status);
    }
    return "pass";
  });
  await world.applied("rows", [widget(widgets, "shop/w"), definition(widgets), namespace("shop")]);
  expect(seen).toEqual(["True"]);
});

test("A02: a kind that was not found before its definition was applied is found in the same run", async () => {
  const { client } = world;
  expect(await client.lookup({ group: widgets, kind: "Widget" })).toMatchObject({ outcome: "absent" });
  const objects = [namespace("shop"), definition(widgets), widget(widgets, "shop/w")];
  const result = await applySet(client, applyRequest("rows", objects));
  expect(result.outcome).toBe("applied");
  expect(outcomes(result.objects)).toMatchObject({ Widget: "created" });
});

describe("A06: a worker that may grant only its own permissions", () => {
  async function grant(resource: string): Promise<void> {
    const any = { apiGroups: ["*"], resources: ["*"], verbs: ["get", "list"] };
    const write = ["create", "patch", "get"];
    const rules = [
      { apiGroups: [""], resources: ["namespaces", "serviceaccounts"], verbs: write },
      { apiGroups: [rbac], resources: ["roles", "rolebindings"], verbs: write },
      { ...any, apiGroups: ["apiextensions.k8s.io"] },
      { apiGroups: [""], resources: [resource], verbs: ["get"] },
      { nonResourceURLs: ["*"], verbs: ["get"] },
    ];
    const body = { metadata: { name: "workers" }, rules };
    const subjects = [{ kind: "Group", name: "workers", apiGroup: rbac }];
    const roleRef = { apiGroup: rbac, kind: "ClusterRole", name: "workers" };
    await world.raw("POST", `/apis/${rbac}/v1/clusterroles`, { body });
    const given = { metadata: { name: "workers" }, roleRef, subjects };
    await world.raw("POST", `/apis/${rbac}/v1/clusterrolebindings`, { body: given });
  }
  const objects = [binding("reader"), role("reader", "configmaps"), account, namespace("shop")];

  test("the worker makes a new Role and its binding in one run", async () => {
    await grant("configmaps");
    const result = await applySet(world.limited, applyRequest("rows", objects));
    expect(outcomes(result.objects)).toEqual({
      Namespace: "created",
      ServiceAccount: "created",
      Role: "created",
      RoleBinding: "created",
    });
  });

  test("the worker reports the permissions that it lacks", async () => {
    await grant("secrets");
    const result = await applySet(world.limited, applyRequest("rows", objects));
    const failures = result.objects.flatMap((object) => ("failure" in object ? [object.failure] : []));
    expect(failures[0]).toMatchObject({
      class: "forbidden",
      retryable: false,
      message: expect.stringContaining("is attempting to grant RBAC permissions not currently held"),
    });
    expect(outcomes(result.objects)).toMatchObject({ Role: "failed", RoleBinding: "failed" });
  });
});

describe("A13: a Namespace of the set", () => {
  test("the objects of a missing Namespace are not sent before it exists", async () => {
    await world.applied("rows", [configMap("shop/c"), deployment("shop/web"), namespace("shop")]);
    const [first] = world.host.requests().filter(({ path, method }) => method !== "GET" && path.includes("shop"));
    expect(plainly(first?.object)).toBe("Namespace shop");
  });

  test("the objects of a Namespace that cannot be made are not tried, dry or not", async () => {
    await world.host.setFaults("c1", {
      webhooks: [{ name: "no.example.com", does: "deny", message: "no", kinds: ["Namespace"] }],
    });
    const result = await world.apply("rows", [configMap("shop/c"), account, namespace("shop")]);
    expect(outcomes(result.objects)).toEqual({ Namespace: "failed", ServiceAccount: "skipped", ConfigMap: "skipped" });
    const sent = world.host.requests().filter(({ method }) => method !== "GET");
    expect(sent.map(({ object }) => plainly(object))).toEqual(["Namespace shop"]);
  });
});

test("A18: an object is gone before the definition of its kind is deleted", async () => {
  const keep = [namespace("shop")];
  const claim = claimFor("rows");
  await ensureParent(world.client, { claim, groupKinds: [] });
  const inventory = await world.applied("rows", [...keep, definition(widgets), widget(widgets, "shop/w")]);
  const path = `/apis/${widgets}/v1/namespaces/shop/widgets/w`;
  const hold = (finalizers: readonly string[] | null) =>
    world.raw("PATCH", path, { as: "merge-patch", body: { metadata: { finalizers } } });
  await hold(["example.com/hold"]);
  world.host.clearRequests();
  expect(await pruneSet(world.client, pruneRequest({ claim, inventory }, keep))).toMatchObject({ outcome: "waiting" });
  expect(written()).toEqual(["-Widget w"]);
  await hold(null);
  await expect
    .poll(async () => (await pruneSet(world.client, pruneRequest({ claim, inventory }, keep))).outcome)
    .toBe("done");
  expect(written().filter((object) => object.startsWith("-"))).toEqual([
    "-Widget w",
    `-CustomResourceDefinition widgets.${widgets}`,
  ]);
});

test("A22: a Pod whose ServiceAccount does not exist yet is created by the next run", async () => {
  let isThere = false;
  world.host.intercept(({ method, path, phase }) => {
    if (isThere || phase === "after" || method !== "PATCH" || !path.endsWith("/pods/p")) return "pass";
    const message =
      'pods "p" is forbidden: error looking up service account shop/default: serviceaccount "default" not found';
    return { status: 403, body: { kind: "Status", status: "Failure", reason: "Forbidden", code: 403, message } };
  });
  const objects = [pod, namespace("shop")];
  const first = await world.apply("rows", objects);
  expect(first.objects[1]).toMatchObject({ outcome: "failed", failure: { class: "forbidden", retryable: true } });
  isThere = true;
  const second = await world.apply("rows", objects);
  expect(second.objects[1]).toMatchObject({ outcome: "created" });
});

test("I16: an object with the default namespace and the same one without a namespace are an error before any write", async () => {
  const bare = manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } });
  const result = await world.apply("rows", [namespace("shop"), configMap("shop/c"), bare], {
    defaultNamespace: "shop",
  });
  const failed = result.objects.flatMap((object) => ("failure" in object ? [object.failure] : []));
  expect(failed[0]).toMatchObject({ reason: "DuplicateObject", message: expect.stringContaining("ConfigMap shop/c") });
  expect(written()).toEqual([]);
  expect(stringAt(await world.raw("GET", "/api/v1/namespaces/shop", { expect: 404 }), "reason")).toBe("NotFound");
});
