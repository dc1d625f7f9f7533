/** Generators of an ApplicationSet: the selected clusters, and the values of expressions. */
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { gitUrlFrom } from "#shared/fleet/foreign/foreign-source.ts";
import { type FoldersOf, member, nameOf, unknownCluster, whichClusters } from "#shared/fleet/foreign/translation.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";

export interface Variant {
  /** Absent when the generator selects no clusters. */
  readonly clusters?: JsonObject;
  /** By the name in an expression, without the dot before it. */
  readonly words: ReadonlyMap<string, string>;
  /** Part of the template's name, when there are several. */
  readonly part?: string;
}

export interface Generated {
  readonly variants: readonly Variant[];
  readonly remarks: readonly string[];
}

const clusterWords: readonly (readonly [string, string])[] = [
  ["name", "{{ cluster.name }}"],
  ["nameNormalized", "{{ cluster.name }}"],
];
/** Keys of a list's element that name a cluster. */
const clusterKeys = ["cluster", "clusterName", "cluster_name", "name"];
/** A label that every cluster of Argo CD has. */
const ownLabel = "argocd.argoproj.io/secret-type";

export function generatedBy(generator: Json, foldersOf: FoldersOf): Generated {
  if (!isJsonObject(generator)) return { variants: [], remarks: [] };
  if (isJsonObject(generator.clusters)) return ofClusters(generator.clusters);
  if (isJsonObject(generator.list)) return ofList(generator.list);
  if (isJsonObject(generator.git)) return ofGit(generator.git, foldersOf);
  if (isJsonObject(generator.matrix)) return ofMatrix(generator.matrix, foldersOf);
  const kind = Object.keys(generator).filter((name) => name !== "selector" && name !== "template")[0] ?? "none";
  return { variants: [], remarks: [`a generator ${kind} is not possible yet; write a SyncGroup for what it finds`] };
}

function ofClusters(clusters: JsonObject): Generated {
  const labels = Object.entries(member(member(clusters, "selector"), "matchLabels")).filter(
    ([key]) => key !== ownLabel,
  );
  const expressions = listAt(clusters, "selector", "matchExpressions");
  const selector = defined({
    matchLabels: labels.length === 0 ? undefined : Object.fromEntries(labels),
    matchExpressions: expressions.length === 0 ? undefined : expressions,
  });
  const values = Object.entries(member(clusters, "values")).flatMap(([key, value]) =>
    typeof value === "string" ? [[`values.${key}`, value] as const] : [],
  );
  const isAll = Object.keys(selector).length === 0;
  return {
    variants: [{ clusters: isAll ? { all: true } : { selector }, words: new Map([...clusterWords, ...values]) }],
    remarks: [],
  };
}

function ofList(list: JsonObject): Generated {
  const elements = listAt(list, "elements").filter(isJsonObject);
  const key = clusterKeys.find((one) => elements.length > 0 && elements.every((each) => typeof each[one] === "string"));
  if (key === undefined) {
    return {
      variants: elements.map((element, index) => ({
        words: wordsOf(element),
        part: nameOf(stringAt(element, "name") ?? `${index + 1}`),
      })),
      remarks: [],
    };
  }
  const words = new Map<string, string>();
  const remarks: string[] = [];
  for (const name of new Set(elements.flatMap((element) => Object.keys(element)))) {
    const found = [...new Set(elements.map((element) => String(element[name])))];
    if (name === key) words.set(name, "{{ cluster.name }}");
    else if (found.length === 1) words.set(name, found[0] ?? "");
    else if (!["url", "server"].includes(name)) {
      const value = name.replaceAll(/[^A-Za-z0-9_]/g, "_");
      words.set(name, `{{ cluster.values.${value} }}`);
      remarks.push(
        `${name} differs by cluster: give each of them a value ${value} (kind ClusterValues, or spec.values of the Cluster)`,
      );
    }
  }
  const names = elements.map((element) => nameOf(stringAt(element, key) ?? ""));
  return { variants: [{ clusters: { names: [...new Set(names)] }, words }], remarks };
}

