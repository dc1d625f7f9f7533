/** The effects of a rollback on objects, by the renderings before and after it. */
import { describe, expect, test } from "vitest";
import { type EffectKind, rollbackEffects, type SyncSides } from "#shared/fleet/forecast/rollback-effects.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

function object(text: string, more: object = {}, annotations: Readonly<Record<string, string>> = {}): ManifestObject {
  const [apiVersion = "", kind = "", name = ""] = text.split(" ");
  const namespace = kind === "CustomResourceDefinition" || kind === "Namespace" ? {} : { namespace: "shop" };
  return { apiVersion, kind, metadata: { name, ...namespace, annotations }, ...more } as ManifestObject;
}

const rendering = (...objects: readonly ManifestObject[]) => ({ install: objects, upgrade: objects });

const side = (
  before: readonly ManifestObject[] | undefined,
  after: readonly ManifestObject[] | undefined,
  more: Partial<SyncSides> = {},
): SyncSides => ({
  sync: "shop.web",
  before: before && rendering(...before),
  after: after && rendering(...after),
  prune: true,
  ...more,
});

type Line = readonly [EffectKind, string, string?];

function said(...syncs: readonly SyncSides[]): readonly Line[] {
  const effects = rollbackEffects([{ clusters: 2, syncs }]);
  return effects.map(({ how, object: about, why }) => (why === undefined ? [how, about] : [how, about, why]));
}

const hook = (name: string, more: object = {}) =>
  object(`batch/v1 Job ${name}`, more, { "argocd.argoproj.io/hook": "PreSync" });
const definition = (...versions: readonly string[]) =>
  object("apiextensions.k8s.io/v1 CustomResourceDefinition things.example.com", {
    spec: { versions: versions.map((name, index) => ({ name, storage: index === versions.length - 1 })) },
  });

