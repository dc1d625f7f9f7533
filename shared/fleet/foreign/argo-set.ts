/** An ApplicationSet: a SyncGroup for each selection of clusters, with a template for each Application. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { templatesOf } from "#shared/fleet/foreign/argo.ts";
import { filled, generatedBy, noClusters, type Variant } from "#shared/fleet/foreign/argo-generators.ts";
import {
  type FoldersOf,
  groupDocument,
  leftOver,
  member,
  nameOf,
  namesOf,
  notCarried,
  remarked,
  type Said,
  titleOf,
} from "#shared/fleet/foreign/translation.ts";
import { listAt, stringAt } from "#shared/kube/kube-object.ts";

export function applicationSetSaid(object: Json, foldersOf: FoldersOf): Said {
  const title = titleOf(object);
  const { name, namespace } = namesOf(object);
  const spec = member(object, "spec");
  const generated = listAt(spec, "generators").map((generator) => generatedBy(generator, foldersOf));
  const variants = generated.flatMap((one) => one.variants);
  const remarks = generated.flatMap((one) => one.remarks).map((remark) => `${title}: ${remark}`);
  const left = [...leftOver(spec, "spec", ["generators", "template", "goTemplate", "goTemplateOptions", "syncPolicy"])];
  const groups = byClusters(variants);
  const sources = new Map<string, JsonObject>();
  const made: JsonObject[] = [];
  for (const [index, { clusters, members }] of groups.entries()) {
    const groupName = groups.length === 1 ? name : nameOf(`${name}-${index + 1}`);
    const templates: JsonObject[] = [];
    for (const { words, part } of members) {
      const application = member(filledAll(spec, words), "template");
      const own = member(application, "spec");
      const desired = { title, name: templateName(application) ?? part ?? name, namespace, foldersOf };
      const found = templatesOf(own, desired);
      templates.push(...found.templates);
      for (const source of found.sources) sources.set(JSON.stringify(source), source);
      remarks.push(...found.remarks);
    }
    if (templates.length > 0)
      made.push(groupDocument({ name: groupName, namespace, clusters: clusters ?? noClusters.clusters, templates }));
    if (templates.length > 0 && clusters === undefined) remarks.push(`${title}: ${noClusters.remark}`);
  }
  return {
    documents: [...sources.values(), ...made],
    remarks: [...remarked(...new Set(remarks)).remarks, ...notCarried(title, left)],
  };
}

/**
 * A release has the name of its Application, or of its template: for one name it stays the same. One Application for
 * each cluster has several.
 */
function templateName(application: JsonObject): string | undefined {
  const name = stringAt(application, "metadata", "name");
  return name === undefined || name.includes("{{") ? undefined : nameOf(name);
}

interface Members {
  readonly clusters: JsonObject | undefined;
  readonly members: Variant[];
}

function byClusters(variants: readonly Variant[]): readonly Members[] {
  const groups = new Map<string, Members>();
  for (const variant of variants) {
    const key = JSON.stringify(variant.clusters);
    const group = groups.get(key) ?? { clusters: variant.clusters, members: [] };
    group.members.push(variant);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function filledAll(value: Json | undefined, words: ReadonlyMap<string, string>): Json {
  if (typeof value === "string") return filled(value, words);
  if (Array.isArray(value)) return value.map((item: Json) => filledAll(item, words));
  if (!isJsonObject(value)) return value ?? null;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filledAll(one, words)]));
}
