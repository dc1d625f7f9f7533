/**
 * A `fleet.yaml` of Fleet: the kind of a folder, and its differences by cluster. It names neither a repository nor
 * clusters.
 */
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { chartInRegistry, helmUpstream, sourceManifest } from "#shared/fleet/foreign/foreign-source.ts";
import {
  checked,
  groupDocument,
  leftOver,
  member,
  nameOf,
  notCarried,
  remarked,
  type Said,
  unknownCluster,
  whichClusters,
} from "#shared/fleet/foreign/translation.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";

const source = "name-of-the-source";

export interface FleetFolder {
  /** Path from the root of its repository; absent when unknown. */
  readonly folder: string | undefined;
  /** The kind of the files beside it. */
  readonly holds: "chart" | "kustomization" | "manifests";
}

export function fleetFileSaid(value: Json, { folder, holds }: FleetFolder): Said {
  const file = isJsonObject(value) ? value : {};
  const title = folder === undefined || folder === "." ? "fleet.yaml" : `${folder}/fleet.yaml`;
  const helm = member(file, "helm");
  const chart = textAt(helm, "chart");
  const published = chartOutside(helm);
  if (published === "file") {
    return remarked(
      `${title}: its chart is a file: write a Source with spec.archive.url: ${chart} and its checksum as spec.archive.sha256 (curl -L ${chart} | sha256sum), and a template with the chart's folder in it as path`,
    );
  }
  const name = nameOf(folder === undefined || folder === "." ? "app" : (folder.split("/").at(-1) ?? "app"));
  const within = (below: string) => normalFolder(`${folder ?? "."}/${below}`);
  const places = { within, filesOf: published === undefined ? {} : { source } };
  const kustomization = textAt(member(file, "kustomize"), "dir");
  const namespace = textAt(file, "namespace");
  const chartName = nameOf(`${name}-chart`);
  const isChart = chart !== undefined || published !== undefined || (holds === "chart" && kustomization === undefined);
  const isRefused = holds === "manifests" && chart === undefined && kustomization === undefined;
  const customized = listAt(file, "targetCustomizations").filter(isJsonObject);
  // Fleet uses the first match, Starling the last.
  const overrides = customized.toReversed().flatMap((one) => overrideOf(one, { helm, isChart, places }));
  const template = {
    name,
    source: published === undefined ? source : chartName,
    path: published === undefined ? within(kustomization ?? chart ?? ".") : ".",
    ...(namespace === undefined ? {} : { targetNamespace: namespace, createNamespace: {} }),
    ...defined({ render: isChart ? { helm: helmOf(helm, places) } : undefined }),
    apply: { defaultNamespace: textAt(file, "defaultNamespace") ?? namespace ?? "default" },
    ...(overrides.length === 0 ? {} : { overrides }),
  };
  const taken = ["namespace", "defaultNamespace", "helm", "targetCustomizations"];
  if (published === undefined) taken.push("kustomize");
  const left = [
    ...leftOver(file, "fleet.yaml", taken).map((field) => field.replace("fleet.yaml.", "")),
    ...leftOver(helm, "helm", isChart ? [...withoutEffect, ...ofCharts] : withoutEffect),
    ...customized.flatMap((one, index) => {
      const where = `targetCustomizations[${index}]`;
      const taken = ["name", "clusterSelector", "clusterName", "kustomize", ...(isChart ? ["helm"] : [])];
      return [
        ...leftOver(one, where, taken),
        ...(isChart ? leftOver(member(one, "helm"), `${where}.helm`, ["releaseName", ...ofCharts]) : []),
      ];
    }),
  ];
  const sources =
    published === undefined ? [] : [sourceManifest({ name: chartName, namespace: "default", upstream: published })];
  return checked({
    documents: [
      ...sources,
      groupDocument({ name, namespace: "default", clusters: unknownCluster, templates: [template] }),
    ],
    remarks: [
      ...notCarried(title, left),
      ...(isRefused ? [`${title}: take the file out of its folder, which is refused with it`] : []),
      ...(overrides.length > 1
        ? [`${title}: where several overrides fit a cluster, all of them count; Fleet takes the first`]
        : []),
      ...(published === undefined || valuesFilesOf(helm).length > 0
        ? [`${title}: its repository stands in a GitRepo: write the name of its Source in place of ${source}`]
        : []),
      `${title}: ${whichClusters}`,
    ],
  });
}

/** Fields of `helm` that are set elsewhere, or that only concern Fleet's calls of Helm. */
const withoutEffect = ["chart", "repo", "releaseName", "version", "force", "timeoutSeconds"];
const ofCharts = ["values", "valuesFiles"];

/** Fleet writes every field it knows, and an empty text means absent. */
function textAt(object: JsonObject, name: string): string | undefined {
  const text = stringAt(object, name);
  return text === "" ? undefined : text;
}

/**
 * A chart may come from outside of the repository. @returns `file` for an archive at an address of its own,
 * undefined for a chart in the repository.
 */
function chartOutside(helm: JsonObject): JsonObject | "file" | undefined {
  const [chart, repository, version] = ["chart", "repo", "version"].map((name) => textAt(helm, name));
  if (repository !== undefined) return helmUpstream(repository.replace(/^http:/, "https:"), chart ?? "", version);
  if (chart === undefined || !/^[a-z]+:\/\//.test(chart)) return undefined;
  if (!chart.startsWith("oci:")) return "file";
  const inRegistry = chartInRegistry(chart);
  return helmUpstream(inRegistry.url, inRegistry.chart, version);
}

function valuesFilesOf(helm: JsonObject): readonly string[] {
  return listAt(helm, "valuesFiles").filter((file) => typeof file === "string");
}

interface Within {
  /** The path from the root of the repository. */
  readonly within: (below: string) => string;
  /** The Source with the repository, when the template takes from another one. */
  readonly filesOf: { readonly source?: string };
}

function helmOf(helm: JsonObject, { within, filesOf }: Within): JsonObject {
  const files = valuesFilesOf(helm);
  return defined({
    releaseName: textAt(helm, "releaseName"),
    values: isJsonObject(helm.values) ? helm.values : undefined,
    valuesFrom: files.length === 0 ? undefined : files.map((file) => ({ ...filesOf, path: within(file) })),
  });
}

function overrideOf(
  customization: JsonObject,
  { helm, isChart, places }: { readonly helm: JsonObject; readonly isChart: boolean; readonly places: Within },
): readonly JsonObject[] {
  const cluster = textAt(customization, "clusterName");
  const { clusterSelector } = customization;
  const clusters = cluster === undefined ? { selector: clusterSelector } : { names: [nameOf(cluster)] };
  if (cluster === undefined && !isJsonObject(clusterSelector)) return [];
  const folder = textAt(member(customization, "kustomize"), "dir");
  const own = member(customization, "helm");
  const values = merged(member(helm, "values"), member(own, "values"));
  const render = isChart && "helm" in customization ? { helm: helmOf({ ...helm, ...own, values }, places) } : undefined;
  if (folder === undefined && render === undefined) return [];
  return [{ clusters, ...defined({ path: folder === undefined ? undefined : places.within(folder), render }) }];
}

function merged(base: JsonObject, over: JsonObject): JsonObject {
  const both = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isJsonObject(below) && isJsonObject(value) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(both) };
}
