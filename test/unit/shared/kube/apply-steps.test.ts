/** The order in which objects are applied: phases, waves and dependencies, from annotations alone. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ApplyPlan, type OrderQuestion, planSteps } from "#shared/kube/apply-steps.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

const wave = "argocd.argoproj.io/sync-wave";
const dependsOn = "config.kubernetes.io/depends-on";

function object(
  [kind, name, namespace = "shop"]: readonly [kind: string, name: string, namespace?: string],
  annotations: Readonly<Record<string, string>> = {},
): ManifestObject {
  const apiVersion = apiVersions[kind] ?? "v1";
  return { apiVersion, kind, metadata: { name, ...(namespace === "" ? {} : { namespace }), annotations } };
}

const apiVersions: Readonly<Record<string, string>> = {
  Job: "batch/v1",
  Deployment: "apps/v1",
  Widget: "example.com/v1",
  CustomResourceDefinition: "apiextensions.k8s.io/v1",
};

const widgets = {
  ...object(["CustomResourceDefinition", "widgets.example.com", ""], { [wave]: "5" }),
  spec: { group: "example.com", names: { kind: "Widget" } },
};

function plan(objects: readonly ManifestObject[], question: Partial<OrderQuestion> = {}): ApplyPlan {
  const found = planSteps(objects, { event: "install", ...question });
  if ("problems" in found) throw new Error(found.problems.map(({ reason }) => reason).join("; "));
  return found;
}

function problems(objects: readonly ManifestObject[], question: Partial<OrderQuestion> = {}): readonly string[] {
  const found = planSteps(objects, { event: "install", ...question });
  return "problems" in found ? found.problems.map(({ annotation, reason }) => `${annotation} ${reason}`) : [];
}

/** The steps as texts, such as `PreSync -1: a b`. */
function shown({ before, after, onFailure }: ApplyPlan): readonly string[] {
  return [...before, ...after, ...onFailure].map(
    ({ phase, wave: at, objects }) => `${phase} ${at}: ${objects.map(({ metadata }) => metadata.name).join(" ")}`,
  );
}

describe("the steps of an apply", () => {
  test("objects without annotations are applied in one step", () => {
    expect(shown(plan([object(["ConfigMap", "a"]), object(["Job", "b"])]))).toEqual(["Sync 0: a b"]);
  });

  test("the steps are phases, and waves within each phase", () => {
    const hook = (name: string, phase: string, at = "0") =>
      object(["Job", name], { "argocd.argoproj.io/hook": phase, [wave]: at });
    const objects = [
      object(["Deployment", "late"], { [wave]: "2" }),
      hook("notify", "PostSync"),
      hook("undo", "SyncFail"),
      hook("migrate", "PreSync", "1"),
      object(["ConfigMap", "early"], { [wave]: "-3" }),
      hook("backup", "PreSync"),
      hook("seed", "Sync", "1"),
      object(["ConfigMap", "plain"]),
    ];
    expect(shown(plan(objects))).toEqual([
      "PreSync 0: backup",
      "PreSync 1: migrate",
      "Sync -3: early",
      "Sync 0: plain",
      "Sync 1: seed",
      "Sync 2: late",
      "PostSync 0: notify",
      "SyncFail 0: undo",
    ]);
  });

  test("Helm's hooks run by their event and weight, and Helm's tests do not run", () => {
    const hook = (name: string, events: string, weight: string) =>
      object(["Job", name], { "helm.sh/hook": events, "helm.sh/hook-weight": weight });
    const objects = [
      hook("both", "pre-install, pre-upgrade", "0"),
      hook("first", "pre-install", "-5"),
      hook("again", "pre-upgrade,post-install", "1"),
      hook("definition", "crd-install", "1"),
      hook("test", "test", "1"),
    ];
    expect(shown(plan(objects))).toEqual([
      "PreSync -5: first",
      "PreSync 0: both",
      "Sync 1: definition",
      "PostSync 1: again",
    ]);
    const upgrade = plan(objects, { event: "upgrade" });
    expect(shown(upgrade)).toEqual(["PreSync 0: both", "PreSync 1: again", "Sync 1: definition"]);
    expect([...upgrade.hooks.keys()].map(({ metadata }) => metadata.name)).toEqual(["both", "first", "again", "test"]);
  });

  test("Argo CD's annotation takes precedence over Helm's", () => {
    const both = { "helm.sh/hook": "post-install", "argocd.argoproj.io/hook": "PreSync", "helm.sh/hook-weight": "4" };
    expect(shown(plan([object(["Job", "a"], both)]))).toEqual(["PreSync 4: a"]);
    expect(shown(plan([object(["Job", "a"], { ...both, [wave]: "7" })]))).toEqual(["PreSync 7: a"]);
  });

  test("a definition and a Namespace are applied no later than the objects that need them", () => {
    const objects = [
      widgets,
      object(["Widget", "w"], { [wave]: "-1" }),
      object(["Namespace", "shop", ""], { [wave]: "3" }),
      object(["Job", "migrate"], { "argocd.argoproj.io/hook": "PreSync" }),
    ];
    expect(shown(plan(objects))).toEqual(["PreSync 0: shop migrate", "Sync -1: widgets.example.com w"]);
  });

  test("a Namespace is applied before the objects that go into it by default", () => {
    const objects = [object(["Namespace", "web", ""], { [wave]: "3" }), object(["ConfigMap", "a", ""])];
    expect(shown(plan(objects, { defaultNamespace: "web" }))).toEqual(["Sync 0: web a"]);
  });

  test("an object is applied after the objects that it depends on, in its own wave", () => {
    const objects = [
      object(["Deployment", "web"], { [dependsOn]: "apps/namespaces/shop/Deployment/db,/namespaces/shop/ConfigMap/c" }),
      object(["Deployment", "db"], { [dependsOn]: "/namespaces/shop/ConfigMap/c" }),
      object(["ConfigMap", "c"]),
      object(["ConfigMap", "d"]),
      object(["ConfigMap", "early"], { [wave]: "-1" }),
      object(["ConfigMap", "e"], { [dependsOn]: "/namespaces/shop/ConfigMap/early" }),
    ];
    expect(shown(plan(objects))).toEqual(["Sync -1: early", "Sync 0: c d e", "Sync 0: db", "Sync 0: web"]);
  });

  test("a reference finds its object also if the namespace is added or dropped later", () => {
    const objects = [
      object(["ConfigMap", "a", ""]),
      object(["ConfigMap", "b"], { [dependsOn]: "/namespaces/web/ConfigMap/a" }),
    ];
    expect(shown(plan(objects))).toEqual(["Sync 0: a", "Sync 0: b"]);
    expect(shown(plan(objects, { defaultNamespace: "web" }))).toEqual(["Sync 0: a", "Sync 0: b"]);
    expect(problems(objects, { defaultNamespace: "other" })).toHaveLength(1);
    const scoped = [object(["Namespace", "x", "dropped"]), object(["ConfigMap", "b"], { [dependsOn]: "/Namespace/x" })];
    expect(shown(plan(scoped))).toEqual(["Sync 0: x", "Sync 0: b"]);
  });
});