describe("a rollback", () => {
  test("an object that only the newer rendering has is deleted, and one that only the older one has is created again", () => {
    const [kept, added, dropped] = ["kept", "added", "dropped"].map((name) => object(`v1 ConfigMap ${name}`));
    expect(said(side([kept, added] as ManifestObject[], [kept, dropped] as ManifestObject[]))).toEqual([
      ["deleted", "ConfigMap shop/added"],
      ["createdAgain", "ConfigMap shop/dropped"],
    ]);
  });

  test("an object that is marked or that its template does not prune stays; a claim loses its data", () => {
    const marked = object("v1 ConfigMap a", {}, { "starling.dev/prune": "disabled" });
    expect(said(side([marked], []))).toEqual([["kept", "ConfigMap shop/a", expect.stringMatching(/^it is marked /)]]);
    const claim = object("v1 PersistentVolumeClaim data");
    expect(said(side([claim], [], { prune: false }))).toEqual([
      ["kept", "PersistentVolumeClaim shop/data", "its template does not prune"],
    ]);
    expect(said(side([claim], []))).toEqual([
      ["deleted", "PersistentVolumeClaim shop/data", expect.stringMatching(/^the data of its volume /)],
    ]);
  });

  test("an object that moves between two templates of the same clusters is neither deleted nor created", () => {
    const moving = object("v1 ConfigMap a");
    expect(said(side([moving], []), side([], [moving], { sync: "shop.jobs" }))).toEqual([]);
  });

  test("hooks and Jobs of the newer rendering are not undone; hooks of the older one, and a dropped Job, run again", () => {
    const [now, then] = [object("batch/v1 Job v2"), object("batch/v1 Job v1")];
    expect(said(side([hook("migrate", { spec: 2 }), now], [hook("migrate", { spec: 1 }), then]))).toEqual([
      ["deleted", "Job shop/v2"],
      ["ran", "Job shop/migrate", "what it did stays"],
      ["ran", "Job shop/v2", "what it did stays"],
      ["runsAgain", "Job shop/migrate", "it is a PreSync hook"],
      ["runsAgain", "Job shop/v1"],
    ]);
  });

  test("a hook for failures alone, and an object that hooks need, are no hooks that run again", () => {
    const failing = object("batch/v1 Job alert", {}, { "argocd.argoproj.io/hook": "SyncFail" });
    const aid = object("v1 ConfigMap settings", {}, { "argocd.argoproj.io/hook": "PreSync" });
    expect(said(side([], [failing, aid]))).toEqual([]);
  });

  test.each<[string, ManifestObject, ManifestObject, string]>([
    [
      "the template of a Job",
      object("batch/v1 Job once", { spec: { template: { a: 2 } } }),
      object("batch/v1 Job once", { spec: { template: { a: 1 } } }),
      "spec.template",
    ],
    [
      "the selector of a Deployment",
      object("apps/v1 Deployment web", { spec: { selector: { a: "2" }, replicas: 1 } }),
      object("apps/v1 Deployment web", { spec: { selector: { a: "1" }, replicas: 2 } }),
      "spec.selector",
    ],
    [
      "the size of a claim",
      object("v1 PersistentVolumeClaim data", { spec: { resources: { requests: { storage: "2Gi" } } } }),
      object("v1 PersistentVolumeClaim data", { spec: { resources: { requests: { storage: "1Gi" } } } }),
      "spec.resources.requests.storage",
    ],
    [
      "the data of an immutable ConfigMap",
      object("v1 ConfigMap a", { immutable: true, data: { k: "2" } }),
      object("v1 ConfigMap a", { immutable: true, data: { k: "1" } }),
      "data",
    ],
  ])("%s cannot be changed back", (_what, now, then, field) => {
    const [line] = said(side([now], [then])).filter(([how]) => how === "unchangeable");
    expect(line?.[2]).toMatch(new RegExp(`^${field.replaceAll(".", "\\.")} cannot be changed; the apply fails where`));
  });

  test("a field that can be changed is not named", () => {
    const web = (replicas: number) => object("apps/v1 Deployment web", { spec: { replicas, selector: { a: "1" } } });
    expect(said(side([web(2)], [web(1)]))).toEqual([]);
  });

  test("a definition that loses a version names it, and whether objects are stored in it", () => {
    expect(said(side([definition("v1", "v2")], [definition("v1")]))).toEqual([
      [
        "versionLost",
        "CustomResourceDefinition.apiextensions.k8s.io things.example.com",
        "v2, in which objects are stored",
      ],
    ]);
    expect(said(side([definition("v1beta1", "v1")], [definition("v1")]))).toEqual([
      [
        "versionLost",
        "CustomResourceDefinition.apiextensions.k8s.io things.example.com",
        "v1beta1, in which objects may be stored",
      ],
    ]);
  });

  test("a template that comes back runs the hooks of an install; one that goes loses all its objects", () => {
    const seed = object("batch/v1 Job seed", {}, { "helm.sh/hook": "post-install" });
    expect(said(side(undefined, [seed]))).toEqual([["runsAgain", "Job shop/seed", "it is a PostSync hook"]]);
    expect(said(side([seed], [seed]))).toEqual([["ran", "Job shop/seed", "what it did stays"]]);
    expect(said(side([object("v1 ConfigMap a")], undefined, { prune: false }))).toEqual([
      ["deleted", "ConfigMap shop/a"],
    ]);
  });

  test("equal effects of different clusters are counted together, the worst first", () => {
    const [a, b] = [object("v1 ConfigMap a"), object("v1 ConfigMap b")];
    const effects = rollbackEffects([
      { clusters: 2, syncs: [side([a], [b])] },
      { clusters: 3, syncs: [side([a], [])] },
    ]);
    expect(effects.map(({ how, object: about, clusters }) => [how, about, clusters])).toEqual([
      ["deleted", "ConfigMap shop/a", 5],
      ["createdAgain", "ConfigMap shop/b", 2],
    ]);
  });
});
