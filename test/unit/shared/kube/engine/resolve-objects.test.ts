import { expect, test } from "vitest";
import { StarlingError } from "#shared/base/errors.ts";
import type { ClusterClient, KindLookup, KindQuery } from "#shared/kube/cluster-client.ts";
import { kindsOfDefinition, resolveKind, resolveObjects } from "#shared/kube/engine/resolve-objects.ts";
import { configMap, definition, manifest, namespace, widget } from "#test/support/cluster-fixture.ts";

/** A client with the given kinds, and the kinds that were looked up. */
function discovery(found: Readonly<Record<string, { readonly namespaced: boolean }>>) {
  const asked: string[] = [];
  const lookup = async ({ group, kind }: KindQuery): Promise<KindLookup> => {
    asked.push(`${group}/${kind}`);
    const known = found[`${group}/${kind}`];
    if (known === undefined) return { outcome: "absent", served: [] };
    const info = { group, kind, version: "v1", plural: "", verbs: [], hasStatus: false, ...known };
    return { outcome: "found", info };
  };
  return { asked, client: { lookup } as Pick<ClusterClient, "lookup"> as ClusterClient };
}

const core = { "/ConfigMap": { namespaced: true }, "/Namespace": { namespaced: false } };

test("each kind is looked up once for all of its objects, and kinds that the set defines are not looked up", async () => {
  const { asked, client } = discovery(core);
  const group = "example.com";
  const objects = [
    namespace("shop"),
    definition(group),
    ...["a", "b", "c"].map((name) => configMap(`shop/${name}`)),
    ...["a", "b"].map((name) => widget(group, `shop/${name}`)),
    ...["a", "b"].map((name) => widget("unknown.example.com", `shop/${name}`)),
  ];
  const resolved = await resolveObjects(client, objects, { setId: "set" });
  expect(resolved).toHaveLength(objects.length);
  expect([...asked].sort()).toEqual([
    "/ConfigMap",
    "/Namespace",
    "apiextensions.k8s.io/CustomResourceDefinition",
    "unknown.example.com/Widget",
  ]);
});

test.each([
  ["a definition's kind in another group", "example.com/v1", "CustomResourceDefinition"],
  ["another kind of the definitions' group", "apiextensions.k8s.io/v1", "Lookalike"],
])("the object %s defines nothing, so that the cluster is asked", async (_what, apiVersion, kind) => {
  const { asked, client } = discovery({ "example.com/Widget": { namespaced: true } });
  const lookalike = manifest({ ...definition("example.com", "Cluster"), apiVersion, kind } as never);
  const resolved = await resolveObjects(client, [lookalike, widget("example.com", "shop/w")], { setId: "set" });
  expect(asked).toContain("example.com/Widget");
  expect(resolved[1]?.id.namespace).toBe("shop");
});

test.each([
  ["goes to the Sync's default namespace", { kind: "ConfigMap", metadata: { name: "c" } }, "shop", "shop", undefined],
  ["without any namespace is refused", { kind: "ConfigMap", metadata: { name: "c" } }, undefined, "", "NoNamespace"],
  [
    "keeps its own namespace",
    { kind: "ConfigMap", metadata: { name: "c", namespace: "own" } },
    "shop",
    "own",
    undefined,
  ],
  [
    "of a cluster-wide kind has no namespace",
    { kind: "Namespace", metadata: { name: "c", namespace: "own" } },
    "shop",
    "",
    undefined,
  ],
  ["of an unknown kind is not changed", { kind: "Odd", metadata: { name: "c" } }, "shop", "", undefined],
])("an object %s", async (_what, object, defaultNamespace, expected, reason) => {
  const { client } = discovery(core);
  const given = manifest({ apiVersion: "v1", ...object });
  const [one] = await resolveObjects(client, [given], { setId: "set", defaultNamespace });
  expect(one?.id.namespace).toBe(expected);
  expect(one?.invalid?.reason).toBe(reason);
});

test("an object that proves to be the same as an earlier one, once its scope is known, is refused", async () => {
  const { client } = discovery(core);
  const twice = [configMap("shop/c"), manifest({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } })];
  const resolved = await resolveObjects(client, twice, { setId: "set", defaultNamespace: "shop" });
  expect(resolved.map(({ invalid }) => invalid?.reason)).toEqual([undefined, "DuplicateObject"]);
});

