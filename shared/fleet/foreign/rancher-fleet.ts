/** Fleet: a GitRepo states which folders of which repository go to which clusters. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import {
  aboutSshSecret,
  gitUpstream,
  gitUrlFrom,
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

export function gitRepoSaid(object: Json, foldersOf: FoldersOf): Said {
  const title = titleOf(object);
  const { name, namespace } = namesOf(object);
  const spec = member(object, "spec");
  const url = gitUrlFrom(stringAt(spec, "repo") ?? "");
  if (url === undefined)
    return remarked(`${title}: spec.repo is no address of a git repository that is read over https or ssh`);
  // Fleet's default when no branch is named.
  const ref = gitRefFrom(stringAt(spec, "revision")) ?? { branch: stringAt(spec, "branch") ?? "master" };
  const given = listAt(spec, "paths").filter((path) => typeof path === "string");
  const folders = (given.length === 0 ? ["."] : given).map((path) => folderOf(path, foldersOf(url)));
  const remarks = folders.flatMap(({ problem }) => (problem === undefined ? [] : [`${title}: ${problem}`]));
  const there = folders.filter(({ problem }) => problem === undefined);
  const made = there.map(({ path }) =>
    withFitting(
      {
        name: there.length === 1 ? name : nameOf(path),
        source: name,
        path,
        apply: { defaultNamespace: stringAt(spec, "targetNamespace") ?? "default" },
      },
      { targetNamespace: spec.targetNamespace },
    ),
  );
  const selections = selectionsOf(listAt(spec, "targets").filter(isJsonObject));
  const templates = made.map(({ template }) => template);
  const groups = (selections.length === 0 ? [unknownCluster] : selections).map((clusters, index) =>
    groupDocument({
      name: selections.length > 1 ? nameOf(`${name}-${index + 1}`) : name,
      namespace,
      clusters,
      templates,
    }),
  );
  const left = leftOver(spec, "spec", [
    "repo",
    "branch",
    "revision",
    "paths",
    "targets",
    "targetNamespace",
    "pollingInterval",
  ]);
  return {
    documents: [
      sourceManifest({ name, namespace, upstream: gitUpstream(url, ref) }),
      ...(templates.length === 0 ? [] : groups),
    ],
    remarks: [
      ...remarks,
      ...notCarried(title, left),
      ...(isOverSsh(url) ? [`${title}: ${aboutSshSecret}`] : []),
      ...(selections.length === 0 ? [`${title}: ${whichClusters}`] : []),
      ...(selections.length > 1
        ? [`${title}: a cluster can be of one of its groups only: let no two of them select the same`]
        : []),
      `${title}: what a fleet.yaml in its folders says goes into the template (render.helm, apply.defaultNamespace, overrides)`,
    ],
  };
}

/** A cluster gets a GitRepo once, however many of its targets match. */
function selectionsOf(targets: readonly JsonObject[]): readonly JsonObject[] {
  const names = targets.flatMap((target) => stringAt(target, "clusterName") ?? []);
  const selectors = targets.flatMap(({ clusterSelector }) => {
    if (!isJsonObject(clusterSelector)) return [];
    const isAll =
      Object.keys(member(clusterSelector, "matchLabels")).length +
        listAt(clusterSelector, "matchExpressions").length ===
      0;
    return [isAll ? { all: true } : { selector: clusterSelector }];
  });
  if (selectors.some((clusters) => "all" in clusters)) return [{ all: true }];
  return [...(names.length === 0 ? [] : [{ names: names.map(nameOf) }]), ...selectors];
}
