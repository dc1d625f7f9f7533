/**
 * Checks a chart before Helm renders it. A chart consists of files of the artifact, and nothing is fetched. Helm itself
 * would fetch the URLs that a schema of values refers to, follow links, and answer `lookup` with nothing.
 */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { fixedFunctions } from "#shared/source/helm/fixed-functions.ts";
import { callsIn, type TemplateCall } from "#shared/source/helm/template-calls.ts";
import { checkValuesSchema } from "#shared/source/helm/values-schema.ts";
import { ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

export interface Chart {
  /** The name in Chart.yaml, with which Helm's paths of files begin. */
  readonly name: string;
  /** The folder inside the artifact. */
  readonly folder: string;
  /** Relative to the chart. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The templates that call functions whose result changes from rendering to rendering. */
  readonly watched: readonly WatchedTemplate[];
}

export interface WatchedTemplate {
  readonly path: string;
  /** The path that Helm shows: it contains the name of a dependency, not the name of its folder. */
  readonly helmPath: string;
  readonly calls: readonly TemplateCall[];
}

const valuesFile = "values.yaml";
/** Templates of the chart itself and of the charts it depends on. */
const templates = /^(?:charts\/[^/]+\/)*templates\//;
const schemas = /^(?:charts\/[^/]+\/)*values\.schema\.json$/;
const charts = /^(?:charts\/[^/]+\/)*Chart\.yaml$/;
/** A rendering must not depend on the live cluster, on the time, or on chance. */
const watchedFunctions: ReadonlySet<string> = new Set(["lookup", ...fixedFunctions("first").keys()]);

/**
 *
 * @param files - relative to the chart, with packed dependencies unpacked in their place.
 * @throws ManifestError `ChartRefused` with file, field and remedy for a folder that is not a chart, for a dependency
 * that is not vendored, and for a schema of values that refers to another file or URL.
 */
export function readChart(folder: string, files: ReadonlyMap<string, Uint8Array>): Chart {
  const { name } = readChartFile(folder, files, chartFile);
  requireValues(folder, files);
  const watched: WatchedTemplate[] = [];
  for (const [path, content] of files) {
    if (charts.test(path)) checkDependencies(folder, files, path);
    else if (schemas.test(path)) checkValuesSchema(at(folder, path), content);
    else if (templates.test(path)) {
      const calls = callsIn(bytesAsText(content), watchedFunctions);
      if (calls.length > 0) watched.push({ path, helmPath: helmPath(folder, files, path), calls });
    }
  }
  return { name, folder, files, watched };
}

interface ChartFile {
  readonly name: string;
  readonly dependencies: readonly Json[];
}

function readChartFile(folder: string, files: ReadonlyMap<string, Uint8Array>, path: string): ChartFile {
  const file = at(folder, path);
  const value = mapIn(files, folder, path);
  if (value === undefined) {
    throw chartRefused(
      { file: folder },
      `is not a Helm chart, because it has no ${chartFile}; correct the template's path`,
    );
  }
  const { name, type, version, dependencies } = value;
  if (typeof name !== "string" || name === "")
    throw chartRefused({ file, field: "name" }, "is missing; give the chart a name");
  if (version === undefined || version === null || version === "")
    throw chartRefused({ file, field: "version" }, "is missing; give the chart a version, such as 1.0.0");
  if (type === "library" && path === chartFile) {
    throw chartRefused(
      { file, field: "type" },
      "is library; a library chart has no objects: set the path of a chart that uses it",
    );
  }
  return { name, dependencies: Array.isArray(dependencies) ? dependencies : [] };
}

function mapIn(files: ReadonlyMap<string, Uint8Array>, folder: string, path: string): JsonObject | undefined {
  const content = files.get(path);
  if (content === undefined) return undefined;
  const file = at(folder, path);
  const [first] = parseDocuments(new TextDecoder().decode(content), file);
  if (!isJsonObject(first?.value)) throw chartRefused({ file }, "must be a map of keys and values");
  return first.value;
}

function requireValues(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  const content = files.get(valuesFile);
  if (content === undefined) return;
  const file = at(folder, valuesFile);
  const [first] = parseDocuments(new TextDecoder().decode(content), file, { twice: "last counts" });
  if (first === undefined || isJsonObject(first.value)) return;
  throw new ManifestError("InvalidValues", { file, line: first.line }, "values must be a map, such as `replicas: 2`");
}

/** Checks one chart: the outermost one or a dependency. Helm requires dependencies that a condition disables, too. */
function checkDependencies(folder: string, files: ReadonlyMap<string, Uint8Array>, path: string): void {
  const base = path.slice(0, -chartFile.length);
  const { dependencies } = readChartFile(folder, files, path);
  const old = `${base}requirements.yaml`;
  const listed = mapIn(files, folder, old)?.dependencies;
  checkVendored({ folder, files, base, file: at(folder, path) }, dependencies);
  if (Array.isArray(listed)) checkVendored({ folder, files, base, file: at(folder, old) }, listed);
}

interface Dependencies {
  readonly folder: string;
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The folder of the chart that lists them, such as `charts/a/`. */
  readonly base: string;
  readonly file: string;
}

function checkVendored({ folder, files, base, file }: Dependencies, dependencies: readonly Json[]): void {
  if (dependencies.length === 0) return;
  const vendored = new Set(vendoredCharts(folder, files, base));
  for (const [index, dependency] of dependencies.entries()) {
    const { name, version = "", repository = "" } = isJsonObject(dependency) ? dependency : {};
    if (typeof name !== "string" || vendored.has(name)) continue;
    const from = repository === "" ? "" : ` from ${String(repository).slice(0, 200)}`;
    throw chartRefused(
      { file, field: `dependencies[${index}]` },
      `${name} ${String(version).slice(0, 60)}${from} is not in ${at(folder, `${base}charts`)}, and Starling fetches nothing while it renders; run \`helm dependency build ${quoted(at(folder, base.slice(0, -1)))}\` and commit the files that it creates there`.replace(
        "  ",
        " ",
      ),
    );
  }
}

/** The names of the charts in `charts/`. */
function vendoredCharts(folder: string, files: ReadonlyMap<string, Uint8Array>, base: string): readonly string[] {
  const below = new RegExp(`^[^/._][^/]*/${chartFile.replace(".", "\\.")}$`);
  const start = `${base}charts/`;
  return [...files.keys()]
    .filter((path) => path.startsWith(start) && below.test(path.slice(start.length)))
    .map((path) => String(mapIn(files, folder, path)?.name));
}

function helmPath(folder: string, files: ReadonlyMap<string, Uint8Array>, path: string): string {
  let result = "";
  let base = "";
  for (const [part, dependency] of path.matchAll(/(?<=^|\/)charts\/([^/]+)\//g)) {
    // Inside `templates/`, a folder `charts` is an ordinary folder.
    if (!path.startsWith(part, base.length)) break;
    base += part;
    result += `charts/${mapIn(files, folder, `${base}${chartFile}`)?.name ?? dependency}/`;
  }
  return result + path.slice(base.length);
}

/** Whether the file is a template of the chart or of a dependency, including helpers and `NOTES.txt`. */
export function isTemplate(path: string): boolean {
  return templates.test(path);
}

/** Whether the chart has a template under this path of Helm's. */
export function hasTemplate(
  { name, folder, files }: Pick<Chart, "name" | "folder" | "files">,
  helmFile: string,
): boolean {
  if (!helmFile.startsWith(`${name}/`)) return false;
  const called = helmFile.slice(name.length + 1);
  if (files.has(called)) return true;
  const last = called.slice(called.lastIndexOf("/"));
  return [...files.keys()].some(
    (path) => path.endsWith(last) && templates.test(path) && helmPath(folder, files, path) === called,
  );
}

/** One character for each byte, so that bytes that are not text survive the conversion. */
export function bytesAsText(content: Uint8Array): string {
  return Buffer.from(content.buffer, content.byteOffset, content.length).toString("latin1");
}

/** The path of a chart's file in the artifact. */
export function at(folder: string, path: string): string {
  if (path === "") return folder;
  return folder === "." ? path : `${folder}/${path}`;
}

export function chartRefused(place: ManifestPlace, reason: string): ManifestError {
  return new ManifestError("ChartRefused", place, reason);
}
