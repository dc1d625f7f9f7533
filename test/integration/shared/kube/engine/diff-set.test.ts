import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { type DiffRequest, diffSet, type SetDiff } from "#shared/kube/engine/diff-set.ts";
import { type ManifestObject, valueAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { configMap, definition, deployment, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";
import { engineWorld, inventoryOf } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

const env = [
  { name: "A", value: "1" },
  { name: "B", value: "2" },
];

describe.each(clusterTargets)("diffSet on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const asked = (set: string, objects: readonly ManifestObject[], rest: Partial<DiffRequest> = {}): DiffRequest => ({
    objects,
    setId: inventoryOf(set).setId,
    groupKinds: [],
    prune: true,
    ...rest,
  });
  const summary = ({ differences, refused, kept, unread }: SetDiff) => [
    ...differences.map(({ id, how }) => `${how} ${id.kind} ${id.name}`),
    ...refused.map(({ id, failure }) => `refused ${id.kind} ${id.name} ${failure.reason}`),
    ...kept.map(({ id, why }) => `kept ${id.kind} ${id.name} ${why}`),
    ...unread.map(({ kind }) => `unread ${kind}`),
  ];
  const setOf = (ns: string) => [namespace(ns), configMap(`${ns}/c`), deployment(`${ns}/web`, env)];

  test("the diff of applied objects is empty, at one LIST for each kind, whatever defaults the server has set", async () => {
    await cluster.applied("same", setOf("same"));
    const calls: string[] = [];
    const client = watchedClient(cluster.client, async ({ method, name }) => {
      if (method !== "lookup") calls.push(`${method} ${name}`);
    });
    expect(summary(await diffSet(client, asked("same", setOf("same"))))).toEqual([]);
    expect(calls.toSorted()).toEqual(["list configmaps", "list deployments", "list namespaces"]);
  });

  test("the diff has the objects that would be created, changed and deleted, and nothing is written", async () => {
    const before = await cluster.applied("all", [...setOf("all"), configMap("all/old")]);
    const changed = [
      namespace("all"),
      configMap("all/c", { k: "2" }),
      deployment("all/web", env),
      configMap("all/new"),
    ];
    const found = await diffSet(cluster.client, asked("all", changed));
    expect(summary(found)).toEqual(["changed ConfigMap c", "created ConfigMap new", "deleted ConfigMap old"]);
    const [change] = found.differences;
    expect(valueAt(change?.before, "data")).toEqual({ k: "1" });
    expect(valueAt(change?.after, "data")).toEqual({ k: "2" });
    expect(Object.keys(valueAt(change?.after, "metadata") as JsonObject).sort()).toEqual([
      "labels",
      "name",
      "namespace",
    ]);
    expect(await cluster.statusOf("/api/v1/namespaces/all/configmaps/new")).toBe(404);
    const after = await diffSet(cluster.client, asked("all", [...setOf("all"), configMap("all/old")]));
    expect({ after: summary(after), entries: before.entries.length }).toEqual({ after: [], entries: 4 });
  });

  test("the diff of objects that marks leave unchanged shows only that they would be made", async () => {
    const ssa = (mark: string, name: string, data: Readonly<Record<string, string>>) => {
      const object = configMap(`marks/${name}`, data);
      const annotations = { "kustomize.toolkit.fluxcd.io/ssa": mark };
      return { ...object, metadata: { ...object.metadata, annotations } };
    };
    const once = (name: string, k: string) => ssa("IfNotPresent", name, { k });
    await cluster.applied("marks", [namespace("marks"), once("made", "1"), configMap("marks/alone", { k: "1" })]);
    const desired = [namespace("marks"), once("made", "2"), once("new", "1"), ssa("Ignore", "alone", { k: "2" })];
    expect(summary(await diffSet(cluster.client, asked("marks", desired)))).toEqual(["created ConfigMap new"]);
  });

  test("the diff finds fields that somebody changed by hand, and not fields that others added", async () => {
    await cluster.applied("hand", setOf("hand"));
    await cluster.raw("PATCH", "/apis/apps/v1/namespaces/hand/deployments/web", {
      as: "merge-patch",
      body: { metadata: { labels: { added: "x" } }, spec: { revisionHistoryLimit: 3 } },
    });
    await cluster.raw("PATCH", "/api/v1/namespaces/hand/configmaps/c", {
      as: "merge-patch",
      body: { data: { k: "by hand" } },
    });
    const found = await diffSet(cluster.client, asked("hand", setOf("hand")));
    expect(summary(found)).toEqual(["changed ConfigMap c"]);
    expect(valueAt(found.differences[0]?.before, "data", "k")).toBe("by hand");
    expect(valueAt(found.differences[0]?.after, "data", "k")).toBe("1");
  });

  test("the diff ignores values that the server only writes in another form", async () => {
    const limits = (cpu: string) => {
      const { spec, ...rest } = deployment("written/web") as ManifestObject & { readonly spec: JsonObject };
      const container = { name: "web", image: "web:1", resources: { limits: { cpu } } };
      const labels = { app: "web" };
      return manifest({
        ...rest,
        spec: { ...spec, template: { metadata: { labels }, spec: { containers: [container] } } },
      });
    };
    await cluster.applied("written", [namespace("written"), limits("1000m")]);
    expect(summary(await diffSet(cluster.client, asked("written", [namespace("written"), limits("1000m")])))).toEqual(
      [],
    );
    expect(summary(await diffSet(cluster.client, asked("written", [namespace("written"), limits("2")])))).toEqual([
      "changed Deployment web",
    ]);
  });

  test("the diff of a set with its own namespace and kinds shows all of it", async () => {
    const group = "brought.example.com";
    const objects = [namespace("brought"), definition(group), widget(group, "brought/w"), configMap("brought/c")];
    expect(summary(await diffSet(cluster.client, asked("brought", objects))).toSorted()).toEqual([
      "created ConfigMap c",
      `created CustomResourceDefinition widgets.${group}`,
      "created Namespace brought",
      "created Widget w",
    ]);
  });

  test("the diff names objects that the server would refuse, and objects of other owners", async () => {
    await cluster.applied("refused", setOf("refused"));
    await cluster.raw("POST", "/api/v1/namespaces/refused/configmaps", {
      body: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "theirs", labels: { "kustomize.toolkit.fluxcd.io/name": "apps" } },
      },
    });
    const { spec, ...web } = deployment("refused/web", env) as ManifestObject & { readonly spec: JsonObject };
    const moved = manifest({ ...web, spec: { ...spec, selector: { matchLabels: { app: "other" } } } });
    const objects = [
      namespace("refused"),
      configMap("refused/c"),
      moved,
      configMap("refused/theirs"),
      configMap("nowhere/c"),
      widget("unknown.example.com", "refused/w"),
    ];
    const found = summary(await diffSet(cluster.client, asked("refused", objects)));
    expect(found.filter((line) => line.startsWith("refused")).map((line) => line.split(" ").slice(1, 3))).toEqual([
      ["ConfigMap", "c"],
      ["ConfigMap", "theirs"],
      ["Deployment", "web"],
      ["Widget", "w"],
    ]);
    expect(found).toContain("refused ConfigMap theirs ForeignOwner");
  });

  test("the diff keeps marked objects, those of prune: false, hooks, and copies of the label", async () => {
    const hook = manifest({
      ...configMap("kept/hook"),
      metadata: { name: "hook", namespace: "kept", annotations: { "helm.sh/hook": "pre-install" } },
    });
    const marked = manifest({
      ...configMap("kept/marked"),
      metadata: { name: "marked", namespace: "kept", annotations: { "helm.sh/resource-policy": "keep" } },
    });
    await cluster.applied("kept", [namespace("kept"), configMap("kept/gone"), marked]);
    await cluster.raw("POST", "/api/v1/namespaces/kept/configmaps", {
      body: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "copied", labels: { "applyset.kubernetes.io/part-of": inventoryOf("kept").setId } },
      },
    });
    const kinds = { groupKinds: [{ group: "", kind: "ConfigMap" }] };
    const objects = [namespace("kept"), hook];
    expect(summary(await diffSet(cluster.client, asked("kept", objects, kinds)))).toEqual([
      "deleted ConfigMap gone",
      "kept ConfigMap marked it is marked helm.sh/resource-policy: keep",
    ]);
    expect(summary(await diffSet(cluster.client, asked("kept", objects, { ...kinds, prune: false })))).toEqual([
      "kept ConfigMap gone prune: false",
      "kept ConfigMap marked prune: false",
    ]);
  });
});
