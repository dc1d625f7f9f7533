/**
 * Charts that a kustomization inflates (`helmCharts`). The chart must be in the artifact. It is rendered like the chart
 * of a template, and kustomize gets the objects as resources. kustomize itself would run any Helm that it finds, and
 * fetch missing charts.
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { dnsLabel } from "#shared/base/name-schema.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { maxReleaseName } from "#shared/source/helm/helm-options.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import {
  entriesOf,
  folded,
  type KustomizeScope,
  kustomizationRefused,
  requireFile,
  resolve,
} from "#shared/source/kustomize/kustomize-scope.ts";
import type { ManifestPlace } from "#shared/source/yaml/manifest-error.ts";

/** The limit of one kustomization. Each chart takes two runs of Helm. */
const maxCharts = 20;
/** The limit of one rendering. More charts could use up a function's time. */
const maxChartsInAll = 50;
/** A program's arguments are limited in length. */
const maxApiVersions = 200;
/** The folder in which kustomize looks for charts by default. */
const defaultHome = "charts";

/**
 * Fields without influence on the objects: where a chart would be fetched from, and Helm's output. Tests are left out
 * anyway.
 */
const idle = new Set(["repo", "version", "skiptests", "debug", "devel"]);
const known = new Set([
  ...idle,
  ...["name", "releasename", "namespace", "valuesfile", "valuesinline", "valuesmerge", "additionalvaluesfiles"],
  ...["includecrds", "skiphooks", "kubeversion", "apiversions"],
]);

/**
 *
 * @param globals - the kustomization's `helmGlobals`.
 * @throws ManifestError `KustomizationRefused` for a chart that is not in the artifact, and for a field that Starling
 * does not support.
 */
export function readCharts(
  scope: KustomizeScope,
  { field, value, globals }: { readonly field: string; readonly value: Json; readonly globals: Json | undefined },
): readonly InflatedChart[] {
  const charts = Array.isArray(value) ? value : [value];
  if (charts.length > maxCharts) {
    const reason = `has ${charts.length} charts, more than ${maxCharts}; render some of them by templates of their own`;
    throw kustomizationRefused({ file: scope.file, field }, reason);
  }
  requireFewCharts({ file: scope.file, field }, { own: charts.length, others: scope.charts.length });
  const home = homeOf(scope, globals);
  return charts.map((chart: Json, index) =>
    readChartEntry(scope, { home, index, field: `${field}[${index}]`, value: chart }),
  );
}

/** @throws ManifestError `KustomizationRefused` when these charts and those found before are too many. */
export function requireFewCharts(
  place: ManifestPlace,
  { own, others }: { readonly own: number; readonly others: number },
): void {
  const all = own + others;
  if (all <= maxChartsInAll) return;
  throw kustomizationRefused(
    place,
    `brings the charts in this template's kustomizations to ${all}, more than ${maxChartsInAll}; render some of them by templates of their own`,
  );
}

function homeOf(scope: KustomizeScope, globals: Json | undefined): string {
  const { charthome = defaultHome, ...others } = isJsonObject(globals) ? byFoldedKey(globals) : {};
  const [other] = Object.keys(others);
  const field = "helmGlobals";
  if (other !== undefined || typeof charthome !== "string")
    throw kustomizationRefused(
      { file: scope.file, field },
      "may have no other field than chartHome, a folder of the artifact",
    );
  return resolve(scope, { value: charthome, field: `${field}.chartHome` });
}

interface ChartEntry {
  readonly home: string;
  readonly index: number;
  readonly field: string;
  readonly value: Json;
}

