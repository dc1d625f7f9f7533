import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import type { ApplyErrorFacts } from "#shared/kube/apply-error.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { deleteSet } from "#shared/kube/engine/delete-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { findMembers } from "#shared/kube/engine/find-members.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { listAt, type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import { parentName, setIdOf } from "#shared/kube/parent-object.ts";
import {
  claimFor,
  configMap,
  definition,
  deployment,
  inSeconds,
  manifest,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { cutOffClient } from "#test/support/cut-off-client.ts";
import { applyRequest, faultyEngineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, watchedClient } from "#test/support/watched-client.ts";

/** Obstacles of an apply, of a deletion and of a search, in a cluster with settable faults. */
const cluster = forAllTests(faultyEngineWorld);
afterEach(() => cluster.setFaults({}));

const secret = (at: string, data: object) => {
  const [inNamespace = "", name = ""] = at.split("/");
  return manifest({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: inNamespace }, data: { ...data } });
};
const refused = (facts: Partial<ApplyErrorFacts>) =>
  new KubeError({ method: "PATCH", path: "/", secret: false }, { status: 500, message: "", causes: [], ...facts });

/** A client to which some calls are answered by an error, and what was called. */
function troubled(answer: (call: ClientCall, earlier: readonly string[]) => KubeError | undefined) {
  const calls: string[] = [];
  const client = watchedClient(cluster.client, async (call) => {
    const said = `${call.method} ${call.name}`;
    const error = answer(call, calls);
    calls.push(said);
    if (error !== undefined) throw error;
  });
  return { client, calls };
}

function summary({ outcome, objects }: Awaited<ReturnType<typeof applySet>>) {
  return { outcome, objects: Object.fromEntries(objects.map(({ id, outcome }) => [`${id.kind} ${id.name}`, outcome])) };
}

