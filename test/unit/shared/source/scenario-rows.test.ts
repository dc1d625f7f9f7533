// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
/** The rows A and I of the acceptance scenarios that are about reading and ordering objects; each title has the row's number. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inRanks } from "#shared/kube/apply-order.ts";
import { planSteps } from "#shared/kube/apply-steps.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import { kustomizeInputs } from "#shared/source/kustomize/kustomize-inputs.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { substituteObject } from "#shared/source/substitution/substitute-object.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const read = (text: string) => readManifests(siftHooks(parseManifests(text, "a.yaml"), "Honor").documents);
const idsOf = (text: string) => read(text).map(({ id }) => `${id.kind} ${id.namespace}/${id.name}`);
const config = (name: string, more = "") => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}${more}}\n`;

function object(kind: string, name: string, annotations: Readonly<Record<string, string>> = {}, more: object = {}) {
  const apiVersion =
    kind === "CustomResourceDefinition" ? "apiextensions.k8s.io/v1" : kind === "Widget" ? "w.io/v1" : "v1";
  const metadata = { name, ...(kind === "CustomResourceDefinition" ? {} : { namespace: "shop" }), annotations };
  return { apiVersion, kind, metadata, ...more } as ManifestObject;
}

describe("I11: documents", () => {
  test("I11: a List is flattened at any depth; empty documents, comments and a byte order mark are skipped", () => {
    const list = `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMapList, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}]}`;
    expect(idsOf(`\ufeff${config("a")}---\n---\n# nothing\n---\n${list}\n`)).toEqual(["ConfigMap /a", "ConfigMap /b"]);
  });

  test("I11: an object without a name is refused with its place", () => {
    expect(() => read(`${config("a")}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n`)).toThrow(
      /^a\.yaml:.*document 2.*metadata\.name/,
    );
  });
});

describe("I08: secrets that SOPS has encrypted", () => {
  const secret = (more = "") =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: db${more}}\nstringData: {password: "ENC[AES256_GCM,data:c2VjcmV0,type:str]"}\nsops: {mac: "ENC[AES256_GCM,data:bWFj]", version: 3.9.0}\n`;

  test("I08: an encrypted Secret is refused before any write, and the message has no value", () => {
    expect(() => read(secret())).toThrow(
      /^a\.yaml:1, document 1, Secret db, sops: is set, so the object is encrypted with SOPS, and Starling decrypts nothing/,
    );
    expect(() => read(secret())).not.toThrow("c2VjcmV0");
  });

  test("I08: an encrypted Secret with Flux's annotation is applied unchanged", () => {
    const marked = secret(", annotations: {kustomize.toolkit.fluxcd.io/decrypt: disabled}");
    expect(read(marked).map(({ object: { kind } }) => kind)).toEqual(["Secret"]);
  });
});

test("I13: an alias bomb of nine levels is refused in time", () => {
  const levels = Array.from({ length: 9 }, (_, index) => `l${index + 1}: &l${index + 1} [${`*l${index},`.repeat(9)}]`);
  expect(() => read(`l0: &l0 [x]\n${levels.join("\n")}\n`)).toThrow(/alias/i);
});

test("I13: too many documents are refused before they are parsed; as many as are allowed are read", () => {
  const documents = (count: number) => Array.from({ length: count }, (_, index) => `---\n{a: ${index}}\n`).join("");
  expect(() => read(documents(100_000))).toThrow(
    "a.yaml: has more than 50000 documents, the limit of one file; split it",
  );
  expect(() => read("a\n...\n".repeat(50_001))).toThrow("has more than 50000 documents");
  expect(parseManifests(documents(2_000), "a.yaml")).toHaveLength(2_000);
  // A text may look like the end of a document.
  expect(idsOf(`${config("a")}data: {text: "${"--- ".repeat(60_000)}"}\n`)).toEqual(["ConfigMap /a"]);
});

test("I15: a hook may have a generated name, which is always the same; an object that stays may not", () => {
  const generated = (annotations: string) =>
    `apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-, annotations: {${annotations}}}\n`;
  const hook = generated("argocd.argoproj.io/hook: PreSync");
  expect(idsOf(hook)).toEqual([expect.stringMatching(/^Job \/run-[0-9a-f]{7}$/)]);
  expect(idsOf(hook)).toEqual(idsOf(hook));
  expect(() => read(generated("a: b"))).toThrow("metadata.generateName: cannot be synced");
});

test("I16: one object in two files and two versions is refused, and both are named", () => {
  const documents = [
    ...parseManifests(config("a"), "a.yaml"),
    ...parseManifests(config("a").replace("v1", "v2"), "b.yaml"),
  ];
  expect(() => readManifests(documents)).toThrow(/^b\.yaml.*is also in a\.yaml/);
});

describe("I01: variables", () => {
  const substituted = (data: string, variables: Readonly<Record<string, string>>) =>
    readManifests(parseManifests(`${config("a")}data: {x: "${data}"}\n`, "a.yaml"), (object, refuse) =>
      substituteObject(object, { variables, room: { left: 1_000 } }, refuse),
    )[0]?.object.data;

  test.each([
    ["${A:=d}", {}, "d"],
    ["${A:-d}", {}, "d"],
    ["${A:=d}", { A: "" }, "d"],
    ["${A:=d}", { A: "set" }, "set"],
  ])("I01: the text %s with the variables %j becomes %j", (text, variables, desired) => {
    expect(substituted(text, variables)).toEqual({ x: desired });
  });

  test("I01: a missing variable without a default is refused", () => {
    expect(() => substituted("${A}", {})).toThrow("${A} is not set");
  });
});

describe("I12: any kustomization", () => {
  const name = fc.constantFrom("a.yaml", "b.yaml", ".", "..", "../x", "x", "x/y", "https://e.com/r", "", "/etc");
  const entry = fc.oneof(name, fc.record({ path: name }), fc.record({ name, files: fc.array(name, { maxLength: 3 }) }));
  const value = fc.oneof(fc.array(fc.oneof(entry, fc.jsonValue({ maxDepth: 2 })), { maxLength: 4 }), fc.jsonValue());
  const field = fc.constantFrom(
    ...["apiVersion", "kind", "resources", "bases", "components", "patches", "patchesJson6902", "generators", "images"],
    ...["configMapGenerator", "secretGenerator", "helmCharts", "crds", "replacements", "transformers", "__proto__"],
  );
  const text = fc.oneof(
    fc.dictionary(field, value, { maxKeys: 5 }).map((object) => JSON.stringify(object)),
    fc.string({ unit: "binary" }),
  );
  const folder = fc.constantFrom("", "x/", "x/y/");

  test.each(propertySeeds)(
    "I12: any kustomization is prepared for kustomize, or refused with its place (seed %i)",
    (seed) => {
      const trees = fc.dictionary(
        fc.tuple(folder, fc.constantFrom("kustomization.yaml", "a.yaml", "b.yaml")).map((parts) => parts.join("")),
        text,
      );
      fc.assert(
        fc.property(trees, text, (tree, root) => {
          const contents = Object.entries({ ...tree, "kustomization.yaml": root });
          const files = new Map(
            contents.map(([path, said]) => [
              path,
              { path, executable: false, content: new TextEncoder().encode(said) },
            ]),
          );
          try {
            for (const path of kustomizeInputs(files, "").files.keys()) expect([...files.keys()]).toContain(path);
          } catch (error) {
            expect(error).toBeInstanceOf(ManifestError);
          }
        }),
        { seed, numRuns: propertyRuns(500) },
      );
    },
  );
});

test("A09: a cycle of dependencies is refused, and each object of it is named", () => {
  const on = (name: string) => ({ "config.kubernetes.io/depends-on": `/namespaces/shop/ConfigMap/${name}` });
  const plan = planSteps([object("ConfigMap", "a", on("b")), object("ConfigMap", "b", on("a"))], { event: "install" });
  if (!("problems" in plan)) throw new Error("it is planned");
  const [problem] = plan.problems;
  expect(problem?.reason).toContain("ConfigMap shop/a");
  expect(problem?.reason).toContain("ConfigMap shop/b");
});

/** The row of the scenarios, and the kinds in the order in which they are applied. */
const ranked: readonly (readonly [string, readonly string[]])[] = [
  ["A01", ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Widget", "Deployment"]],
  ["A06", ["ServiceAccount", "Role", "RoleBinding"]],
  ["A19", ["Service", "Deployment", "ValidatingWebhookConfiguration"]],
  ["A21", ["ServiceAccount", "Pod"]],
  ["A22", ["Namespace", "Pod"]],
  ["A23", ["PriorityClass", "Pod"]],
];
const groups: Readonly<Record<string, string>> = {
  ClusterRole: "rbac.authorization.k8s.io",
  ClusterRoleBinding: "rbac.authorization.k8s.io",
  CustomResourceDefinition: "apiextensions.k8s.io",
  Deployment: "apps",
  PriorityClass: "scheduling.k8s.io",
  Role: "rbac.authorization.k8s.io",
  RoleBinding: "rbac.authorization.k8s.io",
  ValidatingWebhookConfiguration: "admissionregistration.k8s.io",
  Widget: "w.io",
};

test.each(ranked)("%s: one run applies each kind after the kinds that it needs: %j", (_row, kinds) => {
  const ids = kinds.map((kind) => ({ group: groups[kind] ?? "", kind, namespace: "", name: "x" }));
  const ranks = inRanks([...ids].reverse(), (id) => id);
  expect(ranks.map((rank) => rank.map(({ kind }) => kind))).toEqual(kinds.map((kind) => [kind]));
});

test("A14: a definition of a later wave is applied with the first object that needs it", () => {
  const wave = (at: number) => ({ "argocd.argoproj.io/sync-wave": String(at) });
  const spec = { group: "w.io", names: { kind: "Widget" } };
  const definition = object("CustomResourceDefinition", "widgets.w.io", wave(5), { spec });
  const plan = planSteps([definition, object("Widget", "w", wave(-1)), object("ConfigMap", "c")], { event: "install" });
  if ("problems" in plan) throw new Error(plan.problems[0]?.reason);
  expect(plan.before.map(({ wave: at, objects }) => [at, objects.map(({ kind }) => kind).sort()])).toEqual([
    [-1, ["CustomResourceDefinition", "Widget"]],
    [0, ["ConfigMap"]],
  ]);
});
