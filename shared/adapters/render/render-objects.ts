import { renderChart } from "#shared/adapters/render/render-chart.ts";
import { changesOf, kustomized, withNamespace } from "#shared/adapters/render/specialise-documents.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { HelmRunner, KustomizeRunner, RenderInput, TreeFile } from "#shared/ports.ts";
import { refuseForeignFiles } from "#shared/source/foreign-files.ts";
import { foreignKindsIn } from "#shared/source/foreign-kinds-in.ts";
import { type ByEvent, withHooksOfBoth } from "#shared/source/helm/both-events.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import { componentAlone, isComponent, kustomizationsOf } from "#shared/source/kustomization.ts";
import { type Base, needsKustomize } from "#shared/source/kustomize/generated-kustomization.ts";
import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import { requireFewCharts } from "#shared/source/kustomize/inflated-charts.ts";
import { type Manifest, readManifests } from "#shared/source/manifests.ts";
import { readMarks } from "#shared/source/object-marks.ts";
import { isManifestFile, nestedKustomizations, readPlainFiles } from "#shared/source/plain-files.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import { requireOrder } from "#shared/source/require-order.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface RenderRequest {
  readonly files: readonly TreeFile[];
  /** Files of other artifacts from which only values are read, by digest. */
  readonly others?: ReadonlyMap<string, readonly TreeFile[]>;
  /** The folder inside the artifact. */
  readonly path: string;
  /** Default: kustomize when the folder has a kustomization file, otherwise plain. */
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
}

/** The programs that process content of a repository. */
export interface Renderers {
  readonly kustomize: KustomizeRunner;
  readonly helm: HelmRunner;
}

export interface RenderedObjects {
  /** The objects of an install. */
  readonly objects: readonly ManifestObject[];
  /** The objects of every later apply; the same list when nothing differs. */
  readonly upgrade: readonly ManifestObject[];
  /** Sentences about everything that was left out, and about marks that are not followed. */
  readonly leftOut: readonly string[];
}

/**
 * The objects of a folder, checked, normalised and sorted by identity. The same files give the same objects on any
 * machine. Without `render` in the template, folders below that have a kustomization are built and added, as in Flux.
 * `plain` reads every file and builds nothing.
 * @throws ManifestError for a problem of the files, `EmptyRender` when the result is empty; StarlingError
 * `KustomizeFailed`, `HelmFailed`.
 */
export async function renderObjects(request: RenderRequest, renderers: Renderers): Promise<RenderedObjects> {
  const path = normalFolder(request.path);
  if (!request.files.some((file) => isWithin(file.path, [path]) && file.path !== path))
    throw noFolder(path, request.files);
  const asked = { ...request, path };
  const base = await readBase(asked, renderers, needsKustomize(request.specialise ?? {}) ? "included" : "built");
  const install = await manifestsOf(asked, base.install, renderers);
  const upgrade = base.upgrade === base.install ? install : await manifestsOf(asked, base.upgrade, renderers);
  const manifests = withHooksOfBoth({ install: install.manifests, upgrade: upgrade.manifests });
  requireOrder(manifests);
  const objects = manifests.install.map(({ object }) => object);
  return {
    objects,
    upgrade: manifests.upgrade === manifests.install ? objects : manifests.upgrade.map(({ object }) => object),
    leftOut: [...new Set([...install.leftOut, ...upgrade.leftOut])],
  };
}

const mostFolders = 8;

function noFolder(path: string, files: readonly TreeFile[]): ManifestError {
  if (files.some((file) => file.path === path)) {
    const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".";
    return new ManifestError("EmptyRender", { file: path }, `is a file; set the path of a folder, such as ${folder}`);
  }
  const folders = [...new Set(files.flatMap((file) => /^[^/]+(?=\/)/.exec(file.path) ?? []))].sort(compareText);
  const more = folders.length > mostFolders ? ` and ${folders.length - mostFolders} more` : "";
  const has =
    folders.length === 0
      ? "no folders"
      : folders
          .slice(0, mostFolders)
          .map((name) => excerpt(name))
          .join(", ");
  const reason = `is not a folder of the artifact, which has ${has}${more}; check the template's path and the Source's spec.paths`;
  return new ManifestError("EmptyRender", { file: path }, reason);
}

interface ReadManifests {
  readonly manifests: readonly Manifest[];
  readonly leftOut: readonly string[];
}