function readChartEntry(scope: KustomizeScope, entry: ChartEntry): InflatedChart {
  const { field, value } = entry;
  const refuse = (member: string, reason: string): never => {
    throw kustomizationRefused({ file: scope.file, field: member === "" ? field : `${field}.${member}` }, reason);
  };
  if (!isJsonObject(value)) return refuse("", "is not a chart; write its name and releaseName");
  const chart = byFoldedKey(value);
  const unknown = Object.keys(chart).find((key) => !known.has(key));
  if (unknown !== undefined) return refuse("", `has the field ${unknown}, which Starling does not support; remove it`);
  const { name, releasename, namespace, includecrds, skiphooks, kubeversion, apiversions } = chart;
  if (typeof releasename !== "string" || releasename === "")
    return refuse("releaseName", "is required, because a name that Helm generates changes with each rendering");
  if (
    releasename.length > maxReleaseName ||
    !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(releasename)
  )
    refuse("releaseName", `must be 1 to ${maxReleaseName} characters of a-z, 0-9, - and ., as Helm requires`);
  if (typeof namespace === "string" && namespace !== "" && !dnsLabel.test(namespace))
    refuse("namespace", "must be the name of a namespace: at most 63 characters of a-z, 0-9 and -");
  if (
    kubeversion !== undefined &&
    kubeversion !== "" &&
    !/^v?\d{1,4}(\.\d{1,4}){1,2}([-+][\w.+-]{1,50})?$/.test(String(kubeversion))
  )
    refuse("kubeVersion", 'must be a version of Kubernetes in quotes, such as "1.31"');
  const texts = entriesOf(apiversions, `${field}.apiVersions`).map((text) => text.value);
  const wrong = texts.length > maxApiVersions || texts.some((text) => !/^[A-Za-z0-9./-]{1,300}$/.test(text));
  if (wrong) refuse("apiVersions", `may have at most ${maxApiVersions} API versions such as monitoring.coreos.com/v1`);
  const output = scope.folder === "." ? outputName(entry.index) : `${scope.folder}/${outputName(entry.index)}`;
  if (scope.files.has(output))
    refuse("", `needs the file name ${outputName(entry.index)}, which a file of the folder has; rename that file`);
  return {
    folder: folderOf(scope, entry, { name, version: chart.version, repo: chart.repo }),
    file: scope.file,
    field,
    output,
    release: {
      releaseName: releasename,
      namespace: typeof namespace === "string" && namespace !== "" ? namespace : "default",
      crds: includecrds === true ? "CreateReplace" : "Skip",
      lookup: "Refuse",
      hooks: skiphooks === true ? "Omit" : "Honor",
      ...(kubeversion === undefined || kubeversion === "" ? {} : { kubeVersion: String(kubeversion) }),
      ...(texts.length === 0 ? {} : { apiVersions: texts }),
      ...valuesOf(scope, { chart, field, refuse }),
    },
  };
}

/** The output lies in the kustomization's folder. A file of the artifact with this name is refused. */
export function outputName(index: number): string {
  return `.starling-chart-${index}.yaml`;
}

/** The chart's folder. kustomize puts a fetched chart into a folder whose name contains the version. */
function folderOf(
  scope: KustomizeScope,
  { home, field }: ChartEntry,
  { name, version, repo }: { readonly [Key in "name" | "version" | "repo"]?: Json | undefined },
): string {
  const where = { file: scope.file, field: `${field}.name` };
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name))
    throw kustomizationRefused(where, "is not the name of a chart");
  const inHome = (path: string) => (home === "." ? path : `${home}/${path}`);
  const fetched = repo === undefined || version === undefined ? [] : [inHome(`${name}-${String(version)}/${name}`)];
  const folders = [...fetched, inHome(name)];
  const found = folders.find((folder) => scope.files.has(`${folder}/${chartFile}`));
  if (found !== undefined) return found;
  throw kustomizationRefused(
    where,
    `${name} is not in ${folders.join(" or ")}, and Starling fetches nothing while it renders; commit the chart there, or set helmGlobals.chartHome`,
  );
}

interface ChartValues {
  readonly chart: Readonly<Record<string, Json | undefined>>;
  readonly field: string;
  readonly refuse: (member: string, reason: string) => never;
}

/** The precedence is kustomize's: `valuesInline` overrides `valuesFile`, and the additional files override both. */
function valuesOf(
  scope: KustomizeScope,
  { chart, field, refuse }: ChartValues,
): Pick<HelmRelease, "values" | "valuesFrom"> {
  const { valuesfile, valuesinline, valuesmerge = "override", additionalvaluesfiles } = chart;
  if (valuesmerge !== "override" && valuesmerge !== "replace")
    refuse(
      "valuesMerge",
      "must be override or replace; put the file that takes precedence last in additionalValuesFiles",
    );
  const own = valuesmerge === "replace" ? [] : entriesOf(valuesfile, `${field}.valuesFile`);
  const additional = entriesOf(additionalvaluesfiles, `${field}.additionalValuesFiles`);
  const hasInline = isJsonObject(valuesinline) && Object.keys(valuesinline).length > 0;
  if (hasInline && additional.length > 0)
    refuse(
      "additionalValuesFiles",
      "cannot be used together with valuesInline; put the inline values into a file, too",
    );
  const paths = [...own, ...additional].map((entry) => ({ path: requireFile(scope, entry), optional: false }));
  return {
    ...(paths.length === 0 ? {} : { valuesFrom: paths }),
    ...(hasInline ? { values: canonicalJson(valuesinline) } : {}),
  };
}

function byFoldedKey(map: JsonObject): Readonly<Record<string, Json | undefined>> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [folded(key), value]));
}