describe("an apply", () => {
  const group = "moved.example.com";
  const newer = `${group}/v2`;

  /** Serves two versions, of which the older one is stored. */
  async function moved(ns: string) {
    const { spec, ...rest } = definition(group) as ManifestObject & {
      readonly spec: { readonly versions: readonly object[] };
    };
    const versions = [...spec.versions, { ...spec.versions[0], name: "v2", storage: false }];
    await cluster.applied("moved-definition", [manifest({ ...rest, spec: { ...spec, versions } } as never)]);
    const older = widget(group, `${ns}/w`);
    const before = await cluster.applied(ns, [namespace(ns), older]);
    return { before, objects: [namespace(ns), manifest({ ...older, apiVersion: newer } as never)] };
  }
  const conversion = { message: "request to convert CR to an invalid group/version: moved.example.com/v1" };

  test("an apply that meets entries of a removed version writes them with its own, and tries again", async () => {
    const { before, objects } = await moved("moved");
    const { client, calls } = troubled(({ method, name }, earlier) =>
      method === "apply" && name === "w" && !earlier.includes("apply w") ? refused(conversion) : undefined,
    );
    const result = await applySet(client, applyRequest("moved", objects, { inventory: before }));
    expect(summary(result)).toMatchObject({ outcome: "applied" });
    expect(calls.filter((call) => call.endsWith(" w"))).toEqual(["apply w", "get w", "patch w", "apply w"]);
    const live = await cluster.raw("GET", `/apis/${newer}/namespaces/moved/widgets/w`);
    const entries = listAt(live as never, "metadata", "managedFields") as readonly { readonly apiVersion: string }[];
    expect(new Set(entries.map(({ apiVersion }) => apiVersion))).toEqual(new Set([newer]));
  });

  test("an apply that meets such entries again is left for later, and is not tried for ever", async () => {
    const { before, objects } = await moved("moved-again");
    const { client, calls } = troubled(({ method, name }) =>
      method === "apply" && name === "w" ? refused(conversion) : undefined,
    );
    const result = await applySet(client, applyRequest("moved-again", objects, { inventory: before }));
    expect(result.objects.at(-1)).toMatchObject({ outcome: "failed", failure: { class: "migrate", retryable: true } });
    expect(calls.filter((call) => call === "apply w")).toHaveLength(2);
  });

  test("an apply of a custom kind that answers 404 for a moment is tried again; one of a built-in kind is not", async () => {
    const own = "moment.example.com";
    await cluster.applied("moment-definition", [namespace("moment"), definition(own)]);
    const { client, calls } = troubled(({ method, name }, earlier) => {
      const known = earlier.filter((call) => call === "apply w").length;
      const missing = method === "apply" && ((name === "w" && known < 2) || name === "c");
      return missing ? refused({ status: 404, message: "404 page not found" }) : undefined;
    });
    const objects = [widget(own, "moment/w"), configMap("moment/c")];
    expect(summary(await applySet(client, applyRequest("moment", objects)))).toEqual({
      outcome: "failed",
      objects: { "ConfigMap c": "failed", "Widget w": "created" },
    });
    expect(calls.filter((call) => call === "apply w")).toHaveLength(3);
    expect(calls.filter((call) => call === "apply c")).toHaveLength(1);
  });

  test("an apply of invalid base64 names the fields, what to do, and no value", async () => {
    const bad = secret("default/bad", { one: "hunter two!", two: "hunter three!", fine: "eA==" });
    const config = manifest({ ...configMap("default/blob"), data: {}, binaryData: { image: "hunter four!" } } as never);
    const result = await cluster.apply("base64", [bad, config]);
    const failures = result.objects.flatMap((object) => (object.outcome === "failed" ? [object.failure] : []));
    expect(failures.map(({ class: kind, reason, message }) => [kind, reason, message])).toEqual(
      expect.arrayContaining([
        ["invalid", "Invalid", "data.one, data.two are not base64: encode the value, or put the text under stringData"],
        ["invalid", "Invalid", "binaryData.image is not base64: encode the value, or put the text under data"],
      ]),
    );
    expect(JSON.stringify(result)).not.toContain("hunter");
  });

  test("an apply of a kind that may not be read fails alone, and a stranger's object of another kind is still found", async () => {
    const theirs = { "app.kubernetes.io/managed-by": "Helm" };
    const annotations = { "meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "default" };
    const chart = { metadata: { name: "chart", namespace: "default", labels: theirs, annotations } };
    await cluster.raw("POST", "/api/v1/namespaces/default/configmaps", {
      body: { ...configMap("default/chart"), ...chart },
    });
    const { client } = troubled(({ method, name }) =>
      (method === "get" || method === "list") && (name === "hidden" || name === "secrets")
        ? refused({ status: 403, reason: "Forbidden", message: "secrets is forbidden" })
        : undefined,
    );
    const objects = [secret("default/hidden", {}), configMap("default/chart"), configMap("default/plain")];
    const result = await applySet(client, applyRequest("unread", objects));
    expect(summary(result)).toEqual({
      outcome: "failed",
      objects: { "Secret hidden": "failed", "ConfigMap chart": "failed", "ConfigMap plain": "created" },
    });
    const reasons = result.objects.map((object) => (object.outcome === "failed" ? object.failure.reason : undefined));
    expect(reasons.toSorted()).toEqual(["Forbidden", "ForeignOwner", undefined]);
  });
});

test.each([
  ["the cluster stopped answering", "ECONNREFUSED", "unreachable"],
  ["the time was up", "ETIMEDOUT", "waiting"],
])(
  "if %s, the objects that were applied before are reported, and no definition is recorded",
  async (_why, code, outcome) => {
    const group = `${outcome}.example.com`;
    await cluster.applied(`${outcome}-definition`, [definition(group)]);
    const deadline = inSeconds(60);
    let now = new Date();
    const { client } = troubled((call) => {
      if (!(call.method === "apply" && call.name === "late")) return undefined;
      if (outcome === "waiting") now = deadline;
      return new KubeError({ method: "PATCH", path: "/", secret: false }, { message: "", causes: [], code });
    });
    // Workloads come after custom objects.
    const objects = [widget(group, "default/w"), deployment("default/late")];
    const clock = { now: () => now, sleep: async () => {} };
    const result = await applySet(client, applyRequest(`${outcome}-late`, objects, { deadline, clock }));
    expect(result).toMatchObject({ outcome, definitions: {} });
    expect(summary(result).objects).toMatchObject({ "Widget w": "created" });
  },
);

test("an object that an earlier run of the same attempt applied is not written again, and the others are", async () => {
  const [first, second] = [configMap("default/first"), configMap("default/second")];
  const inventory = await cluster.applied("resumed", [first, second]);
  const { client, calls } = troubled(() => undefined);
  const done = new Set([objectIdKey(objectIdOf(first))]);
  const result = await applySet(client, applyRequest("resumed", [first, second], { inventory, done }));
  expect(summary(result)).toEqual({
    outcome: "applied",
    objects: { "ConfigMap first": "resumed", "ConfigMap second": "unchanged" },
  });
  expect(calls.filter((call) => call.endsWith(" first"))).toEqual([]);
  expect(calls.filter((call) => call.endsWith(" second"))).toEqual(["apply second"]);
});

describe("the deletion of a set", () => {
  async function applied(set: string) {
    const claim = claimFor(set);
    await ensureParent(cluster.client, { claim, groupKinds: [] });
    const inventory = await cluster.applied(set, [deployment(`default/${set}`)]);
    return { claim, inventory, unrecorded: [] };
  }
  const parentStatus = (set: string) =>
    cluster.statusOf(`/api/v1/namespaces/starling-system/configmaps/${parentName(claimFor(set))}`);

  test("a deletion that may not delete the parent reports that, and the parent stays", async () => {
    const set = await applied("parented");
    const about = { kinds: ["ConfigMap"], operations: ["DELETE" as const] };
    await cluster.setFaults({
      webhooks: [{ name: "policy.example.com", does: "deny", message: "not today", ...about }],
    });
    const request = { ...set, clock: systemClock, deadline: inSeconds(60) };
    await expect(deleteSet(cluster.client, request)).rejects.toMatchObject({ class: "forbidden" });
    expect(await parentStatus("parented")).toBe(200);
    await cluster.setFaults({});
    expect(await deleteSet(cluster.client, request)).toMatchObject({ outcome: "done" });
    expect(await parentStatus("parented")).toBe(404);
  });

  test("a deletion whose time ends before the parent's turn continues in the next run", async () => {
    const set = await applied("timed");
    const deadline = inSeconds(60);
    let now = new Date();
    const { client, calls } = troubled(({ method, name }) => {
      if (method === "delete" && name === "timed") now = deadline;
      return undefined;
    });
    const result = await deleteSet(client, { ...set, clock: { now: () => now }, deadline });
    expect(result).toMatchObject({ outcome: "waiting", timeWasUp: true, settled: [{ name: "timed" }] });
    expect(calls.filter((call) => call.startsWith("delete"))).toEqual(["delete timed"]);
    expect(await parentStatus("timed")).toBe(200);
  });

  test("a deletion that is cut off at its parent is checked again, and is no failure", async () => {
    const set = await applied("cut-parent");
    const deadline = inSeconds(60);
    const { client, clock } = cutOffClient(cluster.client, { verb: "delete", kind: "ConfigMap", path: "/", deadline });
    const result = await deleteSet(client, { ...set, clock, deadline });
    expect(result).toMatchObject({ outcome: "waiting", timeWasUp: true, settled: [{ name: "cut-parent" }] });
    const settled = { ...set, inventory: { ...set.inventory, entries: [] } };
    const again = { ...settled, clock: systemClock, deadline: inSeconds(60) };
    expect(await deleteSet(cluster.client, again)).toMatchObject({ outcome: "done", timeWasUp: false });
  });

  test("a deletion that keeps its parent leaves it in the cluster", async () => {
    const set = await applied("kept-parent");
    const request = { ...set, parent: "keep" as const, clock: systemClock, deadline: inSeconds(60) };
    expect(await deleteSet(cluster.client, request)).toMatchObject({ outcome: "done", timeWasUp: false });
    expect(await parentStatus("kept-parent")).toBe(200);
  });
});

describe("a search for members", () => {
  const search = (set: string) => ({ setId: setIdOf(claimFor(set)), kinds: undefined, namespaces: ["default"] });
  const names = (found: Awaited<ReturnType<typeof findMembers>>) =>
    found.objects
      .map(({ id, version, live }) => [id.kind, id.name, version, stringAt(live, "metadata", "name")])
      .sort();

  test("a search finds the members in all kinds, with their versions, and no other object", async () => {
    await cluster.applied("found", [configMap("default/found"), deployment("default/found")]);
    await cluster.applied("others", [configMap("default/others")]);
    const found = await findMembers(cluster.client, search("found"));
    expect(names(found)).toEqual([
      ["ConfigMap", "found", "v1", "found"],
      ["Deployment", "found", "v1", "found"],
    ]);
    expect(found.unread).toEqual([]);
    const kinds = [
      { group: "apps", kind: "Deployment" },
      { group: "apps", kind: "Deployment" },
      { group: "gone.example.com", kind: "Gone" },
    ];
    expect(names(await findMembers(cluster.client, { ...search("found"), kinds }))).toEqual([
      ["Deployment", "found", "v1", "found"],
    ]);
  });

  test("a search names the kinds that may not be listed", async () => {
    await cluster.applied("partly", [configMap("default/partly")]);
    const { client } = troubled(({ method, name }) =>
      method === "list" && (name === "secrets" || name === "deployments")
        ? refused({ status: 403, reason: "Forbidden", message: "forbidden" })
        : undefined,
    );
    const found = await findMembers(client, search("partly"));
    expect(found.unread).toEqual(["Deployment.apps", "Secret"]);
    expect(names(found)).toEqual([["ConfigMap", "partly", "v1", "partly"]]);
  });

  test("a search does not take half of the members for all of them", async () => {
    const { client } = troubled(({ method, name }) =>
      method === "list" && name === "secrets"
        ? refused({ status: 500, message: "etcdserver: leader changed" })
        : undefined,
    );
    await expect(findMembers(client, search("found"))).rejects.toMatchObject({ class: "transient" });
    const group = "silent.example.com";
    await cluster.setFaults({ unavailableApis: [`v1.${group}`] });
    cluster.client.forgetKinds();
    const kinds = [{ group, kind: "Widget" }];
    await expect(findMembers(cluster.client, { ...search("found"), kinds })).rejects.toMatchObject({
      code: "KindUnavailable",
      retry: "transient",
      message: expect.stringContaining(group),
      data: { group, kind: "Widget" },
    });
    cluster.client.forgetKinds();
  });
});
