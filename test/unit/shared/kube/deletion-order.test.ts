import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orderDeletion } from "#shared/kube/deletion-order.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const dependsOn = "config.kubernetes.io/depends-on";
const wave = "argocd.argoproj.io/sync-wave";

const id = (group: string, kind: string, name = "x", namespace = "n"): ObjectId => ({ group, kind, namespace, name });
const config = (name: string) => id("", "ConfigMap", name);
const toConfig = (...names: readonly string[]) => ({
  [dependsOn]: names.map((name) => `/namespaces/n/ConfigMap/${name}`).join(","),
});

type Marked = readonly [ObjectId, Readonly<Record<string, string>>?];

function ordered(objects: readonly Marked[]) {
  const liveOf = new Map(
    objects.map(([{ group, kind, namespace, name }, annotations = {}]): [string, KubeObject] => [
      objectIdKey({ group, kind, namespace, name }),
      { apiVersion: group === "" ? "v1" : `${group}/v1`, kind, metadata: { name, namespace, annotations } },
    ]),
  );
  return orderDeletion(
    objects.map(([one]) => one),
    liveOf,
  );
}

const stepsOf = (objects: readonly Marked[]) => ordered(objects).steps.map((step) => step.map(({ name }) => name));

/** Pairs of objects, of which the first must be deleted before the second. */
const deletedBefore: readonly (readonly [ObjectId, ObjectId])[] = [
  [id("example.com", "Widget"), id("apiextensions.k8s.io", "CustomResourceDefinition")],
  [id("example.com", "Widget"), id("apps", "Deployment")],
  [id("example.com", "Widget"), id("", "ServiceAccount")],
  [id("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"), id("apps", "Deployment")],
  [id("apps", "Deployment"), id("", "ConfigMap")],
  [id("rbac.authorization.k8s.io", "RoleBinding"), id("rbac.authorization.k8s.io", "Role")],
  [id("", "ConfigMap"), id("", "Namespace")],
  [id("apiextensions.k8s.io", "CustomResourceDefinition"), id("", "Namespace")],
];

describe("the order of kinds in a deletion", () => {
  test.each(deletedBefore)("the object %j is deleted before %j", (first, second) => {
    expect(orderDeletion([second, first], new Map()).steps).toEqual([[first], [second]]);
  });
});

