/** Detects from file names what a folder of a repository contains, before documents for it exist. */
import { type RenderedPath, renderPath } from "#shared/base/path-template.ts";
import { compareText } from "#shared/base/text-order.ts";
import { chartFile, chartFolders } from "#shared/source/helm/chart-folders.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** A cluster that the folder should be applied to. */
export interface ShapeCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface FolderShape {
  /** The path for a template. It contains an expression if each ring or cluster has its own folder. */
  readonly path: string;
  readonly isChart: boolean;
  /** For people, for example `a kustomization`. */
  readonly description: string;
}

export interface ShapeQuestion {
  /** The paths of all files of the commit. */
  readonly paths: readonly string[];
  /** The given folder. It may contain expressions such as `{{ cluster.name }}`. */
  readonly folder: string;
  readonly clusters: readonly ShapeCluster[];
  /** The commit and its repository, for messages. */
  readonly where: string;
}

interface Question extends ShapeQuestion {
  /** The folders with a kustomization. The set makes lookups fast, because a commit may have many such folders. */
  readonly kustomized: ReadonlySet<string>;
}

const shownNames = 8;
const ringExpression = "{{ cluster.labels.ring }}";
const nameExpression = "{{ cluster.name }}";
/**
 * The usual names of folders that contain one folder per environment. To apply them all to one cluster is always a
 * mistake.
 */
const overlayFolders = ["overlays", "environments", "envs", "clusters"];

/** @throws Error that names the flag, the problem and what to give instead. */
export function shapeOf(asked: ShapeQuestion): FolderShape {
  const question = { ...asked, kustomized: kustomizedFolders(asked.paths) };
  const { folder, clusters } = question;
  if (!folder.includes("{{")) {
    const shape = shapeOfFolder(question, normalFolder(folder));
    // A path with the expressions of overlays is not a folder of the repository, so only real folders are checked.
    if (question.paths.some((path) => isWithin(path, [shape.path]))) requireNoExpression(folder, shape.path);
    return shape;
  }
  const shapes = clusters.map((cluster) => shapeOfFolder(question, renderedFor(cluster, folder)));
  const isChart = shapes.some((shape) => shape.isChart);
  if (isChart && !shapes.every((shape) => shape.isChart)) {
    throw new Error(
      `--path is ${folder}: it is a Helm chart for some clusters and not for others; give a path that is a chart for all clusters or for none`,
    );
  }
  return { path: folder, isChart, description: `a folder for each ${folder.includes("name") ? "cluster" : "ring"}` };
}

function renderedFor(cluster: ShapeCluster, folder: string): string {
  const rendered: RenderedPath = renderPath(folder, { ...cluster, values: {} });
  if (!rendered.ok) throw new Error(`--path is ${folder}: ${rendered.message}`);
  return normalFolder(rendered.path);
}

function shapeOfFolder(question: Question, folder: string): FolderShape {
  const { paths, kustomized, where } = question;
  const within = paths.filter((path) => isWithin(path, [folder]));
  if (within.length === 0) {
    throw new Error(`--path is ${question.folder}: ${where} has no folder ${folder}; it has ${namesBelow(paths, ".")}`);
  }
  if (within.length === 1 && within[0] === folder) {
    throw new Error(`--path is ${question.folder}: this is a file; give its folder`);
  }
  const charts = chartFolders(paths.map((path) => ({ path })));
  const around = charts.find((chart) => isWithin(folder, [chart]));
  if (around === folder) return { path: folder, isChart: true, description: "a Helm chart" };
  if (around !== undefined) {
    throw new Error(
      `--path is ${question.folder}: it is inside the Helm chart ${around}; give the chart: --path ${around}`,
    );
  }
  if (kustomized.has(folder)) return { path: folder, isChart: false, description: "a kustomization" };
  return overlaysOf(question, folder) ?? plainFolder(question, { folder, within, charts });
}

