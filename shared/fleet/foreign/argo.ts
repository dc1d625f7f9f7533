/** Argo CD: an Application is one template on one cluster. */
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import {
  aboutSshSecret,
  gitUpstream,
  gitUrlFrom,
  helmUpstream,
  inRegistry,
  isOverSsh,
  sourceManifest,
} from "#shared/fleet/foreign/foreign-source.ts";
import {
  type FoldersOf,
  folderOf,
  gitRefFrom,
  groupDocument,
  leftOver,
  member,
  nameOf,
  namesOf,
  notCarried,
  remarked,
  type Said,
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
  const filled = sources.filter((source) => !isOnlyFiles(source));
  const files = filesOf(sources, desired);
  const made = filled.map((source, index) =>
    templateOf(spec, source, {
      ...desired,
      files: files.names,
      name: filled.length === 1 ? desired.name : nameOf(`${desired.name}-${index + 1}`),
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
    sources: distinct([...made.flatMap((one) => one.sources), ...files.sources]),
    remarks: [...made.flatMap(({ remarks }) => remarks), ...files.remarks, ...notCarried(desired.title, left)],
  };
}

function optionsOf(spec: JsonObject): readonly string[] {
  return listAt(spec, "syncPolicy", "syncOptions").filter((option) => typeof option === "string");
}

/** A source that only holds files of values for the others. */
function isOnlyFiles(source: JsonObject): boolean {
  return "ref" in source && !("path" in source) && !("chart" in source);
}

interface ValueFiles {
  /** Names of the Sources, by the `ref` with which files of values name them. */
  readonly names: ReadonlyMap<string, string>;
  readonly sources: readonly JsonObject[];
  readonly remarks: readonly string[];
}

function filesOf(sources: readonly JsonObject[], { title, namespace }: DesiredApplication): ValueFiles {
  const names = new Map<string, string>();
  const found: JsonObject[] = [];
  const remarks: string[] = [];
  for (const source of sources) {
    const ref = stringAt(source, "ref");
    if (ref === undefined) continue;
    const git = gitSourceOf(source, namespace);
    if (git === undefined) {
      remarks.push(`${title}: the source ${ref} is no git repository that is read over https or ssh`);
      continue;
    }
    names.set(ref, git.name);
    found.push(git.manifest);
  }
  return { names, sources: found, remarks };
}

function distinct(sources: readonly JsonObject[]): readonly JsonObject[] {
  return [...new Map(sources.map((source) => [JSON.stringify(source), source])).values()];
}

interface GitSource {
  readonly name: string;
  readonly url: string;
  readonly manifest: JsonObject;
}

/** @returns undefined when the address is not one of a git repository. */
function gitSourceOf(source: JsonObject, namespace: string): GitSource | undefined {
  const url = gitUrlFrom(stringAt(source, "repoURL") ?? "");
  if (url === undefined) return undefined;
  const revision = stringAt(source, "targetRevision");
  const ref = gitRefFrom(revision);
  const repository =
    url
      .replace(/\.git$/, "")
      .split("/")
      .at(-1) ?? "source";
  const name = nameOf(ref === undefined ? repository : `${repository}-${revision}`);
  return { name, url, manifest: sourceManifest({ name, namespace, upstream: gitUpstream(url, ref) }) };
}

interface DesiredTemplate extends DesiredApplication {
  readonly files: ValueFiles["names"];
}

function templateOf(spec: JsonObject, source: JsonObject, desired: DesiredTemplate): ApplicationTemplates {
  const { title, name, namespace, foldersOf } = desired;
  const none = (remark: string) => ({ templates: [], sources: [], remarks: [`${title}: ${remark}`] });
  if ("chart" in source) return chartTemplateOf(spec, source, desired);
  const git = gitSourceOf(source, namespace);
  if (git === undefined) return none("its repoURL is no address of a git repository that is read over https or ssh");
  const { path, problem } = folderOf(stringAt(source, "path") ?? ".", foldersOf(git.url));
  if (problem !== undefined) return none(problem);
  const helm = helmOf(source, desired.files);
  const kustomize = member(source, "kustomize");
  const base = {
    name,
    source: git.name,
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
    ...leftOver(source, "spec.source", [...ofSources, "path", "kustomize", "directory"]),
    ...leftOver(kustomize, "spec.source.kustomize", ["namePrefix", "nameSuffix", "images", "patches", "components"]),
    ...leftOver(member(source, "directory"), "spec.source.directory", ["recurse"]),
    ...left.map((field) => `spec.source.kustomize.${field}`),
    ...(helm?.left ?? []),
  ];
  return {
    templates: [template],
    sources: [git.manifest],
    remarks: [
      ...notCarried(title, lost),
      ...(isOverSsh(git.url) ? [`${title}: ${aboutSshSecret}`] : []),
      ...aboutNamespace(title, base),
      ...subfoldersOf(source, { path, folders: foldersOf(git.url) }).map(
        (folder) => `${title}: manifests in ${folder} are rendered as well, which Argo CD leaves out`,
      ),
    ],
  };
}

const ofSources = ["repoURL", "targetRevision", "helm", "ref"];

function chartTemplateOf(spec: JsonObject, source: JsonObject, desired: DesiredTemplate): ApplicationTemplates {
  const { title, name, namespace } = desired;
  const given = stringAt(source, "repoURL") ?? "";
  const helm = helmOf(source, desired.files);
  const from = nameOf(`${name}-chart`);
  const template = {
    name,
    source: from,
    path: ".",
    ...placeOf(spec, true),
    render: { helm: helm?.options ?? {} },
  };
  const upstream = helmUpstream(inRegistry(given), stringAt(source, "chart") ?? "", stringAt(source, "targetRevision"));
  const lost = [...leftOver(source, "spec.source", [...ofSources, "chart"]), ...(helm?.left ?? [])];
  return {
    templates: [template],
    sources: [sourceManifest({ name: from, namespace, upstream })],
    remarks: [...notCarried(title, lost), ...aboutNamespace(title, template)],
  };
}

function aboutNamespace(title: string, template: JsonObject): readonly string[] {
  return "targetNamespace" in template
    ? [`${title}: targetNamespace also moves objects that name another namespace, which Argo CD leaves there`]
    : [];
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

function helmOf(
  source: JsonObject,
  others: ValueFiles["names"],
): { readonly options: JsonObject; readonly left: readonly string[] } | undefined {
  if (!isJsonObject(source.helm)) return undefined;
  const { helm } = source;
  const path = stringAt(source, "path") ?? ".";
  const files = listAt(helm, "valueFiles").filter((file) => typeof file === "string");
  const read = files.map((file) => ({ file, from: valuesFileFrom(file, path, others) }));
  const valuesFrom = read.flatMap(({ from }) => (from === undefined ? [] : [from]));
  const text = stringAt(helm, "values");
  const parsed = text === undefined ? undefined : valuesIn(text);
  const values = { ...parsed, ...member(helm, "valuesObject") };
  const parameters = listAt(helm, "parameters").filter(isJsonObject);
  const options = defined({
    releaseName: stringAt(helm, "releaseName"),
    values: Object.keys(values).length === 0 ? undefined : values,
    valuesFrom: valuesFrom.length === 0 ? undefined : valuesFrom,
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
      ...read.flatMap(({ file, from }) => (from === undefined ? [`spec.source.helm.valueFiles ${file}`] : [])),
      ...parameters.map(
        (parameter) => `spec.source.helm.parameters ${stringAt(parameter, "name")} (write it into values)`,
      ),
      ...(text !== undefined && parsed === undefined ? ["spec.source.helm.values"] : []),
    ],
  };
}

/** `$values/env/prod.yaml` is a file of the source whose `ref` is `values`. */
function valuesFileFrom(file: string, path: string, others: ValueFiles["names"]): JsonObject | undefined {
  const [, ref = "", rest = ""] = /^\$([^/]+)\/(.+)$/.exec(file) ?? [];
  const source = others.get(ref);
  if (file.includes("..")) return undefined;
  if (source !== undefined) return { source, path: rest };
  if (/^(\$|https?:|\/)/.test(file)) return undefined;
  return { path: path === "." ? file : `${path}/${file}` };
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
