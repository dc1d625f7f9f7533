/**
 * Kinds that instruct another tool what to keep in sync. They are applied like any other kind that the cluster knows,
 * and are reported as belonging to that tool.
 */
import { excerpt } from "#shared/base/excerpt.ts";
import type { Json } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

export interface ForeignKind {
  /** `Flux` */
  readonly tool: string;
  /** The replacement with which Starling does the same. */
  readonly instead: string;
}

/** Reads a string field of the object. */
type Text = (...path: readonly string[]) => string | undefined;
type Instead = (text: Text) => string;

const flux = "Flux";
const argo = "Argo CD";
const fleet = "Fleet";

/** Longer than any real path. The search for its end takes quadratic time. */
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

const chart =
  "a template with render.helm.values, and a Source with its chart: spec.helm, or spec.git and the folder as path";
const noImages = "nothing: let CI write the tags of images into git";

function chartSource(url: string | undefined): string {
  return `a Source with spec.helm.url: ${url === undefined ? "its repository" : excerpt(url)} for each chart of it`;
}

/** The content of an artifact of another kind is seldom the folder of that name in the repository. */
function isInGit(text: Text): boolean {
  return (text("spec", "sourceRef", "kind") ?? "GitRepository") === "GitRepository";
}

/** By group and kind; the version does not matter. */
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
  ["source.toolkit.fluxcd.io/HelmRepository", [flux, (text) => chartSource(text("spec", "url"))]],
  ["source.toolkit.fluxcd.io/HelmChart", [flux, () => "a Source with spec.helm"]],
  ["source.toolkit.fluxcd.io/OCIRepository", [flux, () => "a Source with spec.oci, or with spec.helm for a chart"]],
  ["source.toolkit.fluxcd.io/Bucket", [flux, () => "a Source with spec.s3, if the bucket is one of S3"]],
  ["source.toolkit.fluxcd.io/ExternalArtifact", [flux, () => "a Source with spec.external, and let CI push to it"]],
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
    [flux, () => "a Receiver, or nothing: the installation's webhook receives pushes too"],
  ],
  ["argoproj.io/Application", [argo, (text) => template(text("spec", "source", "path"))]],
  ["argoproj.io/ApplicationSet", [argo, () => "a SyncGroup whose spec.clusters selects the clusters"]],
  ["argoproj.io/AppProject", [argo, () => "nothing: Starling's namespaces and roles separate permissions"]],
  ["fleet.cattle.io/GitRepo", [fleet, (text) => source(text("spec", "repo"))]],
  ["fleet.cattle.io/ClusterGroup", [fleet, () => "a SyncGroup whose spec.clusters has its selector"]],
  ["fleet.cattle.io/Bundle", [fleet, () => "a Sync, or a SyncGroup"]],
]);

/** @param object - any object; only its group and kind matter. */
export function foreignKindOf(object: Json | undefined): ForeignKind | undefined {
  const found = foreignKinds.get(`${groupOf(stringAt(object, "apiVersion") ?? "")}/${stringAt(object, "kind")}`);
  if (found === undefined) return undefined;
  const [tool, instead] = found;
  return { tool, instead: instead((...path) => stringAt(object, ...path)) };
}
