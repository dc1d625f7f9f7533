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

/** What must be deleted before what. */
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
  test.each(deletedBefore)("%j before %j", (first, second) => {
    expect(orderDeletion([second, first], new Map()).steps).toEqual([[first], [second]]);
  });
});

describe("the order of deletion", () => {
  test("has what depends on something before that, and what it goes before stays where its kind is", () => {
    const db = id("apps", "Deployment", "db");
    expect(
      stepsOf([[db], [id("apps", "Deployment", "other")], [config("c"), toConfigOf(db)], [id("", "Secret", "s")]]),
    ).toEqual([["c", "other"], ["db"], ["s"]]);
  });

  test("has custom resources before a Deployment that something else depends on", () => {
    const operator = id("apps", "Deployment", "operator");
    expect(
      stepsOf([[operator, toConfig("settings")], [config("settings")], [id("example.com", "Widget", "w")]]),
    ).toEqual([["w"], ["operator"], ["settings"]]);
  });

  test("has later waves first, then those that name none, and hooks with the last", () => {
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

  test("has what is needed no earlier than what needs it, whatever wave it was given in the cluster", () => {
    expect(
      stepsOf([
        [config("db"), { [wave]: "5" }],
        [config("web"), { ...toConfig("db"), [wave]: "0" }],
      ]),
    ).toEqual([["web"], ["db"]]);
  });

  test("finds an object that was named as it is in git: without its namespace, or with one that its kind has not", () => {
    const role = { ...id("rbac.authorization.k8s.io", "ClusterRole", "reader"), namespace: "" };
    const named = `/ConfigMap/db,rbac.authorization.k8s.io/namespaces/n/ClusterRole/reader`;
    const { dependents } = ordered([[role], [config("db")], [config("web"), { [dependsOn]: named }]]);
    expect([dependents.get(objectIdKey(config("db"))), dependents.get(objectIdKey(role))]).toEqual([
      [config("web")],
      [config("web")],
    ]);
  });

  test("takes no dependence for one on another object of the name", () => {
    const elsewhere = id("", "ConfigMap", "db", "other");
    const { dependents } = ordered([[elsewhere], [config("web"), toConfig("db")]]);
    expect(dependents.get(objectIdKey(elsewhere))).toEqual([]);
  });

  test("breaks circles, also those with oneself and through a Namespace, and keeps what else depends on them", () => {
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

  test("breaks a circle of everybody with everybody, told once of each", () => {
    const names = Array.from({ length: 600 }, (_, at) => `c${at}`);
    const { steps, notes } = ordered(names.map((name): Marked => [config(name), toConfig(...names)]));
    expect([steps.length, notes.length]).toEqual([1, names.length]);
    expect(notes[0]?.message).toContain("with ConfigMap n/c0, ConfigMap n/c1, ConfigMap n/c2 and 597 more;");
  });

  test("breaks a ring that is longer than a stack is deep", () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `c${at}`);
    const ring = names.map((name, at): Marked => [config(name), toConfig(names[(at + 1) % names.length] ?? "")]);
    expect(ordered(ring)).toMatchObject({ steps: { length: 1 }, notes: { length: names.length } });
  });

  test.each(propertySeeds)("has each object once, and what depends on it before it (seed %i)", (seed) => {
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
