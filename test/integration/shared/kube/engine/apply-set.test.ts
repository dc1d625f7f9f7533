import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import type { AppliedObject } from "#shared/kube/engine/apply-object.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
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
import { applyRequest, engineWorld, recorded } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

describe.each(clusterTargets)("applySet on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const outcomes = (objects: readonly AppliedObject[]) =>
    Object.fromEntries(objects.map((object) => [describeObject(object.id), object.outcome]));
  const failureIn = (objects: readonly AppliedObject[]) =>
    objects.flatMap((object) => (object.outcome === "failed" ? [object.failure] : []))[0];

  const group = "full.example.com";
  const full = [
    widget(group, "full/w"),
    deployment("full/web"),
    manifest({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "full" },
      spec: { selector: { app: "web" }, ports: [{ port: 80, protocol: "TCP" }] },
    }),
    manifest({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "reader", namespace: "full" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
      subjects: [{ kind: "ServiceAccount", name: "web", namespace: "full" }],
    }),
    manifest({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: "reader", namespace: "full" },
      rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }],
    }),
    manifest({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "web", namespace: "full" } }),
    manifest({ apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: "full" }, data: { k: "eA==" } }),
    configMap("full/c"),
    definition(group),
    namespace("full"),
  ];

  test("one run applies all objects, whatever their order in the set", async () => {
    const result = await cluster.apply("full", full);
    expect(outcomes(result.objects)).toEqual({
      "Namespace full": "created",
      [`CustomResourceDefinition.apiextensions.k8s.io widgets.${group}`]: "created",
      "ServiceAccount full/web": "created",
      "Role full/reader": "created",
      "RoleBinding full/reader": "created",
      "ConfigMap full/c": "created",
      "Secret full/s": "created",
      "Service full/web": "created",
      [`Widget.${group} full/w`]: "created",
      "Deployment full/web": "created",
    });
    expect(result.outcome).toBe("applied");
    expect(result.definitions).toEqual({ [`widgets.${group}`]: expect.any(Number) });
  });

  test("a second run of the same set writes nothing", async () => {
    const first = await cluster.applied("full", full);
    const result = await cluster.apply("full", full, { inventory: first });
    expect(new Set(result.objects.map(({ outcome }) => outcome))).toEqual(new Set(["unchanged"]));
    const second = recorded(first, result);
    expect(second.entries).toEqual(first.entries);
  });

  test("an apply changes values and removes keys, but keeps the keys of another manager", async () => {
    const before = [namespace("change"), configMap("change/c", { mine: "1", dropped: "1" })];
    const inventory = await cluster.applied("change", before);
    const path = "/api/v1/namespaces/change/configmaps/c";
    await cluster.raw("PATCH", `${path}?fieldManager=them`, { as: "merge-patch", body: { data: { theirs: "1" } } });
    const result = await cluster.apply("change", [namespace("change"), configMap("change/c", { mine: "2" })], {
      inventory,
    });
    expect(outcomes(result.objects)).toEqual({ "Namespace change": "unchanged", "ConfigMap change/c": "configured" });
    expect((await cluster.raw("GET", path)).data).toEqual({ mine: "2", theirs: "1" });
  });

  test("every applied object has the label of its set", async () => {
    await cluster.apply("marks", [namespace("marks"), configMap("marks/c")]);
    const live = await cluster.raw("GET", "/api/v1/namespaces/marks/configmaps/c");
    expect(stringAt(live, "metadata", "labels", "applyset.kubernetes.io/part-of")).toBe(setIdOf(claimFor("marks")));
  });

  test("the default namespace is used only for namespaced objects without a namespace", async () => {
    const nowhere = manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } });
    const role = manifest({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "placed" },
      rules: [],
    });
    const objects = [namespace("given"), namespace("own"), nowhere, role, configMap("own/c")];
    const result = await cluster.apply("given", objects, { defaultNamespace: "given" });
    expect(outcomes(result.objects)).toEqual({
      "Namespace given": "created",
      "Namespace own": "created",
      "ClusterRole placed": "created",
      "ConfigMap given/c": "created",
      "ConfigMap own/c": "created",
    });
  });

  test("a namespaced object without a namespace stops the set before any write", async () => {
    const nowhere = manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } });
    const result = await cluster.apply("nowhere", [namespace("nowhere"), nowhere]);
    expect(result.outcome).toBe("failed");
    expect(failureIn(result.objects)).toMatchObject({
      reason: "NoNamespace",
      message: expect.stringContaining("ConfigMap c"),
    });
    expect(await cluster.statusOf("/api/v1/namespaces/nowhere")).toBe(404);
  });

  test("a namespace on a cluster-scoped object is dropped, also for kinds of the same set", async () => {
    const cluster_ = "scoped.example.com";
    const misplaced = manifest({ ...namespace("scoped"), metadata: { name: "scoped", namespace: "bogus" } });
    const objects = [misplaced, definition(cluster_, "Cluster"), widget(cluster_, "bogus/w")];
    const result = await cluster.apply("scoped", objects);
    expect(result.outcome).toBe("applied");
    expect(result.objects.map(({ id }) => id.namespace)).toEqual(["", "", ""]);
  });

  test("two objects that are the same because their kind has no namespace are refused", async () => {
    const one = manifest({ ...namespace("twice"), metadata: { name: "twice", namespace: "a" } });
    const result = await cluster.apply("twice", [namespace("twice"), one]);
    expect(failureIn(result.objects)).toMatchObject({ reason: "DuplicateObject" });
  });

  test("one failing object does not hide the others", async () => {
    const broken = manifest({ ...configMap("broken/b"), nope: 1 });
    const result = await cluster.apply("broken", [
      namespace("broken"),
      broken,
      configMap("broken/a"),
      deployment("broken/z"),
    ]);
    expect(result.outcome).toBe("failed");
    expect(outcomes(result.objects)).toMatchObject({
      "ConfigMap broken/a": "created",
      "ConfigMap broken/b": "failed",
      "Deployment broken/z": "created",
    });
    expect(failureIn(result.objects)).toMatchObject({ class: "invalid", retryable: false });
  });

  test("the error for an immutable field names the field and the remedy", async () => {
    const selecting = (app: string) => {
      const labels = { app };
      const spec = deployment("immutable/web").spec as JsonObject;
      const template = { ...(spec.template as JsonObject), metadata: { labels } };
      return manifest({
        ...deployment("immutable/web"),
        spec: { ...spec, selector: { matchLabels: labels }, template },
      });
    };
    await cluster.apply("immutable", [namespace("immutable"), selecting("a")]);
    const result = await cluster.apply("immutable", [selecting("b")]);
    expect(failureIn(result.objects)).toMatchObject({
      class: "immutable",
      retryable: false,
      message: expect.stringMatching(/spec.selector.*delete the object/),
    });
  });

  test("the objects in a Namespace that failed are not applied", async () => {
    const bad = manifest({ apiVersion: "v1", kind: "Namespace", metadata: { name: "Not_A_Name" } });
    const result = await cluster.apply("badns", [bad, configMap("default/badns")]);
    expect(outcomes(result.objects)).toEqual({
      "Namespace Not_A_Name": "failed",
      "ConfigMap default/badns": "skipped",
    });
    expect(await cluster.statusOf("/api/v1/namespaces/default/configmaps/badns")).toBe(404);
  });

  test("a kind whose definition comes from elsewhere fails alone, and succeeds once it is there", async () => {
    const later = "later.example.com";
    const objects = [namespace("later"), configMap("later/c"), widget(later, "later/w")];
    const before = await cluster.apply("later", objects);
    expect(outcomes(before.objects)).toMatchObject({
      "ConfigMap later/c": "created",
      [`Widget.${later} later/w`]: "failed",
    });
    expect(failureIn(before.objects)).toMatchObject({ class: "noMatch", retryable: true });
    await cluster.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: definition(later) });
    await expect
      .poll(async () => (await cluster.apply("later", objects)).outcome, { timeout: 15_000, interval: 200 })
      .toBe("applied");
  });

  test("the error for a version that is not served names the served versions", async () => {
    const old = manifest({ ...deployment("default/old"), apiVersion: "apps/v1beta1" });
    expect(failureIn((await cluster.apply("old", [old])).objects)).toMatchObject({
      message: "no matches for kind Deployment in apps/v1beta1; the cluster serves it in v1: change apiVersion",
    });
  });

  describe("objects that were there before", () => {
    const setUp = async (name: string, metadata: object) => {
      await cluster.apply(`${name}-ns`, [namespace(name)]);
      const body = { ...configMap(`${name}/c`, { theirs: "1" }), metadata: { name: "c", ...metadata } };
      await cluster.raw("POST", `/api/v1/namespaces/${name}/configmaps?fieldManager=helm`, { body });
    };

    test("an object without an owner is adopted, and that is reported", async () => {
      await setUp("nobodys", {});
      const result = await cluster.apply("nobodys", [configMap("nobodys/c", { mine: "1" })]);
      expect(result.objects).toMatchObject([{ outcome: "configured", adopted: true }]);
      const live = await cluster.raw("GET", "/api/v1/namespaces/nobodys/configmaps/c");
      expect(live.data).toEqual({ mine: "1", theirs: "1" });
    });

    test("an object of another tool is refused, and not written", async () => {
      await setUp("fluxed", { labels: { "kustomize.toolkit.fluxcd.io/name": "apps" } });
      const result = await cluster.apply("fluxed", [configMap("fluxed/c", { mine: "1" }), configMap("fluxed/d")]);
      expect(outcomes(result.objects)).toEqual({ "ConfigMap fluxed/c": "failed", "ConfigMap fluxed/d": "created" });
      expect(failureIn(result.objects)).toMatchObject({
        reason: "ForeignOwner",
        message: expect.stringContaining("flux (apps)"),
      });
      expect((await cluster.raw("GET", "/api/v1/namespaces/fluxed/configmaps/c")).data).toEqual({ theirs: "1" });
      const adopted = await cluster.apply("fluxed", [configMap("fluxed/c", { mine: "1" })], { adopt: ["flux"] });
      expect(adopted.outcome).toBe("applied");
    });

    test("an object of another set is refused", async () => {
      await cluster.apply("set-a", [namespace("shared"), configMap("shared/c")]);
      const result = await cluster.apply("set-b", [configMap("shared/c", { k: "2" })]);
      expect(failureIn(result.objects)).toMatchObject({ reason: "ForeignOwner" });
    });

    test("the parent of a Sync is refused, and keeps its records", async () => {
      const claim = claimFor("victim", { attempt: 7 });
      await ensureParent(cluster.client, { claim, groupKinds: [] });
      const path = "/api/v1/namespaces/starling-system/configmaps/tests.victim";
      const before = await cluster.raw("GET", path);
      const result = await cluster.apply("attacker", [configMap("starling-system/tests.victim")]);
      expect(failureIn(result.objects)).toMatchObject({ reason: "ForeignOwner" });
      expect(await cluster.raw("GET", path)).toEqual(before);
    });

    test("many objects of one namespace are read with one LIST and refused one by one", async () => {
      await setUp("many", { labels: { "kapp.k14s.io/app": "1" } });
      const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
      const result = await cluster.apply(
        "many",
        names.map((name) => configMap(`many/${name}`)),
      );
      const failed = result.objects.filter(({ outcome }) => outcome === "failed").map(({ id }) => id.name);
      expect(failed).toEqual(["c"]);
    });

    test("fields that kubectl set are taken over: those that the manifest lacks are removed", async () => {
      await cluster.apply("kubectl-ns", [namespace("kubectl")]);
      const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}" };
      const body = { ...configMap("kubectl/c", { old: "1", k: "0" }), metadata: { name: "c", annotations } };
      await cluster.raw("POST", "/api/v1/namespaces/kubectl/configmaps?fieldManager=kubectl-client-side-apply", {
        body,
      });
      const result = await cluster.apply("kubectl", [configMap("kubectl/c", { k: "1" })]);
      expect(result.outcome).toBe("applied");
      const live = await cluster.raw("GET", "/api/v1/namespaces/kubectl/configmaps/c");
      expect(live.data).toEqual({ k: "1" });
      expect(
        stringAt(live, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
      ).toBeUndefined();
    });

    test("the apply waits for an object that is being deleted", async () => {
      await setUp("going", { finalizers: ["example.com/hold"] });
      const path = "/api/v1/namespaces/going/configmaps/c";
      await cluster.raw("DELETE", path);
      const waiting = await cluster.apply("going", [configMap("going/c")]);
      expect(waiting.outcome).toBe("waiting");
      expect(waiting.objects).toMatchObject([
        { outcome: "waiting", reason: "Terminating", message: expect.stringContaining("example.com/hold") },
      ]);
      await cluster.raw("PATCH", path, { as: "merge-patch", body: { metadata: { finalizers: null } } });
      expect((await cluster.apply("going", [configMap("going/c")])).objects).toMatchObject([{ outcome: "created" }]);
    });
  });

  test("an object that was deleted and created again by hand is recorded with its new uid", async () => {
    const objects = [namespace("anew"), configMap("anew/c")];
    const inventory = await cluster.applied("anew", objects);
    await cluster.raw("DELETE", "/api/v1/namespaces/anew/configmaps/c");
    await cluster.raw("POST", "/api/v1/namespaces/anew/configmaps", { body: configMap("anew/c", { k: "x" }) });
    const after = recorded(inventory, await cluster.apply("anew", objects, { inventory }));
    const live = await cluster.raw("GET", "/api/v1/namespaces/anew/configmaps/c");
    expect(live.data).toEqual({ k: "1" });
    expect(after.entries.find(({ id }) => id.name === "c")?.uid).toBe(stringAt(live, "metadata", "uid"));
  });

  test("a finished Job that removed itself is not run again until its manifest changes", async () => {
    const job = (image: string) =>
      manifest({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "j", namespace: "ttl" },
        spec: {
          ttlSecondsAfterFinished: 0,
          template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image }] } },
        },
      });
    const inventory = await cluster.applied("ttl", [namespace("ttl"), job("a")]);
    const path = "/apis/batch/v1/namespaces/ttl/jobs/j";
    await cluster.raw("DELETE", `${path}?propagationPolicy=Background`);
    const again = await cluster.apply("ttl", [namespace("ttl"), job("a")], { inventory });
    expect(outcomes(again.objects)).toMatchObject({ "Job ttl/j": "unchanged" });
    expect(await cluster.statusOf(path)).toBe(404);
    const changed = await cluster.apply("ttl", [namespace("ttl"), job("b")], { inventory });
    expect(outcomes(changed.objects)).toMatchObject({ "Job ttl/j": "created" });
  });

  test("an apply starts no write after the deadline", async () => {
    const result = await cluster.apply("late", [namespace("late")], { deadline: inSeconds(-1) });
    expect(result).toMatchObject({ outcome: "waiting", objects: [{ outcome: "skipped", reason: "OutOfTime" }] });
    expect(await cluster.statusOf("/api/v1/namespaces/late")).toBe(404);
  });

  /** Legend: owner, the metadata of the new object with the name (absent: no such object), the result. */
  const successors: readonly (readonly [string, JsonObject | undefined, object])[] = [
    ["an object of another tool", { labels: { "kustomize.toolkit.fluxcd.io/name": "shop" } }, { outcome: "failed" }],
    ["an object without an owner", {}, { outcome: "configured", adopted: true }],
    ["no object", undefined, { outcome: "created" }],
  ];

  test.each(successors)(
    "a recorded object whose name now belongs to %s is not taken for the recorded one",
    async (_who, to, desired) => {
      const path = "/api/v1/namespaces/heirs/configmaps";
      const inventory = await cluster.applied("heirs", [namespace("heirs"), configMap("heirs/c")]);
      await cluster.raw("DELETE", `${path}/c`);
      if (to !== undefined) {
        const heir = configMap("heirs/c", { k: "theirs" });
        await cluster.raw("POST", path, { body: { ...heir, metadata: { ...heir.metadata, ...to } } });
      }
      const result = await cluster.apply("heirs", [namespace("heirs"), configMap("heirs/c", { k: "2" })], {
        inventory,
      });
      expect(result.objects[1]).toMatchObject(desired);
      const { data } = await cluster.raw("GET", `${path}/c`);
      const refused = result.objects[1]?.outcome === "failed";
      expect(data).toEqual({ k: refused ? "theirs" : "2" });
      if (refused) await cluster.raw("DELETE", `${path}/c`);
    },
  );

  test("an apply that the deadline cuts off is tried again in the next run, and is no failure", async () => {
    const deadline = inSeconds(60);
    const path = "/api/v1/namespaces/cut-off/configmaps/c";
    const { client, clock } = cutOffClient(cluster.client, { verb: "apply", kind: "ConfigMap", path, deadline });
    const objects = [namespace("cut-off"), configMap("cut-off/c")];
    const result = await applySet(client, applyRequest("cut-off", objects, { deadline, clock }));
    expect(result.outcome).toBe("waiting");
    expect(result.objects[1]).toMatchObject({ outcome: "waiting", reason: "OutOfTime" });
    expect(await cluster.statusOf(path)).toBe(200);
    expect((await cluster.apply("cut-off", objects)).outcome).toBe("applied");
  });

  test("the result of an apply has the warnings of the server", async () => {
    const endpoints = manifest({ apiVersion: "v1", kind: "Endpoints", metadata: { name: "e", namespace: "default" } });
    const result = await cluster.apply("warned", [endpoints]);
    expect(result.objects).toMatchObject([{ outcome: "created", warnings: expect.any(Array) }]);
  });

  test("names with capitals and colons are applied unchanged", async () => {
    const role = manifest({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "system:Reader" },
      rules: [],
    });
    const result = await cluster.apply("odd", [role]);
    expect(result.outcome).toBe("applied");
    expect(await cluster.statusOf("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3AReader")).toBe(200);
  });
});
