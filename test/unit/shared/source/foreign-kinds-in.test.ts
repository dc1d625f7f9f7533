import { expect, test } from "vitest";
import { foreignKindsIn } from "#shared/source/foreign-kinds-in.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";

function found(kind: string, spec: string): readonly string[] {
  return foreignKindsIn(
    readManifests(parseManifests(`${kind}\nmetadata: {name: a, namespace: ns}\nspec: ${spec}\n`, "a.yaml")),
  );
}

test.each([
  [
    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization",
    '{path: "./apps/prod/"}',
    "Kustomization.kustomize.toolkit.fluxcd.io ns/a: this object is for Flux, and only Flux acts on it; to let Starling do it, write a template with path: apps/prod",
  ],
  ["apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization", "[]", "a template with path: its folder"],
  ["apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease", "{}", "render.helm.values"],
  [
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository",
    '{url: "https://u:hunter2@git.example.com/a"}',
    "a Source with spec.git.url: https://git.example.com/a",
  ],
  [
    "apiVersion: argoproj.io/v1alpha1\nkind: Application",
    "{source: {path: guestbook}}",
    "write a template with path: guestbook",
  ],
  [
    "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet",
    "{}",
    "write a SyncGroup whose spec.clusters selects the clusters",
  ],
  [
    "apiVersion: fleet.cattle.io/v1alpha1\nkind: GitRepo",
    '{repo: "https://git.example.com/f"}',
    "a Source with spec.git.url: https://git.example.com/f",
  ],
])("an object of another tool is reported as such: %s %s", (kind, spec, words) => {
  expect(found(kind, spec)).toEqual([expect.stringContaining(words)]);
  expect(found(kind, spec).join()).not.toContain("hunter2");
});

test("each kind is reported once, and kinds with only the same name are not", () => {
  const one = (name: string) => `apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: ${name}}\n`;
  const other = "apiVersion: app.k8s.io/v1beta1\nkind: Application\nmetadata: {name: c}\n";
  const manifests = readManifests(parseManifests([one("a"), one("b"), other].join("---\n"), "a.yaml"));
  expect(foreignKindsIn(manifests)).toEqual([
    expect.stringMatching(/^Application\.argoproj\.io a and 1 more: this object is for Argo CD/),
  ]);
});

test("a path of many slashes is read up to a limit", () => {
  const path = `${"x/".repeat(600)}${"/".repeat(300_000)}x`;
  const [said] = found("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization", `{path: "${path}"}`);
  expect(said).toMatch(/a template with path: (x\/)+x?\.\.\.$/);
});
