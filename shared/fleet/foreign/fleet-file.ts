/**
 * A `fleet.yaml` of Fleet: the kind of a folder, and its differences by cluster. It names neither a repository nor
 * clusters.
 */
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
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
  if (textAt(helm, "repo") !== undefined || /^[a-z]+:\/\//.test(chart ?? "")) {
    return remarked(
      `${title}: this is not possible yet: its chart ${chart ?? ""} comes from a registry, and Starling reads charts of git repositories; commit it to one (helm pull --untar)`,
    );
  }
  const name = nameOf(folder === undefined || folder === "." ? "app" : (folder.split("/").at(-1) ?? "app"));
  const within = (below: string) => normalFolder(`${folder ?? "."}/${below}`);
  const kustomization = textAt(member(file, "kustomize"), "dir");
  const namespace = textAt(file, "namespace");
  const isChart = chart !== undefined || (holds === "chart" && kustomization === undefined);
  const isRefused = holds === "manifests" && chart === undefined && kustomization === undefined;
  const customized = listAt(file, "targetCustomizations").filter(isJsonObject);
  // Fleet uses the first match, Starling the last.
  const overrides = customized.toReversed().flatMap((one) => overrideOf(one, { helm, isChart, within }));
  const template = {
    name,
    source,
    path: within(kustomization ?? chart ?? "."),
    ...(namespace === undefined ? {} : { targetNamespace: namespace, createNamespace: {} }),
    ...defined({ render: isChart ? { helm: helmOf(helm, within) } : undefined }),
    apply: { defaultNamespace: textAt(file, "defaultNamespace") ?? namespace ?? "default" },
    ...(overrides.length === 0 ? {} : { overrides }),
  };
  const taken = ["namespace", "defaultNamespace", "helm", "kustomize", "targetCustomizations"];
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
  return checked({
    documents: [groupDocument({ name, namespace: "default", clusters: unknownCluster, templates: [template] })],
    remarks: [
      ...notCarried(title, left),
      ...(isRefused ? [`${title}: take the file out of its folder, which is refused with it`] : []),
      ...(overrides.length > 1
        ? [`${title}: where several overrides fit a cluster, all of them count; Fleet takes the first`]
        : []),
      `${title}: its repository stands in a GitRepo: write the name of its Source in place of ${source}`,
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

type Within = (below: string) => string;

function helmOf(helm: JsonObject, within: Within): JsonObject {
  const files = listAt(helm, "valuesFiles").filter((file) => typeof file === "string");
  return defined({
    releaseName: textAt(helm, "releaseName"),
    values: isJsonObject(helm.values) ? helm.values : undefined,
    valuesFrom: files.length === 0 ? undefined : files.map((file) => ({ path: within(file) })),
  });
}

function overrideOf(
  customization: JsonObject,
  { helm, isChart, within }: { readonly helm: JsonObject; readonly isChart: boolean; readonly within: Within },
): readonly JsonObject[] {
  const cluster = textAt(customization, "clusterName");
  const { clusterSelector } = customization;
  const clusters = cluster === undefined ? { selector: clusterSelector } : { names: [nameOf(cluster)] };
  if (cluster === undefined && !isJsonObject(clusterSelector)) return [];
  const folder = textAt(member(customization, "kustomize"), "dir");
  const own = member(customization, "helm");
  const values = merged(member(helm, "values"), member(own, "values"));
  const render = isChart && "helm" in customization ? { helm: helmOf({ ...helm, ...own, values }, within) } : undefined;
  if (folder === undefined && render === undefined) return [];
  return [{ clusters, ...defined({ path: folder === undefined ? undefined : within(folder), render }) }];
}

function merged(base: JsonObject, over: JsonObject): JsonObject {
  const both = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isJsonObject(below) && isJsonObject(value) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(both) };
}
