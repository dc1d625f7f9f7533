import { describe, expect, test, vi } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { type DriftReport, detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import {
  type ClusterFixture,
  configMap,
  definition,
  deployment,
  manifest,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { engineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

const env = [
  { name: "A", value: "1" },
  { name: "B", value: "2" },
];

describe.each(clusterTargets)("detectDrift on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const drift = (report: DriftReport) => report.drifted.map(({ id, how }) => `${id.kind} ${id.name} ${how}`).sort();

  test("unchanged objects have no drift", async () => {
    const inventory = await cluster.applied("clean", [
      namespace("clean"),
      configMap("clean/c"),
      deployment("clean/web", env),
    ]);
    expect(await detectDrift(cluster.client, inventory)).toMatchObject({
      clean: true,
      drifted: [],
      moved: [],
      foreign: [],
    });
  });

  test("the check of unchanged objects costs one LIST for each kind", async () => {
    const inventory = await cluster.applied("cheap", [
      namespace("cheap"),
      configMap("cheap/c"),
      deployment("cheap/web", env),
    ]);
    const listed: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method === "list" || method === "get") listed.push(name);
    });
    expect(await detectDrift(client, inventory)).toMatchObject({ clean: true });
    expect(listed.toSorted()).toEqual(["configmaps", "deployments", "namespaces"]);
  });

  interface Planted {
    readonly ns: string;
    readonly raw: ClusterFixture["raw"];
    readonly setId: string;
  }

  const deploymentPath = ({ ns }: Planted) => `/apis/apps/v1/namespaces/${ns}/deployments/web`;
  const configPath = ({ ns }: Planted) => `/api/v1/namespaces/${ns}/configmaps/c`;

  /** Legend: the change to the objects, the drift that is found. */
  const changes: readonly (readonly [string, (planted: Planted) => Promise<unknown>, readonly string[]])[] = [
    [
      "another manager changes an owned value",
      (at) => at.raw("PATCH", `${configPath(at)}?fieldManager=them`, { as: "merge-patch", body: { data: { k: "x" } } }),
      ["ConfigMap c changed"],
    ],
    [
      "another manager removes an owned key",
      (at) => at.raw("PATCH", configPath(at), { as: "merge-patch", body: { data: { k: null } } }),
      ["ConfigMap c changed"],
    ],
    [
      "the replicas are scaled",
      (at) => at.raw("PATCH", `${deploymentPath(at)}/scale`, { as: "merge-patch", body: { spec: { replicas: 5 } } }),
      ["Deployment web changed"],
    ],
    ["an object is deleted", (at) => at.raw("DELETE", `${configPath(at)}`), ["ConfigMap c missing"]],
    [
      "an object is deleted and made again by hand",
      async (at) => {
        await at.raw("DELETE", configPath(at));
        await at.raw("POST", `/api/v1/namespaces/${at.ns}/configmaps`, { body: configMap(`${at.ns}/c`) });
      },
      ["ConfigMap c missing"],
    ],
    [
      "the ownership label is removed",
      (at) =>
        at.raw("PATCH", configPath(at), { as: "merge-patch", body: { metadata: { labels: { [partOfLabel]: null } } } }),
      ["ConfigMap c missing"],
    ],
    [
      "a late attempt of Starling applies other values",
      (at) => {
        const body = configMap(`${at.ns}/c`, { k: "late" });
        const labels = { [partOfLabel]: at.setId };
        const late = { ...body, metadata: { ...body.metadata, labels } };
        return at.raw("PATCH", `${configPath(at)}?fieldManager=starling&force=true`, { as: "apply-patch", body: late });
      },
      ["ConfigMap c changed"],
    ],
    [
      "a foreign PUT reorders env",
      async (at) => {
        const live = await at.raw("GET", deploymentPath(at));
        await at.raw("PUT", deploymentPath(at), { body: withEnv(live, (list) => [...list].reverse()) });
      },
      ["Deployment web changed"],
    ],
    [
      "a foreign PUT writes managedFields back without Starling's entry",
      async (at) => {
        const live = await at.raw("GET", configPath(at));
        const metadata = { ...(live.metadata as JsonObject), managedFields: [{}] };
        await at.raw("PUT", configPath(at), { body: { ...live, metadata, data: { k: "x" } } });
      },
      ["ConfigMap c changed"],
    ],
    [
      "an object is being deleted",
      async (at) => {
        const body = { metadata: { finalizers: ["example.com/hold"] } };
        await at.raw("PATCH", configPath(at), { as: "merge-patch", body });
        await at.raw("DELETE", configPath(at));
      },
      ["ConfigMap c terminating"],
    ],
    [
      "a foreign key is added, which is no drift",
      (at) => at.raw("PATCH", configPath(at), { as: "merge-patch", body: { data: { theirs: "1" } } }),
      [],
    ],
    [
      "a controller writes the status, which is no drift",
      (at) => at.raw("PATCH", `${deploymentPath(at)}/status`, { as: "merge-patch", body: { status: { replicas: 1 } } }),
      [],
    ],
    [
      "a foreign env is added between those of Starling, which is no drift",
      async (at) => {
        const live = await at.raw("GET", deploymentPath(at));
        const insert = (list: readonly unknown[]) => [list[0], { name: "X", value: "x" }, ...list.slice(1)];
        await at.raw("PUT", deploymentPath(at), { body: withEnv(live, insert) });
      },
      [],
    ],
    [
      "another manager applies the same value, which is no drift",
      (at) =>
        at.raw("PATCH", `${configPath(at)}?fieldManager=them`, { as: "apply-patch", body: configMap(`${at.ns}/c`) }),
      [],
    ],
  ];

  function withEnv(live: JsonObject, change: (list: readonly unknown[]) => readonly unknown[]): JsonObject {
    const copy = structuredClone(live) as { spec: { template: { spec: { containers: { env: unknown }[] } } } };
    const [container] = copy.spec.template.spec.containers;
    if (container) container.env = change(listAt(container as JsonObject, "env"));
    return copy as unknown as JsonObject;
  }

  test.each(changes.map((row, index) => [...row, index] as const))(
    "drift is found as expected if %s",
    async (_name, plant, expected, index) => {
      const ns = `drift-${index}`;
      const objects = [namespace(ns), configMap(`${ns}/c`), configMap(`${ns}/untouched`), deployment(`${ns}/web`, env)];
      const inventory = await cluster.applied(ns, objects);
      await plant({ ns, raw: cluster.raw, setId: inventory.setId });

      const report = await detectDrift(cluster.client, inventory);
      expect(drift(report)).toEqual(expected);
      expect(report.clean).toBe(expected.length === 0);
      // A check that reads whole objects at once finds the same.
      const { live: _whole, ...atOnce } = await detectDrift(cluster.client, inventory, { isWhole: () => true });
      const { live: _metadata, ...inTwo } = report;
      expect(atOnce).toEqual(inTwo);
      if (expected.length > 0) return;
      // An object of which only the version changed is recorded with the new version, and then counts as unchanged.
      expect(report.moved).toHaveLength(1);
      const entries = inventory.entries.map((entry) => report.moved.find(({ uid }) => uid === entry.uid) ?? entry);
      expect(await detectDrift(cluster.client, { ...inventory, entries })).toMatchObject({ clean: true, moved: [] });
    },
  );

  test("another apply corrects a changed object, and then there is no drift", async () => {
    const objects = [namespace("back"), configMap("back/c"), deployment("back/web", env)];
    const inventory = await cluster.applied("back", objects);
    const path = "/api/v1/namespaces/back/configmaps/c";
    await cluster.raw("PATCH", `${path}?fieldManager=kubectl-edit`, { as: "merge-patch", body: { data: { k: "x" } } });
    const report = await detectDrift(cluster.client, inventory);
    expect(report.drifted).toMatchObject([{ how: "changed", lastWriter: expect.stringMatching(/^kubectl-edit at 2/) }]);
    const corrected = await cluster.applied("back", objects, inventory);
    expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
    expect(await detectDrift(cluster.client, corrected)).toMatchObject({ clean: true });
  });

  test.each([
    ["if no other object differs", []],
    ["if another object of its kind differs", ["ConfigMap b changed"]],
  ])("the record of undone corrections is cleared for an object that stayed corrected, %s", async (_what, others) => {
    const ns = `stays-${others.length}`;
    const inventory = await cluster.applied(ns, [namespace(ns), configMap(`${ns}/a`), configMap(`${ns}/b`)]);
    const undone = { rounds: 2, inAll: 2, state: "missing", by: "somebody", fields: "" };
    const entries = inventory.entries.map((entry) => (entry.id.name === "a" ? { ...entry, undone } : entry));
    const path = `/api/v1/namespaces/${ns}/configmaps/b`;
    if (others.length > 0) await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "x" } } });
    const report = await detectDrift(cluster.client, { ...inventory, entries });
    expect(drift(report)).toEqual(others);
    expect(report.moved).toEqual(inventory.entries.filter(({ id }) => id.name === "a"));
  });

  test("an object that only has a copy of the label is reported as foreign, and is no drift", async () => {
    const inventory = await cluster.applied("copied", [namespace("copied"), configMap("copied/c")]);
    const labels = { [partOfLabel]: inventory.setId };
    const copy = { ...configMap("copied/copy"), metadata: { name: "copy", namespace: "copied", labels } };
    await cluster.raw("POST", "/api/v1/namespaces/copied/configmaps", { body: copy });
    expect(await detectDrift(cluster.client, inventory)).toMatchObject({
      clean: true,
      foreign: [{ id: { kind: "ConfigMap", name: "copy", namespace: "copied" }, member: false }],
    });
  });

  test("the objects of a changed definition are compared even if no resourceVersion changed", async () => {
    const group = "redefined.example.com";
    const objects = [
      namespace("redefined"),
      definition(group),
      widget(group, "redefined/w", { size: "s", extra: "e" }),
    ];
    const inventory = await cluster.applied("redefined", objects);
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
    const pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/extra";
    await cluster.raw("PATCH", path, { as: "json-patch", body: [{ op: "remove", path: pointer }] });
    const live = () => cluster.raw("GET", `/apis/${group}/v1/namespaces/redefined/widgets/w`);
    const pruned = async () => stringAt(await live(), "spec", "extra") === undefined;
    // A real server uses the new schema after a moment.
    await vi.waitUntil(pruned, { timeout: 5_000 });
    const report = await detectDrift(cluster.client, inventory);
    expect(drift(report)).toEqual([`CustomResourceDefinition widgets.${group} changed`, "Widget w changed"]);
    // While its objects differ, the old generation stays, because the next check has to compare them again.
    expect(report.definitions).toEqual(inventory.definitions);
  });

  test("each object of a kind that no longer exists is missing", async () => {
    const group = "gone.example.com";
    const inventory = await cluster.applied("gone", [namespace("gone"), definition(group), widget(group, "gone/w")]);
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
    await cluster.raw("DELETE", path);
    await expect.poll(() => cluster.statusOf(path), { timeout: 10_000 }).toBe(404);
    cluster.client.forgetKinds();
    await expect
      .poll(async () => drift(await detectDrift(cluster.client, inventory)), { timeout: 10_000 })
      .toEqual([`CustomResourceDefinition widgets.${group} missing`, "Widget w missing"]);
  });

  test("a Job that removed itself does not count as missing", async () => {
    const spec = {
      ttlSecondsAfterFinished: 0,
      template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } },
    };
    const job = manifest({ apiVersion: "batch/v1", kind: "Job", metadata: { name: "j", namespace: "once" }, spec });
    const inventory = await cluster.applied("once", [namespace("once"), job]);
    await cluster.raw("DELETE", "/apis/batch/v1/namespaces/once/jobs/j?propagationPolicy=Background");
    expect(await detectDrift(cluster.client, inventory)).toMatchObject({ clean: true });
  });
});
