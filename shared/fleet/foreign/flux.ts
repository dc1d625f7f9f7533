/** Flux: the sources and paths of a cluster, with a copy for each cluster. */

import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import {
  aboutSshSecret,
  chartInRegistry,
  gitUpstream,
  gitUrlFrom,
  helmUpstream,
  isOverSsh,
  sourceManifest,
} from "#shared/fleet/foreign/foreign-source.ts";
import {
  type FoldersOf,
  folderOf,
  gitRefFrom,
  groupDocument,
  joined,
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

export interface FluxFleet {
  /** All documents, because a Kustomization names its repository. */
  readonly all: readonly Json[];
  readonly foldersOf: FoldersOf;
}

export function gitRepositorySaid(object: Json): Said {
  const title = titleOf(object);
  const spec = member(object, "spec");
  const given = stringAt(spec, "url") ?? "";
  const url = gitUrlFrom(given);
  if (url === undefined)
    return remarked(`${title}: spec.url is no address of a git repository that is read over https or ssh`);
  const desired = member(spec, "ref");
  const kind = ["commit", "name", "semver", "tag", "branch"].find((name) => typeof desired[name] === "string");
  // Flux's default when a repository names no branch.
  const ref = kind === undefined ? { branch: "master" } : refIn(kind, String(desired[kind]));
  const left = [
    ...leftOver(spec, "spec", ["url", "ref", "interval", "ignore"]),
    ...leftOver(desired, "spec.ref", kind === "commit" ? ["commit", "branch"] : [kind ?? ""]),
  ];
  const token = "secretRef" in spec ? [`${title}: name a secret with a token in spec.git.credentials`] : [];
  const secret = isOverSsh(url) ? [`${title}: ${aboutSshSecret}`] : token;
  return {
    documents: [sourceManifest({ ...namesOf(object), upstream: gitUpstream(url, ref), ignore: ignoreIn(spec) })],
    remarks: [
      ...notCarried(
        title,
        left.filter((field) => field !== "spec.secretRef"),
      ),
      ...secret,
    ],
  };
}

/** Flux has the same patterns. */
function ignoreIn(spec: JsonObject): string | undefined {
  const ignore = stringAt(spec, "ignore");
  return ignore === undefined || ignore.trim() === "" ? undefined : ignore;
}

/** @param kind - the field of `spec.ref`; `name` is a full reference: `refs/heads/main`. */
function refIn(kind: string, text: string): JsonObject | undefined {
  return kind === "name" ? gitRefFrom(text) : { [kind]: text };
}

export function kustomizationSaid(object: Json, fleet: FluxFleet): Said {
  const spec = member(object, "spec");
  const post = member(spec, "postBuild");
  const substitute = member(post, "substitute");
  const texts = Object.entries(substitute).map(([name, value]) => [name, String(value)]);
  const parameters = texts.length === 0 ? undefined : Object.fromEntries(texts);
  const extras = {
    targetNamespace: spec.targetNamespace,
    patches: spec.patches,
    images: spec.images,
    components: spec.components,
    commonMetadata: spec.commonMetadata,
    namePrefix: spec.namePrefix,
    nameSuffix: spec.nameSuffix,
  };
  const apply = defined({ prune: typeof spec.prune === "boolean" ? spec.prune : undefined });
  const base = parameters === undefined ? { apply } : { apply, parameters, substitute: { mode: "text" } };
  const taken = ["path", "sourceRef", "interval", "prune", "postBuild", ...Object.keys(extras)];
  return templateSaid(object, fleet, {
    reference: member(spec, "sourceRef"),
    path: stringAt(spec, "path") ?? ".",
    base,
    extras,
    left: [...leftOver(spec, "spec", taken), ...leftOver(post, "spec.postBuild", ["substitute"])],
  });
}

/** A HelmRelease names its chart, or another document that does. */
export function helmReleaseSaid(object: Json, fleet: FluxFleet): Said {
  const { template, left } = releaseOf(object);
  const reference = chartReference(object, fleet);
  if (reference.kind === "GitRepository") {
    const path = reference.chart ?? ".";
    const taken = [...left, ...reference.left];
    return templateSaid(object, fleet, { reference: reference.source, path, base: template, extras: {}, left: taken });
  }
  const title = titleOf(object);
  const { name, namespace } = namesOf(object);
  const found = chartSource(object, reference, fleet);
  if (found === undefined) {
    if (!("name" in reference.source))
      return remarked(
        `${title}: it names no chart, as a patch of an overlay does: translate what \`kubectl kustomize\` prints for the overlay`,
      );
    return remarked(
      `${title}: its chart${reference.chart === undefined ? "" : ` ${reference.chart}`} comes from ${reference.kind} ${stringAt(reference.source, "name") ?? ""}, which is not translated; write a Source of any kind that has the chart, and a template with its folder as path`,
    );
  }
  const { documents, remarks, source } = found;
  const templates = [{ name, source, path: ".", ...template }];
  return {
    documents: [...documents, groupDocument({ name, namespace, clusters: unknownCluster, templates })],
    remarks: [...remarks, ...notCarried(title, [...left, ...reference.left]), `${title}: ${whichClusters}`],
  };
}

/** The part of a template that does not depend on where the chart is. */
function releaseOf(object: Json): { readonly template: JsonObject; readonly left: readonly string[] } {
  const spec = member(object, "spec");
  const chart = member(member(spec, "chart"), "spec");
  const { name: own, namespace: around } = namesOf(object);
  const target = stringAt(spec, "targetNamespace");
  const releaseName = stringAt(spec, "releaseName") ?? (target === undefined ? own : `${target}-${own}`);
  const values = isJsonObject(spec.values) ? spec.values : undefined;
  const files = listAt(chart, "valuesFiles").filter((file) => typeof file === "string");
  const valuesFrom = files.length === 0 ? undefined : files.map((path) => ({ path }));
  return {
    template: {
      render: { helm: defined({ releaseName, values, valuesFrom }) },
      apply: { defaultNamespace: target ?? around },
    },
    left: leftOver(spec, "spec", ["chart", "chartRef", "interval", "targetNamespace", "releaseName", "values"]),
  };
}

interface ChartReference {
  /** `GitRepository`, `HelmRepository`, `OCIRepository`, or another kind. */
  readonly kind: string;
  /** The reference to the document of that kind. */
  readonly source: JsonObject;
  /** The chart's name or folder; absent for a chart that is an artifact of its own. */
  readonly chart: string | undefined;
  readonly range: string | undefined;
  readonly left: readonly string[];
}

function chartReference(object: Json, fleet: FluxFleet): ChartReference {
  const spec = member(object, "spec");
  const direct = member(spec, "chartRef");
  const isChart = stringAt(direct, "kind") === "HelmChart";
  const found = isChart ? referenced(object, direct, fleet) : undefined;
  const chart = isChart ? member(found, "spec") : member(member(spec, "chart"), "spec");
  const source = "chartRef" in spec && !isChart ? direct : member(chart, "sourceRef");
  const kind = stringAt(source, "kind") ?? (isChart ? "HelmChart" : "an unknown kind");
  const taken = ["chart", "sourceRef", "interval", "valuesFiles", "reconcileStrategy"];
  const where = isChart ? `${titleOf(found)} spec` : "spec.chart.spec";
  return {
    kind,
    source,
    chart: stringAt(chart, "chart"),
    range: stringAt(chart, "version"),
    left: leftOver(chart, where, kind === "GitRepository" ? taken : [...taken, "version"]),
  };
}

interface ChartSource extends Said {
  /** Name of the Source. */
  readonly source: string;
}

/** @returns undefined when Starling cannot read a chart from there. */
function chartSource(object: Json, reference: ChartReference, fleet: FluxFleet): ChartSource | undefined {
  const { kind, chart, range } = reference;
  const { name: own, namespace } = namesOf(object);
  const title = titleOf(object);
  const named = stringAt(reference.source, "name") ?? "";
  if (kind !== "HelmRepository" && kind !== "OCIRepository") return undefined;
  const source = kind === "OCIRepository" ? nameOf(named) : nameOf(`${own}-chart`);
  const found = referenced(object, reference.source, fleet);
  if (found === undefined) {
    const remark = `${title}: its ${kind} ${named} is not among these documents; write a Source ${source} with spec.helm`;
    return { source, documents: [], remarks: [remark] };
  }
  const spec = member(found, "spec");
  const ref = member(spec, "ref");
  const url = stringAt(spec, "url") ?? "";
  const isArtifact = kind === "OCIRepository";
  const place =
    isArtifact || url.startsWith("oci:")
      ? chartInRegistry(isArtifact ? url : `${url.replace(/\/+$/, "")}/${chart ?? ""}`)
      : { url: url.replace(/^http:/, "https:"), chart: chart ?? "" };
  const desired = isArtifact ? (stringAt(ref, "semver") ?? stringAt(ref, "tag")) : range;
  const signIn = "secretRef" in spec ? [`${titleOf(found)}: name a secret in spec.helm.credentials of ${source}`] : [];
  const taken = ["url", "interval", "timeout", "type", "secretRef", "layerSelector", "ref"];
  const left = [
    ...leftOver(spec, "spec", taken),
    ...leftOver(ref, "spec.ref", "semver" in ref ? ["semver", "tag"] : ["tag"]),
  ];
  return {
    source,
    documents: [sourceManifest({ name: source, namespace, upstream: helmUpstream(place.url, place.chart, desired) })],
    remarks: [...notCarried(titleOf(found), left), ...signIn],
  };
}

/** The document that a reference names; its namespace is that of the document around it unless it says another. */
function referenced(object: Json, reference: JsonObject, { all }: FluxFleet): Json | undefined {
  const whose = stringAt(reference, "namespace") ?? stringAt(object, "metadata", "namespace");
  return all.find(
    (one) =>
      stringAt(one, "kind") === stringAt(reference, "kind") &&
      stringAt(one, "metadata", "name") === stringAt(reference, "name") &&
      (whose === undefined || stringAt(one, "metadata", "namespace") === whose),
  );
}

/** An artifact in a registry: a chart belongs to the HelmRelease that takes it. */
export function ociRepositorySaid(object: Json, fleet: FluxFleet): Said {
  if (isTaken(object, fleet)) return remarked();
  const title = titleOf(object);
  const spec = member(object, "spec");
  const given = member(spec, "ref");
  const layer = member(spec, "layerSelector");
  // Flux prefers them in this order.
  const kind = ["digest", "semver", "tag"].find((name) => typeof given[name] === "string");
  const tagFilter = kind === "semver" ? stringAt(given, "semverFilter") : undefined;
  const ref = kind === undefined ? undefined : defined({ [kind]: given[kind], tagFilter });
  const upstream = { oci: defined({ url: stringAt(spec, "url"), ref, mediaType: stringAt(layer, "mediaType") }) };
  const left = [
    ...leftOver(spec, "spec", ["url", "ref", "interval", "timeout", "layerSelector", "secretRef", "ignore"]),
    ...leftOver(given, "spec.ref", [kind ?? "", ...(tagFilter === undefined ? [] : ["semverFilter"])]),
  ];
  const signIn = "secretRef" in spec ? [`${title}: name a secret in spec.oci.credentials`] : [];
  return {
    documents: [sourceManifest({ ...namesOf(object), upstream, ignore: ignoreIn(spec) })],
    remarks: [...notCarried(title, left), ...signIn],
  };
}

/** Whether a HelmRelease or a HelmChart names the document: its address is then in the Source of the chart. */
export function isTaken(object: Json, fleet: FluxFleet): boolean {
  return fleet.all.some((one) =>
    chartReferences(one).some(
      (reference) => "name" in reference && referenced(one, reference, { ...fleet, all: [object] }) !== undefined,
    ),
  );
}

function chartReferences(object: Json): readonly JsonObject[] {
  const spec = member(object, "spec");
  const kind = stringAt(object, "kind");
  if (kind === "HelmRelease")
    return [member(spec, "chartRef"), member(member(member(spec, "chart"), "spec"), "sourceRef")];
  return kind === "HelmChart" ? [member(spec, "sourceRef")] : [];
}

interface DesiredTemplate {
  readonly reference: JsonObject;
  readonly path: string;
  readonly base: JsonObject;
  readonly extras: JsonObject;
  readonly left: readonly string[];
}

function templateSaid(object: Json, fleet: FluxFleet, desired: DesiredTemplate): Said {
  const title = titleOf(object);
  const { name, namespace } = namesOf(object);
  const kind = stringAt(desired.reference, "kind") ?? "GitRepository";
  if (kind !== "GitRepository" && kind !== "OCIRepository") {
    const folder = desired.path.replace(/^(\.?\/)+/, "") || ".";
    return remarked(
      `${title}: it takes from ${kind} ${stringAt(desired.reference, "name") ?? ""}, which is not translated; write a Source with the same files, and a template with path: ${folder}`,
    );
  }
  const from = stringAt(desired.reference, "name") ?? "";
  const repository = referenced(object, { ...desired.reference, kind }, fleet);
  const url = kind === "GitRepository" ? gitUrlFrom(stringAt(repository, "spec", "url") ?? "") : undefined;
  const { path, problem } = folderOf(desired.path, url === undefined ? undefined : fleet.foldersOf(url));
  if (problem !== undefined) return remarked(`${title}: ${problem}`);
  const { template, left } = withFitting({ name, source: nameOf(from), path, ...desired.base }, desired.extras);
  const known =
    repository === undefined
      ? [`${title}: its ${kind} ${from} is not among these documents; write a Source ${nameOf(from)}`]
      : [];
  const elsewhere = repository === undefined ? undefined : namesOf(repository);
  const moved = elsewhere !== undefined && elsewhere.namespace !== namespace ? elsewhere.namespace : namespace;
  return joined([
    {
      documents: [groupDocument({ name, namespace: moved, clusters: unknownCluster, templates: [template] })],
      remarks: [],
    },
    remarked(
      ...known,
      ...notCarried(title, [...desired.left, ...left.map((field) => `spec.${field}`)]),
      `${title}: ${whichClusters}`,
    ),
  ]);
}
