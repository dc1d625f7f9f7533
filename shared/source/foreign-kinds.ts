/** Objects that tell another tool what to keep in sync: applied like any other, and said to be what they are. */
import { excerpt } from "#shared/base/excerpt.ts";
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { describeObject, groupOf } from "#shared/kube/object-id.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";

interface ForeignKind {
  readonly tool: string;
  /** What to write for Starling to do the same. @param text - of a field of the object, where it is a text. */
  readonly instead: (text: (...path: readonly string[]) => string | undefined) => string;
}

const flux = "Flux";
const argo = "Argo CD";
const fleet = "Fleet";

function template(path: string | undefined): string {
  return `a template with path: ${path === undefined ? "its folder" : excerpt(normalFolder(path))}`;
}

function source(url: string | undefined): string {
  return `a Source with spec.git.url: ${url === undefined ? "its repository" : excerpt(url.replace(/\/\/[^/]*@/, "//"))}`;
}

const chart = "a template with the chart's folder as its path, and render.helm.values";

/** By group and kind, whatever the version. */
const foreignKinds: ReadonlyMap<string, ForeignKind> = new Map<string, ForeignKind>([
  ["kustomize.toolkit.fluxcd.io/Kustomization", { tool: flux, instead: (text) => template(text("spec", "path")) }],
  ["helm.toolkit.fluxcd.io/HelmRelease", { tool: flux, instead: () => chart }],
  ["source.toolkit.fluxcd.io/GitRepository", { tool: flux, instead: (text) => source(text("spec", "url")) }],
  ["source.toolkit.fluxcd.io/HelmRepository", { tool: flux, instead: () => "the chart in a repository of a Source" }],
  ["argoproj.io/Application", { tool: argo, instead: (text) => template(text("spec", "source", "path")) }],
  ["argoproj.io/ApplicationSet", { tool: argo, instead: () => "a SyncGroup whose spec.clusters selects the clusters" }],
  ["fleet.cattle.io/GitRepo", { tool: fleet, instead: (text) => source(text("spec", "repo")) }],
  ["fleet.cattle.io/Bundle", { tool: fleet, instead: () => "a Sync, or a SyncGroup" }],
]);

/** What is found of each kind, in words. */
export function foreignKindsIn(manifests: readonly Manifest[]): readonly string[] {
  const found = new Map<string, Manifest[]>();
  for (const manifest of manifests) {
    const kind = `${groupOf(manifest.object.apiVersion)}/${manifest.object.kind}`;
    if (foreignKinds.has(kind)) found.set(kind, [...(found.get(kind) ?? []), manifest]);
  }
  return [...found].flatMap(([kind, [first, ...others]]) => {
    const foreign = foreignKinds.get(kind);
    if (first === undefined || foreign === undefined) return [];
    const { tool, instead } = foreign;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    const wanted = instead((...path) => textAt(first.object, path));
    return `${excerpt(describeObject(first.id))}${more}: for ${tool}, which does what is said there where it runs; for Starling to do it, write ${wanted}`;
  });
}

function textAt(value: Json | undefined, [name, ...rest]: readonly string[]): string | undefined {
  if (name === undefined) return typeof value === "string" ? value : undefined;
  return isJsonObject(value) && Object.hasOwn(value, name) ? textAt(value[name], rest) : undefined;
}