/** The overlays below a folder, if it has any. Overlays per ring win over overlays per cluster. */
function overlaysOf({ paths, kustomized, folder: given, clusters }: Question, folder: string): FolderShape | undefined {
  const inside = (name: string) => (folder === "." ? name : `${folder}/${name}`);
  const places = [folder, ...overlayFolders.map(inside)];
  for (const place of places) {
    const found = foldersBelow(paths, place).filter((name) =>
      kustomized.has(place === "." ? name : `${place}/${name}`),
    );
    const hasAll = (desired: readonly string[]) => desired.every((name) => found.includes(name));
    const at = (expression: string) => (place === "." ? expression : `${place}/${expression}`);
    const rings = clusters.map(({ labels }) => labels.ring ?? "");
    if (hasAll(rings)) return { path: at(ringExpression), isChart: false, description: "an overlay for each ring" };
    if (hasAll(clusters.map(({ name }) => name))) {
      return { path: at(nameExpression), isChart: false, description: "an overlay for each cluster" };
    }
    if (place === folder || found.length === 0) continue;
    const known = [...new Set([...rings.filter((ring) => ring !== ""), ...clusters.map(({ name }) => name)])];
    throw new Error(
      `--path is ${given}: it has the overlays ${shown(found)}, but not one for each of ${shown(known)}; give one of them: --path ${place}/${found[0]}`,
    );
  }
  return undefined;
}

/** The name of the folder contains braces, and a template would read them as an expression. */
function requireNoExpression(given: string, found: string): void {
  if (!/\{\{|\}\}/.test(found)) return;
  throw new Error(
    `--path is ${given}: the folder name ${JSON.stringify(found)} contains {{ }}, which marks an expression in a path; rename the folder in the repository`,
  );
}

interface Plain {
  readonly folder: string;
  readonly within: readonly string[];
  readonly charts: readonly string[];
}

function plainFolder({ paths, folder: given }: ShapeQuestion, { folder, within, charts }: Plain): FolderShape {
  const inside = charts.filter((chart) => isWithin(chart, [folder]));
  const manifests = within.filter((path) => /\.(yaml|yml|json)$/.test(path) && !isWithin(path, inside));
  const [chart] = inside;
  if (chart === undefined) {
    if (manifests.length > 0) return { path: folder, isChart: false, description: "manifests" };
    throw new Error(
      `--path is ${given}: it contains no manifest (*.yaml, *.yml, *.json); it has ${namesBelow(paths, folder)}`,
    );
  }
  if (inside.length === 1 && manifests.length === 0) {
    return { path: chart, isChart: true, description: `a Helm chart, ${chart}/${chartFile}` };
  }
  const besides = manifests.length === 0 ? "" : " and other manifests";
  throw new Error(
    `--path is ${given}: it contains ${inside.length === 1 ? "the Helm chart" : "the Helm charts"} ${shown(inside)}${besides}; give one of them: --path ${chart}`,
  );
}

function kustomizedFolders(paths: readonly string[]): ReadonlySet<string> {
  const folders = paths.flatMap((path) => {
    const slash = path.lastIndexOf("/");
    if (!kustomizationNames.some((name) => name === path.slice(slash + 1))) return [];
    return [slash < 0 ? "." : path.slice(0, slash)];
  });
  return new Set(folders);
}

function foldersBelow(paths: readonly string[], folder: string): string[] {
  const prefix = folder === "." ? "" : `${folder}/`;
  const names = paths
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length).split("/"))
    .flatMap(([name = "", ...rest]) => (rest.length > 0 ? [name] : []));
  return [...new Set(names)].sort(compareText);
}

/** The names of folders below a folder, or of files if it has no folders. */
function namesBelow(paths: readonly string[], folder: string): string {
  const folders = foldersBelow(paths, folder);
  if (folders.length > 0) return shown(folders);
  const prefix = folder === "." ? 0 : folder.length + 1;
  return shown(paths.filter((path) => isWithin(path, [folder])).map((path) => path.slice(prefix)));
}

function shown(names: readonly string[]): string {
  const more = names.length - shownNames;
  return names.slice(0, shownNames).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
