/** Kinds that tell another tool what to keep in sync: applied like any other where they are known, and said to be what they are. */
import { excerpt } from "#shared/base/excerpt.ts";
import type { Json } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

export interface ForeignKind {
  /** `Flux` */
  readonly tool: string;
  /** What to write for Starling to do the same. */
  readonly instead: string;
}

/** Of a field of the object, where it is a text. */
type Text = (...path: readonly string[]) => string | undefined;
type Instead = (text: Text) => string;

const flux = "Flux";
const argo = "Argo CD";
const fleet = "Fleet";

/** Longer than a path that somebody means: what looks for its end takes the square of its length. */
const mostCharacters = 1000;

function template(path: string | undefined): string {
  const folder = path
    ?.slice(0, mostCharacters)
    .replace(/^(\.?\/)+/, "")
    .replace(/\/+$/, "");
  return `a template with path: ${folder === undefined ? "its folder" : excerpt(folder === "" ? "." : folder)}`;
}

function source(url: string | undefined): string {
  return `a Source with spec.git.url: ${url === undefined ? "its repository" : excerpt(url.replace(/\/\/[^/]*@/, "//"))}`;
}

const chart = "a template with the chart's folder as its path, and render.helm.values";
const noImages = "nothing: CI writes tags of images into git";
const inRepository = "the chart in a repository of a Source";

/** What an artifact of another kind holds is seldom the folder of that name in the repository. */
function isInGit(text: Text): boolean {
  return (text("spec", "sourceRef", "kind") ?? "GitRepository") === "GitRepository";
}

/** By group and kind, whatever the version. */
const foreignKinds: ReadonlyMap<string, readonly [tool: string, instead: Instead]> = new Map<
  string,
  readonly [string, Instead]
>([
  [
    "kustomize.toolkit.fluxcd.io/Kustomization",
    [flux, (text) => template(isInGit(text) ? text("spec", "path") : undefined)],
  ],
  ["helm.toolkit.fluxcd.io/HelmRelease", [flux, () => chart]],
  ["source.toolkit.fluxcd.io/GitRepository", [flux, (text) => source(text("spec", "url"))]],
  ["source.toolkit.fluxcd.io/HelmRepository", [flux, () => inRepository]],
  ["source.toolkit.fluxcd.io/HelmChart", [flux, () => inRepository]],
  ["source.toolkit.fluxcd.io/OCIRepository", [flux, () => "a Source of a git repository; registries are not read yet"]],
  ["source.toolkit.fluxcd.io/Bucket", [flux, () => "a Source of a git repository; buckets are not read yet"]],
  [
    "source.extensions.fluxcd.io/ArtifactGenerator",
    [flux, () => "a template with the folder that it copies as its path"],
  ],
  ["image.toolkit.fluxcd.io/ImagePolicy", [flux, () => noImages]],
  ["image.toolkit.fluxcd.io/ImageRepository", [flux, () => noImages]],
  ["image.toolkit.fluxcd.io/ImageUpdateAutomation", [flux, () => noImages]],
  ["notification.toolkit.fluxcd.io/Alert", [flux, () => "nothing yet: Starling sends no notifications"]],
  ["notification.toolkit.fluxcd.io/Provider", [flux, () => "nothing yet: Starling sends no notifications"]],
  [
    "notification.toolkit.fluxcd.io/Receiver",
    [flux, () => "nothing: the webhook of an installation is told of pushes"],
  ],
  ["argoproj.io/Application", [argo, (text) => template(text("spec", "source", "path"))]],
  ["argoproj.io/ApplicationSet", [argo, () => "a SyncGroup whose spec.clusters selects the clusters"]],
  ["argoproj.io/AppProject", [argo, () => "nothing: namespaces of Starling and their roles part who may do what"]],
  ["fleet.cattle.io/GitRepo", [fleet, (text) => source(text("spec", "repo"))]],
  ["fleet.cattle.io/ClusterGroup", [fleet, () => "a SyncGroup whose spec.clusters has its selector"]],
  ["fleet.cattle.io/Bundle", [fleet, () => "a Sync, or a SyncGroup"]],
]);

/** @param object - anything; only its group and its kind are asked for. */
export function foreignKindOf(object: Json | undefined): ForeignKind | undefined {
  const found = foreignKinds.get(`${groupOf(stringAt(object, "apiVersion") ?? "")}/${stringAt(object, "kind")}`);
  if (found === undefined) return undefined;
  const [tool, instead] = found;
  return { tool, instead: instead((...path) => stringAt(object, ...path)) };
}