describe("the order of deletion", () => {
  test("dependents are deleted before their dependency, and other objects keep the order of their kinds", () => {
    const db = id("apps", "Deployment", "db");
    expect(
      stepsOf([[db], [id("apps", "Deployment", "other")], [config("c"), toConfigOf(db)], [id("", "Secret", "s")]]),
    ).toEqual([["c", "other"], ["db"], ["s"]]);
  });

  test("custom resources are deleted before a Deployment that depends on something", () => {
    const operator = id("apps", "Deployment", "operator");
    expect(
      stepsOf([[operator, toConfig("settings")], [config("settings")], [id("example.com", "Widget", "w")]]),
    ).toEqual([["w"], ["operator"], ["settings"]]);
  });

  test("later waves are deleted first, then objects without a wave, and hooks with their kind", () => {
    const job = id("batch", "Job", "migrate");
    const objects: readonly Marked[] = [
      [config("early"), { [wave]: "-1" }],
      [config("plain")],
      [config("late"), { [wave]: "3" }],
      [job, { "helm.sh/hook": "pre-install", "helm.sh/hook-weight": "9" }],
    ];
    expect(stepsOf(objects)).toEqual([["late"], ["plain"], ["migrate"], ["early"]]);
    expect(ordered(objects).waves.has(objectIdKey(job))).toBe(false);
  });

  test("a dependency is never deleted before its dependents, whatever their waves in the cluster", () => {
    expect(
      stepsOf([
        [config("db"), { [wave]: "5" }],
        [config("web"), { ...toConfig("db"), [wave]: "0" }],
      ]),
    ).toEqual([["web"], ["db"]]);
  });

  test("a reference as in git finds its object: without a namespace, or with one although the kind has none", () => {
    const role = { ...id("rbac.authorization.k8s.io", "ClusterRole", "reader"), namespace: "" };
    const named = `/ConfigMap/db,rbac.authorization.k8s.io/namespaces/n/ClusterRole/reader`;
    const { dependents } = ordered([[role], [config("db")], [config("web"), { [dependsOn]: named }]]);
    expect([dependents.get(objectIdKey(config("db"))), dependents.get(objectIdKey(role))]).toEqual([
      [config("web")],
      [config("web")],
    ]);
  });

  test("an object with the same name in another namespace is not a dependency", () => {
    const elsewhere = id("", "ConfigMap", "db", "other");
    const { dependents } = ordered([[elsewhere], [config("web"), toConfig("db")]]);
    expect(dependents.get(objectIdKey(elsewhere))).toEqual([]);
  });

  test("cycles are broken, also those of one object and through a Namespace, and other dependencies stay", () => {
    const n = id("", "Namespace", "n", "");
    const objects: readonly Marked[] = [
      [n, toConfig("a")],
      [config("a"), toConfig("a")],
      [config("b"), toConfig("c")],
      [config("c"), toConfig("b", "base")],
      [config("base")],
      [config("top"), toConfig("b")],
    ];
    const { notes } = ordered(objects);
    expect(stepsOf(objects)).toEqual([["a", "c", "top"], ["b", "base"], ["n"]]);
    expect(notes.map(({ id: { name }, message }) => [name, message.match(/with (.*);/)?.[1]])).toEqual([
      ["n", "ConfigMap n/a"],
      ["a", "ConfigMap n/a"],
      ["b", "ConfigMap n/c"],
      ["c", "ConfigMap n/b"],
    ]);
  });

  test("a cycle of all objects with all objects is broken, with one note for each", () => {
    const names = Array.from({ length: 600 }, (_, at) => `c${at}`);
    const { steps, notes } = ordered(names.map((name): Marked => [config(name), toConfig(...names)]));
    expect([steps.length, notes.length]).toEqual([1, names.length]);
    expect(notes[0]?.message).toContain("with ConfigMap n/c0, ConfigMap n/c1, ConfigMap n/c2 and 597 more;");
  });

  test("a cycle that is longer than the call stack is broken", () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `c${at}`);
    const ring = names.map((name, at): Marked => [config(name), toConfig(names[(at + 1) % names.length] ?? "")]);
    expect(ordered(ring)).toMatchObject({ steps: { length: 1 }, notes: { length: names.length } });
  });

  test.each(propertySeeds)("each object is deleted once, after its dependents (seed %i)", (seed) => {
    const names = ["a", "b", "c", "d", "e"];
    const edges = fc.record({ from: fc.constantFrom(...names), to: fc.constantFrom(...names) });
    const graph = fc.record({ edges: fc.array(edges), waves: fc.array(fc.integer({ min: -1, max: 1 })) });
    fc.assert(
      fc.property(graph, ({ edges: drawn, waves }) => {
        const objects = names.map((name, at): Marked => {
          const to = new Set(drawn.filter(({ from }) => from === name).map((edge) => edge.to));
          const marks = to.size === 0 ? {} : toConfig(...to);
          return [config(name), { ...marks, [wave]: String(waves[at] ?? 0) }];
        });
        const { steps, dependents } = ordered(objects);
        const placeOf = (one: ObjectId) => steps.findIndex((step) => step.some(({ name }) => name === one.name));
        expect(
          steps
            .flat()
            .map(({ name }) => name)
            .toSorted(),
        ).toEqual(names);
        for (const name of names) {
          for (const before of dependents.get(objectIdKey(config(name))) ?? []) {
            expect(placeOf(before)).toBeLessThan(placeOf(config(name)));
          }
        }
      }),
      { seed, numRuns: propertyRuns(100) },
    );
  });
});

function toConfigOf({ group, kind, namespace, name }: ObjectId) {
  return { [dependsOn]: `${group}/namespaces/${namespace}/${kind}/${name}` };
}