/** @throws ManifestError, also `EmptyRender`. */
async function manifestsOf(request: RenderRequest, base: Base, renderers: Renderers): Promise<ReadManifests> {
  const { files, path, specialise = {}, render } = request;
  const { kustomize } = renderers;
  const documents = needsKustomize(specialise)
    ? await kustomized(files, base, {
        specialise,
        kustomize: { build: (input) => kustomize.build(withCharts(input, renderers)) },
      })
    : (base.documents ?? []);
  const sifted = siftHooks(withNamespace(documents, specialise), render?.helm?.hooks ?? "Honor");
  const manifests = readManifests(sifted.documents, changesOf(specialise));
  if (manifests.length === 0) throw emptyRender(path, files);
  const remarks = (base.documents ?? []).flatMap(({ remark }) => remark ?? []);
  return { manifests, leftOut: [...remarks, ...sifted.leftOut, ...foreignKindsIn(manifests), ...readMarks(manifests)] };
}

function emptyRender(path: string, files: readonly TreeFile[]): ManifestError {
  const inside = files.filter((file) => isWithin(file.path, [path]));
  const [first] = inside;
  const other =
    first === undefined || inside.some(isManifestFile)
      ? ""
      : ` (it has ${excerpt(first.path)}; manifests are *.yaml, *.yml and *.json)`;
  const jsonnet = inside.some((file) => /\.(jsonnet|libsonnet)$/.test(file.path)) && other !== "";
  const instead = jsonnet ? "; Starling does not run Jsonnet: commit the manifests that it generates" : "";
  const component = isComponent(new Map(files.map((file) => [file.path, file])), path) ? `; ${componentAlone}` : "";
  const reason = `contains no objects${other}${instead}${component}; Starling never applies an empty rendering: delete the Sync to delete its objects`;
  return new ManifestError("EmptyRender", { file: path }, reason);
}

/**
 * @param kustomization - whether a folder with a kustomization is built here, or included by the generated
 * kustomization around it.
 */
async function readBase(
  request: RenderRequest,
  renderers: Renderers,
  kustomization: "included" | "built",
): Promise<ByEvent<Base>> {
  const { files, path, render, others } = request;
  if (render?.helm !== undefined) {
    const chart = { files, path, release: render.helm, ...defined({ others }) };
    const { install, upgrade } = await renderChart(chart, renderers);
    const first = { documents: install };
    return { install: first, upgrade: upgrade === install ? first : { documents: upgrade } };
  }
  if (render?.plain !== undefined) return alike({ documents: plainDocuments(files, { folder: path, without: [] }) });
  const byPath = new Map(files.map((file) => [file.path, file]));
  if (render === undefined && byPath.has(path === "." ? chartFile : `${path}/${chartFile}`))
    throw unforeseenChart(path);
  const isWhole = render?.kustomize !== undefined || kustomizationsOf(byPath, path).length > 0;
  if (isWhole && kustomization === "included") return alike({ folder: path });
  const built = isWhole ? [path] : nestedKustomizations(files, path);
  const documents = isWhole ? [] : plainDocuments(files, { folder: path, without: built });
  const charts = { rendered: 0 };
  for (const folder of built) {
    const output = await renderers.kustomize.build(withCharts({ files, path: folder }, renderers, charts));
    documents.push(...parseManifests(output, `${folder} (as built by kustomize)`));
  }
  return alike({ documents });
}

/**
 * Adds the renderer of charts to the input. A chart is rendered as that of a template would be, but not separately for
 * installs and upgrades.
 * @param charts - counts the charts of earlier builds, too.
 */
function withCharts(
  input: Pick<RenderInput, "files" | "path">,
  renderers: Renderers,
  charts = { rendered: 0 },
): RenderInput {
  const inflate = async ({ folder, release, file, field }: InflatedChart) => {
    requireFewCharts({ file, field }, { own: 1, others: charts.rendered });
    charts.rendered += 1;
    const { install, upgrade } = await renderChart({ files: input.files, path: folder, release }, renderers);
    if (install !== upgrade) {
      const reason =
        "differs between an install and an upgrade, which a kustomization does not support; render it by a template of its own";
      throw new ManifestError("KustomizationRefused", { file, field }, reason);
    }
    const { documents } = siftHooks(install, release.hooks);
    return documents.map(({ object }) => jsonAsYaml(object)).join("\n---\n");
  };
  return { ...input, inflate };
}

function alike<T>(both: T): ByEvent<T> {
  return { install: both, upgrade: both };
}

type Part = Parameters<typeof readPlainFiles>[1];

function plainDocuments(files: readonly TreeFile[], part: Part): ManifestDocument[] {
  refuseForeignFiles(files, part);
  return readPlainFiles(files, part);
}

/** The chart must be known before a cluster's own inputs are. A path with expressions is not searched for charts. */
function unforeseenChart(path: string): ManifestError {
  return new ManifestError(
    "ChartRefused",
    { file: path },
    "is a Helm chart that was not expected, because the template's path has expressions or an older version of Starling read the Source; set render: {helm: {}}",
  );
}
