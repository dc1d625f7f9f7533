import { renderChart } from "#shared/adapters/render/render-chart.ts";
import { changesOf, kustomized, withNamespace } from "#shared/adapters/render/specialise-documents.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { HelmRunner, KustomizeRunner, TreeFile } from "#shared/ports.ts";
import { refuseForeignFiles } from "#shared/source/foreign-files.ts";
import { foreignKindsIn } from "#shared/source/foreign-kinds.ts";
import { chartFile } from "#shared/source/helm/chart.ts";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import { kustomizationsOf } from "#shared/source/kustomization.ts";
import { type Base, needsKustomize } from "#shared/source/kustomize/generated-kustomization.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { readMarks } from "#shared/source/object-marks.ts";
import { isManifestFile, nestedKustomizations, readPlainFiles } from "#shared/source/plain-files.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import { requireOrder } from "#shared/source/require-order.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface RenderRequest {
  readonly files: readonly TreeFile[];
  /** The folder inside the artifact. */
  readonly path: string;
  /** Absent: kustomize when the folder has a kustomization file, else plain. */
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
}

/** What runs what a repository says. */
export interface Renderers {
  readonly kustomize: KustomizeRunner;
  readonly helm: HelmRunner;
}

export interface RenderedObjects {
  readonly objects: readonly ManifestObject[];
  /** What was left out, and what objects ask for and do not get, in words. */
  readonly leftOut: readonly string[];
}

/**
 * The objects of a folder, checked, normalised and sorted by identity: the same for the same files, on any machine.
 * Without a choice in the template, a folder below with a kustomization of its own is built and joined, as Flux does;
 * `plain` by choice reads every file and builds nothing.
 * @throws ManifestError for what is wrong with the files, `EmptyRender` when nothing comes out of them; StarlingError
 *   `KustomizeFailed`, `HelmFailed`.
 */
export async function renderObjects(request: RenderRequest, renderers: Renderers): Promise<RenderedObjects> {
  const path = normalFolder(request.path);
  if (!request.files.some((file) => isWithin(file.path, [path]) && file.path !== path)) {
    throw new ManifestError(
      "EmptyRender",
      { file: path },
      "is no folder of the artifact; check the template's path and the Source's spec.paths (symbolic links are no part of an artifact)",
    );
  }
  const read = await readDocuments({ ...request, path }, renderers);
  const { documents, leftOut } = siftHooks(read, request.render?.helm?.hooks ?? "Honor");
  const manifests = readManifests(documents, changesOf(request.specialise));
  if (manifests.length === 0) throw emptyRender(path, request.files);
  requireOrder(manifests);
  const unheeded = [...foreignKindsIn(manifests), ...readMarks(manifests)];
  return { objects: manifests.map(({ object }) => object), leftOut: [...leftOut, ...unheeded] };
}

function emptyRender(path: string, files: readonly TreeFile[]): ManifestError {
  const inside = files.filter((file) => isWithin(file.path, [path]));
  const [first] = inside;
  const other =
    first === undefined || inside.some(isManifestFile)
      ? ""
      : ` (it has ${excerpt(first.path)}; manifests are *.yaml, *.yml and *.json)`;
  const reason = `holds no objects${other}; an empty rendering is never applied, delete the Sync to delete its objects`;
  return new ManifestError("EmptyRender", { file: path }, reason);
}

async function readDocuments(request: RenderRequest, renderers: Renderers): Promise<readonly ManifestDocument[]> {
  const { files, specialise = {} } = request;
  const base = await readBase(request, renderers, needsKustomize(specialise) ? "included" : "built");
  if (needsKustomize(specialise)) {
    const { kustomize } = renderers;
    return withNamespace(await kustomized(files, base, { specialise, kustomize }), specialise);
  }
  return withNamespace(base.documents ?? [], specialise);
}

/** @param kustomization - whether a folder that is one is built here, or included by the one that is made around it. */
async function readBase(
  request: RenderRequest,
  renderers: Renderers,
  kustomization: "included" | "built",
): Promise<Base> {
  const { files, path, render } = request;
  if (render?.helm !== undefined)
    return { documents: await renderChart({ files, path, release: render.helm }, renderers) };
  if (render?.plain !== undefined) return { documents: plainDocuments(files, { folder: path, without: [] }) };
  const byPath = new Map(files.map((file) => [file.path, file]));
  if (render === undefined && byPath.has(path === "." ? chartFile : `${path}/${chartFile}`))
    throw unforeseenChart(path);
  const isWhole = render?.kustomize !== undefined || kustomizationsOf(byPath, path).length > 0;
  if (isWhole && kustomization === "included") return { folder: path };
  const built = isWhole ? [path] : nestedKustomizations(files, path);
  const documents = isWhole ? [] : plainDocuments(files, { folder: path, without: built });
  for (const folder of built) {
    const output = await renderers.kustomize.build({ files, path: folder });
    documents.push(...parseManifests(output, `${folder} (as built by kustomize)`));
  }
  return { documents };
}

type Part = Parameters<typeof readPlainFiles>[1];

function plainDocuments(files: readonly TreeFile[], part: Part): ManifestDocument[] {
  refuseForeignFiles(files, part);
  return readPlainFiles(files, part);
}

/** Which chart it is has to be known before a cluster's own inputs are: a path with expressions is not looked into. */
function unforeseenChart(path: string): ManifestError {
  return new ManifestError(
    "ChartRefused",
    { file: path },
    "is a Helm chart that was not foreseen, because the template's path has expressions or the Source was read by an older version; say render: {helm: {}}",
  );
}