test.each([
  ["name", { name: "a/b", namespace: "shop" }, "ConfigMap shop/a/b"],
  ["namespace", { name: "c", namespace: ".." }, "ConfigMap ../c"],
])("a %s that would change the address of its object is refused", async (_what, metadata, shown) => {
  const { client } = discovery(core);
  const [one] = await resolveObjects(client, [manifest({ apiVersion: "v1", kind: "ConfigMap", metadata })], {
    setId: "set",
  });
  expect(one?.invalid).toMatchObject({ class: "invalid", reason: "InvalidName", retryable: false });
  expect(one?.invalid?.message).toContain(`the name or namespace of ${shown}`);
  expect(one?.invalid?.message).toContain("a part of the object's address in the API; change it");
});

const asked = (answer: () => KindLookup | Promise<KindLookup>) =>
  resolveKind({ lookup: async () => answer() } as unknown as ClusterClient, widget("example.com", "shop/w"));
const noMatch = { class: "noMatch", retryable: true, outcomeUnknown: false };

test.each<[string, () => KindLookup, object]>([
  [
    "does not answer is tried again",
    () => ({ outcome: "unavailable", message: "example.com/v1 does not answer" }),
    { ...noMatch, reason: "KindUnavailable", message: "example.com/v1 does not answer" },
  ],
  [
    "serves other versions names them",
    () => ({ outcome: "absent", served: ["v1beta1", "v2"] }),
    {
      ...noMatch,
      reason: "NoMatch",
      message: "no matches for kind Widget in example.com/v1; the cluster serves it in v1beta1, v2: change apiVersion",
    },
  ],
  [
    "has no such kind yet is tried again",
    () => ({ outcome: "absent", served: [] }),
    {
      ...noMatch,
      reason: "NoMatch",
      message: "no matches for kind Widget in example.com/v1; Starling tries again until the definition exists",
    },
  ],
  [
    "cannot be asked fails with that reason",
    () => {
      throw new StarlingError("no token", { code: "SecretDenied", retry: "permanent" });
    },
    { class: "auth", reason: "SecretDenied", message: "no token", retryable: false, outcomeUnknown: false },
  ],
])("an object whose API %s", async (_what, answer, expected) => {
  expect(await asked(answer)).toEqual(expected);
});

test.each([
  [
    "argoproj.io/v1alpha1",
    "Application",
    { source: { path: "guestbook" } },
    "no matches for kind Application in argoproj.io/v1alpha1: the object is for Argo CD, which this cluster does not have; to let Starling do it, write a template with path: guestbook (`starling validate -f FILE` prints it), or install Argo CD there",
  ],
  ["argoproj.io/v1alpha1", "ApplicationSet", {}, "the object is for Argo CD"],
  ["kustomize.toolkit.fluxcd.io/v1", "Kustomization", { path: "./apps" }, "write a template with path: apps"],
  ["helm.toolkit.fluxcd.io/v2", "HelmRelease", {}, "the object is for Flux, which this cluster does not have"],
  ["fleet.cattle.io/v1alpha1", "GitRepo", {}, "the object is for Fleet"],
])(
  "an object for another tool is reported as such at the first attempt: %s %s",
  async (apiVersion, kind, spec, words) => {
    const lookup = async (): Promise<KindLookup> => ({ outcome: "absent", served: [] });
    const object = manifest({ apiVersion, kind, metadata: { name: "a", namespace: "b" }, spec });
    const answer = await resolveKind({ lookup } as unknown as ClusterClient, object);
    expect(answer).toMatchObject({ ...noMatch, reason: "NoMatch" });
    expect(answer).toMatchObject({ message: expect.stringContaining(words) });
  },
);

test("a definition yields the kinds of the versions that it serves", () => {
  const [group, names] = ["example.com", { kind: "Widget", plural: "widgets" }];
  const versions = [
    { name: "v1", served: true },
    { name: "v0", served: false },
    { name: "v2" },
    "odd",
    { served: true },
  ];
  const made = { ...definition(group), spec: { group, names, scope: "Namespaced", versions } };
  expect(kindsOfDefinition(made as never)).toEqual([
    { group, kind: "Widget", version: "v1" },
    { group, kind: "Widget", version: "" },
  ]);
  expect(kindsOfDefinition({ ...made, spec: { versions: [{ name: "v1", served: true }] } } as never)).toEqual([
    { group: "", kind: "", version: "v1" },
  ]);
});