function wordsOf(element: JsonObject): ReadonlyMap<string, string> {
  return new Map(Object.entries(element).map(([name, value]) => [name, String(value)]));
}

/** One template for each folder that exists. */
function ofGit(git: JsonObject, foldersOf: FoldersOf): Generated {
  const given = stringAt(git, "repoURL") ?? "";
  const patterns = listAt(git, "directories").filter(isJsonObject);
  if (patterns.length === 0) {
    return {
      variants: [],
      remarks: ["a generator git.files is not possible yet; write what its files say as values of clusters"],
    };
  }
  const known = foldersOf(gitUrlFrom(given) ?? given);
  const included = patterns
    .filter(({ exclude }) => exclude !== true)
    .map((one) => normalFolder(stringAt(one, "path") ?? "."));
  const excluded = patterns
    .filter(({ exclude }) => exclude === true)
    .map((one) => matcher(stringAt(one, "path") ?? ""));
  const whole = included.filter((path) => !path.includes("*"));
  const open = included.filter((path) => path.includes("*"));
  const there = known?.filter((folder) => included.some((path) => matcher(path).test(folder))) ?? whole;
  const folders = there.filter((folder) => !excluded.some((pattern) => pattern.test(folder)));
  const unseen =
    known === undefined ? open : open.filter((path) => !known.some((folder) => matcher(path).test(folder)));
  return {
    variants: folders.map((folder) => ({
      words: folderWords(folder),
      part: nameOf(folder.split("/").at(-1) ?? folder),
    })),
    remarks: unseen.map((path) =>
      known === undefined
        ? `${path} stands for folders of another repository: write a template for each, with its folder as path`
        : `no folder is like ${path}`,
    ),
  };
}

function matcher(pattern: string): RegExp {
  const escaped = normalFolder(pattern).replaceAll(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("**", "\0").replaceAll("*", "[^/]*").replaceAll("\0", ".*")}$`);
}

function folderWords(folder: string): ReadonlyMap<string, string> {
  const steps = folder.split("/");
  const last = steps.at(-1) ?? folder;
  const indexed = steps.flatMap((step, index) => [
    [`path[${index}]`, step] as const,
    [`path.segments[${index}]`, step] as const,
  ]);
  return new Map([
    ["path", folder],
    ["path.path", folder],
    ["path.basename", last],
    ["path.basenameNormalized", nameOf(last)],
    ...indexed,
  ]);
}

function ofMatrix(matrix: JsonObject, foldersOf: FoldersOf): Generated {
  const [one, other] = listAt(matrix, "generators").map((each) => generatedBy(each, foldersOf));
  if (one === undefined || other === undefined) return one ?? { variants: [], remarks: [] };
  const variants = one.variants.flatMap((first) =>
    other.variants.map((second): Variant => {
      const words = new Map([...first.words, ...second.words]);
      const parts = [first.part, second.part].filter((part) => part !== undefined);
      return {
        words: new Map([...words].map(([name, text]) => [name, filled(text, words)])),
        ...defined({
          clusters: first.clusters ?? second.clusters,
          part: parts.length === 0 ? undefined : nameOf(parts.join("-")),
        }),
      };
    }),
  );
  return { variants, remarks: [...one.remarks, ...other.remarks] };
}

/** A text with the values of a variant; labels of clusters become Starling's own, and unknown expressions stay. */
export function filled(text: string, words: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\{\{-?\s*(.*?)\s*-?\}\}/g, (whole, inner: string) => {
    const [, map, key] = /^index\s+\.?([\w.]+)\s+["']([^"']+)["']$/.exec(inner) ?? [];
    const name = map === undefined ? inner.replace(/^\./, "") : `${map}.${key}`;
    const known = words.get(name);
    if (known !== undefined) return known;
    const label = /^metadata\.labels\.(.+)$/.exec(name)?.[1];
    return label === undefined ? whole : `{{ cluster.labels.${label} }}`;
  });
}

export const noClusters = { clusters: unknownCluster, remark: whichClusters };