describe("an apply is refused", () => {
  test("a cycle of dependencies is refused, and named completely", () => {
    const objects = [
      object(["ConfigMap", "a"], { [dependsOn]: "/namespaces/shop/ConfigMap/b" }),
      object(["ConfigMap", "b"], { [dependsOn]: "/namespaces/shop/ConfigMap/a" }),
      object(["ConfigMap", "c"], { [dependsOn]: "/namespaces/shop/ConfigMap/a" }),
    ];
    expect(problems(objects)).toEqual([
      expect.stringMatching(
        /^config\.kubernetes\.io\/depends-on is part of a cycle: ConfigMap shop\/(a waits for ConfigMap shop\/b waits for ConfigMap shop\/a|b waits .*\/b); remove/,
      ),
    ]);
  });

  test("a definition that depends on its own custom resource is refused", () => {
    const annotations = { [dependsOn]: "example.com/namespaces/shop/Widget/w" };
    const definition = { ...widgets, metadata: { ...widgets.metadata, annotations } };
    expect(problems([definition, object(["Widget", "w"])])).toEqual([expect.stringContaining("is part of a cycle")]);
  });

  test("an annotation of megabytes that names missing objects is refused in time, beside many hooks that do not run", () => {
    const names = Array.from({ length: 150_000 }, (_, at) => `/namespaces/shop/ConfigMap/c${at}`);
    const hooks = Array.from({ length: 1_000 }, (_, at) =>
      object(["ConfigMap", `test-${at}`], { "helm.sh/hook": "test" }),
    );
    const found = problems([object(["ConfigMap", "a"], { [dependsOn]: names.join(",") }), ...hooks]);
    expect(found).toHaveLength(names.length);
    const twice = problems([object(["ConfigMap", "a"], { [dependsOn]: [...names, names.at(-1)].join(",") })]);
    expect(twice).toEqual([expect.stringContaining('names "/namespaces/shop/ConfigMap/c149999" twice')]);
  });

  test("a dependency on a missing or later object is refused", () => {
    const waits = (name: string) =>
      object(["ConfigMap", "a"], { [dependsOn]: `/namespaces/shop/ConfigMap/${name}`, [wave]: "1" });
    expect(problems([waits("gone")])).toEqual([
      expect.stringContaining("names ConfigMap shop/gone, which is not an object of this template"),
    ]);
    expect(problems([waits("late"), object(["ConfigMap", "late"], { [wave]: "2" })])).toEqual([
      expect.stringContaining(
        "names ConfigMap shop/late, which is applied later, in Sync, wave 2, while this object is applied in Sync, wave 1;",
      ),
    ]);
    const hookObject = object(["ConfigMap", "hook"], { "helm.sh/hook": "pre-upgrade" });
    expect(problems([waits("hook"), hookObject])).toEqual([
      expect.stringContaining("a hook that does not run at an install"),
    ]);
    expect(problems([waits("hook"), hookObject], { event: "upgrade" })).toEqual([]);
  });

  test.each([
    [{ "helm.sh/hook": "pre-install,post-install" }, "helm.sh/hook is for before and after one install;"],
    [
      { "argocd.argoproj.io/hook": "PreSync,PostSync" },
      "has the phases PreSync and PostSync; a Job or Pod runs only once",
    ],
  ])("a Job, Pod or custom resource in two phases is refused: %j", (annotations, message) => {
    for (const kind of ["Job", "Pod", "Widget"])
      expect(problems([object([kind, "a"], annotations)])).toEqual([expect.stringContaining(message)]);
    expect(problems([object(["ServiceAccount", "a"], annotations)])).toEqual([]);
  });

  test.each([
    [{ [wave]: "first" }, `${wave} is "first", expected a whole number`],
    [{ [wave]: "1.5" }, `${wave} is "1.5"`],
    [{ "helm.sh/hook": "pre-install", "helm.sh/hook-weight": "heavy" }, 'helm.sh/hook-weight is "heavy"'],
    [{ "helm.sh/hook": "pre-instal" }, 'helm.sh/hook has "pre-instal", expected one of pre-install, pre-upgrade'],
    [{ "argocd.argoproj.io/hook": "presync" }, 'argocd.argoproj.io/hook has "presync", expected one of PreSync'],
    [
      { "argocd.argoproj.io/hook": "PreSync,SyncFail" },
      "has the phases PreSync and SyncFail; a Job or Pod runs only once",
    ],
    [
      { "argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": "Never" },
      'argocd.argoproj.io/hook-delete-policy has "Never", expected one of BeforeHookCreation',
    ],
    [{ [dependsOn]: "ConfigMap/a" }, `${dependsOn} has "ConfigMap/a", expected group/Kind/name or`],
    [{ [dependsOn]: "/namespaces//ConfigMap/a" }, `${dependsOn} has "/namespaces//ConfigMap/a", expected`],
    [{ [dependsOn]: "/namespace/shop/ConfigMap/a" }, `${dependsOn} has "/namespace/shop`],
    [{ [dependsOn]: "/Namespace/a, /Namespace/a" }, `${dependsOn} names "/Namespace/a" twice`],
  ])("an invalid annotation is refused: %j", (annotations, message) => {
    expect(problems([object(["ConfigMap", "a"], annotations)])).toEqual([expect.stringContaining(message)]);
  });
});

