/** Argo CD: an Application is one template on one cluster. */
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import {
  type FoldersOf,
  folderOf,
  gitRefFrom,
  groupDocument,
  httpsUrl,
  leftOver,
  member,
  nameOf,
  namesOf,
  notCarried,
  remarked,
  type Said,
  sourceManifest,
  titleOf,
  unknownCluster,
  whichClusters,
  withFitting,
} from "#shared/fleet/foreign/translation.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

export function applicationSaid(object: Json, foldersOf: FoldersOf): Said {
  const { name, namespace } = namesOf(object);
  const title = titleOf(object);
  const spec = member(object, "spec");
  const made = templatesOf(spec, { title, name, namespace, foldersOf });
  const cluster = stringAt(spec, "destination", "name");
  const isNamed = cluster !== undefined && cluster !== "in-cluster";
  const clusters = isNamed ? { names: [nameOf(cluster)] } : unknownCluster;
  const { templates, sources, remarks } = made;
  if (templates.length === 0) return remarked(...remarks);
  return {
    documents: [...sources, groupDocument({ name, namespace, clusters, templates })],
    remarks: [...remarks, ...(isNamed ? [] : [`${title}: ${whichClusters}`])],
  };
}

export interface DesiredApplication {
  readonly title: string;
  /** Name of the template. */
  readonly name: string;
  readonly namespace: string;
  readonly foldersOf: FoldersOf;
}

export interface ApplicationTemplates {
  readonly templates: readonly JsonObject[];
  readonly sources: readonly JsonObject[];
  readonly remarks: readonly string[];
}

/** A template for each source of an Application's spec. */
export function templatesOf(spec: JsonObject, desired: DesiredApplication): ApplicationTemplates {
  const several = listAt(spec, "sources").filter(isJsonObject);
  const sources = several.length > 0 ? several : [member(spec, "source")];
  const made = sources.map((source, index) =>
    templateOf(spec, source, {
      ...desired,
      name: sources.length === 1 ? desired.name : nameOf(`${desired.name}-${index + 1}`),
    }),
  );
  const policy = member(spec, "syncPolicy");
  const left = [
    ...leftOver(spec, "spec", ["source", "sources", "destination", "syncPolicy", "project"]),
    ...leftOver(policy, "spec.syncPolicy", ["automated", "syncOptions"]),
    ...optionsOf(spec)
      .filter((option) => option !== "CreateNamespace=true")
      .map((option) => `spec.syncPolicy.syncOptions ${option}`),
  ];
  return {
    templates: made.flatMap(({ templates }) => templates),
    sources: made.flatMap((one) => one.sources),
    remarks: [...made.flatMap(({ remarks }) => remarks), ...notCarried(desired.title, left)],
  };
}

function optionsOf(spec: JsonObject): readonly string[] {
  return listAt(spec, "syncPolicy", "syncOptions").filter((option) => typeof option === "string");
}

function templateOf(spec: JsonObject, source: JsonObject, desired: DesiredApplication): ApplicationTemplates {
  const { title, name, namespace, foldersOf } = desired;
  const none = (remark: string) => ({ templates: [], sources: [], remarks: [`${title}: ${remark}`] });
  const given = stringAt(source, "repoURL") ?? "";
  const chart = stringAt(source, "chart");
  if (chart !== undefined) {
    return none(
      `this is not possible yet: the chart ${chart} comes from a chart repository, and Starling reads charts of git repositories; commit the chart to one (helm pull --untar), and write a template with its folder as path and render.helm.values`,
    );
  }
  const url = httpsUrl(given);
  if (url === undefined) return none("its repoURL is no address of a git repository that is fetched by https");
  const { path, problem } = folderOf(stringAt(source, "path") ?? ".", foldersOf(url));
  if (problem !== undefined) return none(problem);
  const revision = stringAt(source, "targetRevision");
  const ref = gitRefFrom(revision);
  const repository =
    url
      .replace(/\.git$/, "")
      .split("/")
      .at(-1) ?? "source";
  const sourceName = nameOf(ref === undefined ? repository : `${repository}-${revision}`);
  const helm = helmOf(source);
  const kustomize = member(source, "kustomize");
  const base = {
    name,
    source: sourceName,
    path,
    ...placeOf(spec, helm !== undefined),
    ...defined({ render: helm && { helm: helm.options } }),
  };
  const images = listAt(kustomize, "images").flatMap((image) => (typeof image === "string" ? imageOf(image) : []));
  const { template, left } = withFitting(base, {
    namePrefix: kustomize.namePrefix,
    nameSuffix: kustomize.nameSuffix,
    images: images.length === 0 ? undefined : images,
    patches: kustomize.patches,
    components: kustomize.components,
  });
  const lost = [
    ...leftOver(source, "spec.source", ["repoURL", "targetRevision", "path", "helm", "kustomize", "directory"]),
    ...leftOver(kustomize, "spec.source.kustomize", ["namePrefix", "nameSuffix", "images", "patches", "components"]),
    ...leftOver(member(source, "directory"), "spec.source.directory", ["recurse"]),
    ...left.map((field) => `spec.source.kustomize.${field}`),
    ...(helm?.left ?? []),
  ];
  return {
    templates: [template],
    sources: [sourceManifest({ name: sourceName, namespace, url, ref })],
    remarks: [
      ...notCarried(title, lost),
      ...("targetNamespace" in base
        ? [`${title}: targetNamespace also moves objects that name another namespace, which Argo CD leaves there`]
        : []),
      ...subfoldersOf(source, { path, folders: foldersOf(url) }).map(
        (folder) => `${title}: manifests in ${folder} are rendered as well, which Argo CD leaves out`,
      ),
    ],
  };
}

