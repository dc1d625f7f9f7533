/** What a folder of a repository is to Starling, told by the names of its files, before anything is written about it. */
import { type RenderedPath, renderPath } from "#shared/base/path-template.ts";
import { compareText } from "#shared/base/text-order.ts";
import { chartFile, chartFolders } from "#shared/source/helm/chart-folders.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** A cluster that the folder is to be applied to. */
export interface ShapeCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface FolderShape {
  /** As a template has it; with an expression where each ring or cluster has a folder of its own. */
  readonly path: string;
  readonly isChart: boolean;
  /** `a kustomization`, for people. */
  readonly description: string;
}

export interface ShapeQuestion {
  /** Of all files of the commit. */
  readonly paths: readonly string[];
  /** As it was given; may hold `{{ cluster.name }}` and its like. */
  readonly folder: string;
  readonly clusters: readonly ShapeCluster[];
  /** The commit and where it is, for what is said. */
  readonly where: string;
}

interface Question extends ShapeQuestion {
  /** The folders with a kustomization: a commit may have as many as files, and each is asked for. */
  readonly kustomized: ReadonlySet<string>;
}

const shownNames = 8;
const ringExpression = "{{ cluster.labels.ring }}";
const nameExpression = "{{ cluster.name }}";
/** Where people keep a folder for each environment: all of them at once are meant for no cluster. */
const overlayFolders = ["overlays", "environments", "envs", "clusters"];

/** @throws Error naming the flag, what there is, and what to give instead. */
export function shapeOf(asked: ShapeQuestion): FolderShape {
  const question = { ...asked, kustomized: kustomizedFolders(asked.paths) };
  const { folder, clusters } = question;
  if (!folder.includes("{{")) {
    const shape = shapeOfFolder(question, normalFolder(folder));
    // With the expressions of overlays it is no folder of the repository by itself.
    if (question.paths.some((path) => isWithin(path, [shape.path]))) requireNoExpression(folder, shape.path);
    return shape;
  }
  const shapes = clusters.map((cluster) => shapeOfFolder(question, renderedFor(cluster, folder)));
  const isChart = shapes.some((shape) => shape.isChart);
  if (isChart && !shapes.every((shape) => shape.isChart)) {
    throw new Error(`--path is ${folder}: a Helm chart for some clusters and none for others; give one of them`);
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
    throw new Error(`--path is ${question.folder}: a file; give its folder`);
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

/** Absent where it has none; a folder for each ring goes before one for each cluster. */
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
      `--path is ${given}: it has the overlays ${shown(found)}, and none for each of ${shown(known)}; give one of them: --path ${place}/${found[0]}`,
    );
  }
  return undefined;
}

/** A name of the repository is one: in a template, what is between braces would be looked up. */
function requireNoExpression(given: string, found: string): void {
  if (!/\{\{|\}\}/.test(found)) return;
  throw new Error(
    `--path is ${given}: its folder is called ${JSON.stringify(found)}, and {{ }} in a path is an expression; rename it in the repository`,
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
      `--path is ${given}: no manifest is in it (*.yaml, *.yml, *.json); it has ${namesBelow(paths, folder)}`,
    );
  }
  if (inside.length === 1 && manifests.length === 0) {
    return { path: chart, isChart: true, description: `a Helm chart, ${chart}/${chartFile}` };
  }
  const besides = manifests.length === 0 ? "" : ", and manifests besides";
  throw new Error(
    `--path is ${given}: it holds ${inside.length === 1 ? "the Helm chart" : "the Helm charts"} ${shown(inside)}${besides}; give one of them: --path ${chart}`,
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

/** Folders where there are some; else files. */
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