test("each object is in one step, after its dependencies, and in the order of phases and waves", () => {
  const phases = ["PreSync", "Sync", "PostSync", "SyncFail"] as const;
  const drawn = fc.record({
    phase: fc.constantFrom(undefined, ...phases),
    at: fc.integer({ min: -2, max: 2 }),
    needs: fc.array(fc.nat(29), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(drawn, { maxLength: 30 }), (items) => {
      // Dependencies point only to objects earlier in the order, so that there is no cycle.
      const order = (index: number) => phases.indexOf(items[index]?.phase ?? "Sync") * 10 + (items[index]?.at ?? 0);
      const needsOf = (index: number) =>
        [...new Set(items[index]?.needs)].filter(
          (other) =>
            other < index &&
            order(other) <= order(index) &&
            (items[other]?.phase !== "SyncFail" || items[index]?.phase === "SyncFail"),
        );
      const objects = items.map(({ phase, at }, index) =>
        object(["ConfigMap", `c${index}`], {
          [wave]: String(at),
          ...(phase === undefined ? {} : { "argocd.argoproj.io/hook": phase }),
          [dependsOn]: needsOf(index)
            .map((other) => `/namespaces/shop/ConfigMap/c${other}`)
            .join(","),
        }),
      );
      const { before, after, onFailure } = plan(objects);
      const steps = [...before, ...after, ...onFailure];
      const names = steps.map((step) => step.objects.map(({ metadata }) => metadata.name));
      expect(names.flat().sort()).toEqual(objects.map(({ metadata }) => metadata.name).sort());
      const stepOf = (index: number) => names.findIndex((members) => members.includes(`c${index}`));
      for (const index of items.keys()) {
        expect(steps[stepOf(index)]).toMatchObject({ phase: items[index]?.phase ?? "Sync", wave: items[index]?.at });
        for (const other of needsOf(index)) expect(stepOf(other)).toBeLessThan(stepOf(index));
      }
      const places = steps.map(({ phase, wave: at }) => phases.indexOf(phase) * 10 + at);
      expect(places).toEqual([...places].sort((a, b) => a - b));
    }),
  );
});