/** The first subfolder of a folder of manifests: Argo CD reads no subfolders there. */
function subfoldersOf(
  source: JsonObject,
  { path, folders = [] }: { readonly path: string; readonly folders?: readonly string[] | undefined },
): readonly string[] {
  const isOther = isJsonObject(source.helm) || isJsonObject(source.kustomize);
  if (isOther || member(source, "directory").recurse === true) return [];
  const below = folders.filter((folder) => folder !== "." && isWithin(folder, [path]) && folder !== path);
  // Every chart has this folder.
  return below.includes(normalFolder(`${path}/templates`)) ? [] : below.slice(0, 1);
}

/** The destination of its objects, and the handling of removed and changed ones. */
function placeOf(spec: JsonObject, isChart: boolean): JsonObject {
  const automated = member(member(spec, "syncPolicy"), "automated");
  const namespace = stringAt(spec, "destination", "namespace");
  const isExpression = namespace?.includes("{{") === true;
  const isMade = optionsOf(spec).includes("CreateNamespace=true");
  const target = namespace !== undefined && (isMade || isExpression) ? { targetNamespace: namespace } : {};
  const apply = defined({
    prune: automated.prune === true,
    drift: automated.selfHeal === true ? undefined : "report",
    defaultNamespace: isExpression
      ? isChart
        ? "default"
        : undefined
      : (namespace ?? (isChart ? "default" : undefined)),
  });
  return { ...target, ...(isMade && namespace !== undefined ? { createNamespace: {} } : {}), apply };
}

function imageOf(text: string): readonly JsonObject[] {
  const [, name, newName, newTag, digest] = /^(?:([^=]+)=)?([^@]+?)(?::([^:/@]+))?(?:@(.+))?$/.exec(text) ?? [];
  if (newName === undefined) return [];
  return [defined({ name: name ?? newName, newName: name === undefined ? undefined : newName, newTag, digest })];
}

function helmOf(source: JsonObject): { readonly options: JsonObject; readonly left: readonly string[] } | undefined {
  if (!isJsonObject(source.helm)) return undefined;
  const { helm } = source;
  const path = stringAt(source, "path") ?? ".";
  const files = listAt(helm, "valueFiles").filter((file) => typeof file === "string");
  const own = files.filter((file) => !/^(\$|https?:|\/)|\.\./.test(file));
  const text = stringAt(helm, "values");
  const parsed = text === undefined ? undefined : valuesIn(text);
  const values = { ...parsed, ...member(helm, "valuesObject") };
  const parameters = listAt(helm, "parameters").filter(isJsonObject);
  const options = defined({
    releaseName: stringAt(helm, "releaseName"),
    values: Object.keys(values).length === 0 ? undefined : values,
    valuesFrom: own.length === 0 ? undefined : own.map((file) => ({ path: path === "." ? file : `${path}/${file}` })),
  });
  return {
    options,
    left: [
      ...leftOver(helm, "spec.source.helm", [
        "releaseName",
        "values",
        "valuesObject",
        "valueFiles",
        "parameters",
        "version",
      ]),
      ...files.filter((file) => !own.includes(file)).map((file) => `spec.source.helm.valueFiles ${file}`),
      ...parameters.map(
        (parameter) => `spec.source.helm.parameters ${stringAt(parameter, "name")} (write it into values)`,
      ),
      ...(text !== undefined && parsed === undefined ? ["spec.source.helm.values"] : []),
    ],
  };
}

function valuesIn(text: string): JsonObject | undefined {
  try {
    const [first] = parseDocuments(text, "values");
    return isJsonObject(first?.value) ? first.value : undefined;
  } catch (error) {
    if (error instanceof ManifestError) return undefined;
    throw error;
  }
}
