import { shapeNameOf } from "#shared/adapters/kube/kube-answers.ts";
import { answerRefusal, malformedAnswer } from "#shared/adapters/kube/kube-sender.ts";
import { defined } from "#shared/base/defined.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import type { KubeError } from "#shared/kube/kube-error.ts";
import { listAt, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { groupOf, versionOf } from "#shared/kube/object-id.ts";

/** The kinds that one version of a group serves, or why they are unknown. While it is unknown, no kind of it counts as absent. */
export type ServedKinds =
  | { readonly kinds: ReadonlyMap<string, KindInfo> }
  | { readonly kinds?: undefined; readonly problem: string };

export interface AnnouncedVersion {
  readonly version: string;
  /** Absent when a request is needed. */
  readonly served?: ServedKinds;
}

/** By group, the preferred version first. */
export type AnnouncedGroups = ReadonlyMap<string, readonly AnnouncedVersion[]>;

/** The largest clusters serve some thousand kinds. The catalog is kept as long as the process lives. */
const maxKinds = 10_000;
const maxGroups = 5_000;
const maxNameLength = 253;
const maxVerbs = 20;

export const silent: ServedKinds = { problem: "is announced, but does not answer" };

/** Groups, versions and resources are DNS names. Any other text would change the address of a request. */
const dnsName = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const kindName = /^[A-Za-z][-A-Za-z0-9]*$/;
const commandName = /^[a-z]{1,40}$/;

/** Reads the document of `/api` or `/apis`, aggregated or plain. @throws KubeError when it is neither, or too large. */
export function readGroups(path: string, document: Json): AnnouncedGroups {
  const kind = stringAt(document, "kind");
  if (kind === "APIGroupDiscoveryList") return checked(path, readAggregated(listIn(document, "items", path)));
  if (kind === "APIVersions") {
    const versions = listIn(document, "versions", path).filter((version) => typeof version === "string");
    return checked(path, [["", versions.map((version) => announced("", version))]]);
  }
  if (kind === "APIGroupList") return checked(path, listIn(document, "groups", path).map(readPlainGroup));
  throw malformedAt(
    path,
    `its kind is ${kind === undefined ? shapeNameOf(valueAt(document, "kind")) : foreignText(kind, 80)}`,
  );
}

/** Reads the document of one version of a group. */
export function readResourceList(path: string, document: Json): ServedKinds {
  const groupVersion = stringAt(document, "groupVersion") ?? "v1";
  const place = { group: groupOf(groupVersion), version: versionOf(groupVersion) };
  const resources = listIn(document, "resources", path).filter(isJsonObject);
  const names = new Set(resources.map((resource) => resource.name));
  return servedBy(
    resources.flatMap(({ name, kind, namespaced, verbs }) =>
      typeof name !== "string" || typeof kind !== "string" || isSubresource(name)
        ? []
        : [
            {
              ...place,
              kind,
              plural: name,
              namespaced: namespaced === true,
              verbs: verbsOf(verbs),
              hasStatus: names.has(`${name}/status`),
            },
          ],
    ),
  );
}

/** `deployments/scale`. A slash in another place makes the name invalid. */
function isSubresource(name: string): boolean {
  return /^[a-z0-9][-.a-z0-9]*\/[^/]+$/.test(name);
}

type Group = readonly [string, readonly AnnouncedVersion[]];

function checked(path: string, groups: readonly Group[]): AnnouncedGroups {
  const kinds = groups
    .flatMap(([, versions]) => versions)
    .reduce((sum, { served }) => sum + (served?.kinds?.size ?? 0), 0);
  if (groups.length <= maxGroups && kinds <= maxKinds) return new Map(groups);
  const message = `it has ${groups.length} groups with ${kinds} kinds, more than the limit of ${maxGroups} groups with ${maxKinds} kinds`;
  throw answerRefusal({ method: "GET", path }, "AnswerTooLarge", message);
}

function readAggregated(items: readonly Json[]): readonly Group[] {
  return items.map((item): Group => {
    const group = stringAt(item, "metadata", "name") ?? "";
    return [group, listAt(item, "versions").map((entry) => readAggregatedVersion(group, entry))];
  });
}

function readAggregatedVersion(group: string, entry: Json): AnnouncedVersion {
  const version = stringAt(entry, "version") ?? "";
  if (stringAt(entry, "freshness") === "Stale") return { version, served: silent };
  const infos: KindInfo[] = [];
  for (const resource of listAt(entry, "resources")) {
    const kind = stringAt(resource, "responseKind", "kind");
    const plural = stringAt(resource, "resource");
    if (kind === undefined || plural === undefined) continue;
    const subresources = listAt(resource, "subresources").map((sub) => stringAt(sub, "subresource"));
    infos.push({
      group,
      version,
      kind,
      plural,
      namespaced: stringAt(resource, "scope") === "Namespaced",
      verbs: verbsOf(valueAt(resource, "verbs")),
      hasStatus: subresources.includes("status"),
    });
  }
  return { version, served: groupProblem(group, version) ?? servedBy(infos) };
}

function readPlainGroup(item: Json): Group {
  const group = stringAt(item, "name") ?? "";
  const preferred = stringAt(item, "preferredVersion", "version");
  const versions = listAt(item, "versions").map((version) => stringAt(version, "version") ?? "");
  versions.sort((a, b) => Number(b === preferred) - Number(a === preferred));
  return [group, versions.map((version) => announced(group, version))];
}

function announced(group: string, version: string): AnnouncedVersion {
  const problem = groupProblem(group, version);
  return { version, ...defined({ served: problem }) };
}

function groupProblem(group: string, version: string): ServedKinds | undefined {
  if ((group === "" || isDnsName(group)) && isDnsName(version)) return undefined;
  return { problem: "is announced with a name that cannot be a part of an address" };
}

/** One invalid name makes the whole version unknown, because nobody can tell which kind it means. */
function servedBy(infos: readonly KindInfo[]): ServedKinds {
  for (const { kind, plural } of infos) {
    if (isDnsName(plural) && kindName.test(kind) && kind.length <= maxNameLength) continue;
    const named = `${JSON.stringify(foreignText(plural, 80))} of the kind ${JSON.stringify(foreignText(kind, 80))}`;
    return { problem: `announces the resource ${named}, which cannot be a part of an address` };
  }
  return { kinds: new Map(infos.map((info) => [info.kind, info])) };
}

function isDnsName(text: string): boolean {
  return text.length <= maxNameLength && dnsName.test(text);
}

function verbsOf(verbs: Json | undefined): readonly string[] {
  const list = Array.isArray(verbs) ? verbs : [];
  return list.filter((verb): verb is string => typeof verb === "string" && commandName.test(verb)).slice(0, maxVerbs);
}

function listIn(document: Json, member: string, path: string): readonly Json[] {
  const list = valueAt(document as JsonObject, member);
  if (list === null) return [];
  if (!Array.isArray(list)) throw malformedAt(path, `${member} is ${shapeNameOf(list)}, expected a list`);
  return list;
}

function malformedAt(path: string, problem: string): KubeError {
  return malformedAnswer({ method: "GET", path }, problem);
}
