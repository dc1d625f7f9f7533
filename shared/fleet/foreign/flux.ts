/** Flux: the sources and paths of a cluster, with a copy for each cluster. */

import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import {
  type FoldersOf,
  folderOf,
  gitRefFrom,
  groupDocument,
  httpsUrl,
  joined,
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
import { stringAt } from "#shared/kube/kube-object.ts";

export interface FluxFleet {
  /** All documents, because a Kustomization names its repository. */
  readonly all: readonly Json[];
  readonly foldersOf: FoldersOf;
}

export function gitRepositorySaid(object: Json): Said {
  const title = titleOf(object);
  const spec = member(object, "spec");
  const given = stringAt(spec, "url") ?? "";
  const url = httpsUrl(given);
  if (url === undefined)
    return remarked(`${title}: spec.url is no address of a git repository that is fetched by https`);
  const desired = member(spec, "ref");
  const kind = ["commit", "name", "semver", "tag", "branch"].find((name) => typeof desired[name] === "string");
  // Flux's default when a repository names no branch.
  const ref = kind === undefined ? { branch: "master" } : refIn(kind, String(desired[kind]));
  const left = [
    ...leftOver(spec, "spec", ["url", "ref", "interval"]),
    ...leftOver(desired, "spec.ref", kind === "commit" ? ["commit", "branch"] : [kind ?? ""]),
  ];
  const secret = "secretRef" in spec ? [`${title}: name a secret with a token in spec.git.credentials`] : [];
  return {
    documents: [sourceManifest({ ...namesOf(object), url, ref })],
    remarks: [...notCarried(title, left), ...secret],
  };
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

export function helmReleaseSaid(object: Json, fleet: FluxFleet): Said {
  const title = titleOf(object);
  const spec = member(object, "spec");
  const chart = member(member(spec, "chart"), "spec");
  const reference = "chartRef" in spec ? member(spec, "chartRef") : member(chart, "sourceRef");
  if (stringAt(reference, "kind") !== "GitRepository") {
    const whose = `${stringAt(reference, "kind") ?? "a registry"} ${stringAt(reference, "name") ?? ""}`.trim();
    const name = stringAt(chart, "chart");
    return remarked(
      `${title}: this is not possible yet: its chart${name === undefined ? "" : ` ${name}`} comes from ${whose}, and Starling reads charts of git repositories; commit the chart to one (helm pull --untar), and write a template with its folder as path and render.helm.values`,
    );
  }
  const { name: own, namespace: around } = namesOf(object);
  const target = stringAt(spec, "targetNamespace");
  const namespace = target ?? around;
  const releaseName = stringAt(spec, "releaseName") ?? (target === undefined ? own : `${target}-${own}`);
  const values = isJsonObject(spec.values) ? spec.values : undefined;
  const base = { render: { helm: defined({ releaseName, values }) }, apply: { defaultNamespace: namespace } };
  return templateSaid(object, fleet, {
    reference,
    path: stringAt(chart, "chart") ?? ".",
    base,
    extras: {},
    left: [
      ...leftOver(spec, "spec", ["chart", "chartRef", "interval", "targetNamespace", "releaseName", "values"]),
      ...leftOver(chart, "spec.chart.spec", ["chart", "sourceRef", "interval"]),
    ],
  });
}

interface DesiredTemplate {
  readonly reference: JsonObject;
  readonly path: string;
  readonly base: JsonObject;
  readonly extras: JsonObject;
  readonly left: readonly string[];
}

function templateSaid(object: Json, { all, foldersOf }: FluxFleet, desired: DesiredTemplate): Said {
  const title = titleOf(object);
  const { name, namespace } = namesOf(object);
  const kind = stringAt(desired.reference, "kind") ?? "GitRepository";
  if (kind !== "GitRepository") {
    return remarked(
      `${title}: this is not possible yet: it takes from ${kind}, and Starling reads git repositories only`,
    );
  }
  const from = stringAt(desired.reference, "name") ?? "";
  const whose = stringAt(desired.reference, "namespace") ?? stringAt(object, "metadata", "namespace");
  const repository = all.find(
    (one) =>
      stringAt(one, "kind") === kind &&
      stringAt(one, "metadata", "name") === from &&
      (whose === undefined || stringAt(one, "metadata", "namespace") === whose),
  );
  const url = httpsUrl(stringAt(repository, "spec", "url") ?? "");
  const { path, problem } = folderOf(desired.path, url === undefined ? undefined : foldersOf(url));
  if (problem !== undefined) return remarked(`${title}: ${problem}`);
  const { template, left } = withFitting({ name, source: nameOf(from), path, ...desired.base }, desired.extras);
  const known =
    repository === undefined
      ? [`${title}: its GitRepository ${from} is not among these documents; write a Source ${nameOf(from)}`]
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
