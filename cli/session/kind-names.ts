import { usageFailure } from "#cli/session/failure.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";

export type KindName =
  | "Source"
  | "Receiver"
  | "ClusterDiscovery"
  | "Cluster"
  | "ClusterValues"
  | "Window"
  | "SyncGroup"
  | "Sync"
  | "Rollout";

const aliases: Readonly<Record<string, KindName>> = {
  source: "Source",
  sources: "Source",
  src: "Source",
  receiver: "Receiver",
  receivers: "Receiver",
  rcv: "Receiver",
  clusterdiscovery: "ClusterDiscovery",
  clusterdiscoveries: "ClusterDiscovery",
  cd: "ClusterDiscovery",
  cluster: "Cluster",
  clusters: "Cluster",
  cl: "Cluster",
  clustervalues: "ClusterValues",
  cv: "ClusterValues",
  window: "Window",
  windows: "Window",
  syncgroup: "SyncGroup",
  syncgroups: "SyncGroup",
  sg: "SyncGroup",
  sync: "Sync",
  syncs: "Sync",
  rollout: "Rollout",
  rollouts: "Rollout",
  ro: "Rollout",
};

const plurals: Readonly<Record<KindName, string>> = {
  Source: "sources",
  Receiver: "receivers",
  ClusterDiscovery: "clusterdiscoveries",
  Cluster: "clusters",
  ClusterValues: "clustervalues",
  Window: "windows",
  SyncGroup: "syncgroups",
  Sync: "syncs",
  Rollout: "rollouts",
};

/** Every word that names a kind, without the short ones. */
export function kindWords(): readonly string[] {
  return Object.keys(aliases).filter((word) => word.length > 3);
}

/** The kind that an argument names, in any case, plural or short, as in kubectl. */
export function findKind(text: string): KindName | undefined {
  return aliases[text.toLowerCase()];
}

/** Words of `starling get` that are no kinds: nobody applies or describes such a thing. */
const listedOnly = /^(zone|freeze|version)s?$/i;

/**
 * @param others - further words that the command accepts.
 * @throws CliFailure that lists the kinds, and the other words.
 */
export function parseKind(text: string, others: readonly string[] = []): KindName {
  const kind = findKind(text);
  if (kind !== undefined) return kind;
  const [listed] = listedOnly.exec(text) ?? [];
  const next = listed === undefined ? "starling get --help" : `starling get ${listed.toLowerCase()}`;
  const known = [...Object.values(plurals), ...others].join(", ");
  throw usageFailure(`"${text}" is not a kind; expected one of ${known}`, next);
}

export interface NamedObject {
  readonly kind: KindName;
  readonly name: string;
}

/** Kinds without a namespace. */
const ofInstallation: ReadonlySet<string> = new Set<KindName>([
  "ClusterDiscovery",
  "Cluster",
  "ClusterValues",
  "Window",
]);

export function hasNamespace(kind: string): boolean {
  return !ofInstallation.has(kind);
}

/** `KIND/NAME` or `KIND NAME`, one or more names. @throws CliFailure when a name is missing. */
export function parseNamed(args: readonly string[], verb: string): readonly NamedObject[] {
  const [first = "", ...rest] = args;
  if (first.includes("/")) {
    return args.map((arg) => {
      const [kind = "", name = "", ...more] = arg.split("/");
      if (name === "" || more.length > 0) throw usageFailure(`"${arg}" is not KIND/NAME`, `starling ${verb} --help`);
      return { kind: parseKind(kind), name };
    });
  }
  if (rest.length === 0 && findKind(first) === undefined && nameSchema.safeParse(first).success) {
    throw usageFailure(
      `"${first}" is not a kind; a name needs its kind`,
      `starling ${verb} syncgroup/${first}   (or source/, cluster/, sync/${first})`,
    );
  }
  const kind = parseKind(first);
  if (rest.length === 0) {
    throw usageFailure(
      `the name of the ${kind} is missing`,
      `starling ${verb} ${first}/NAME   (starling get ${plurals[kind]} lists them)`,
    );
  }
  return rest.map((name) => ({ kind, name }));
}

/** @throws CliFailure unless exactly one object is named. */
export function parseOne(args: readonly string[], verb: string): NamedObject {
  const [one, ...more] = parseNamed(args, verb);
  if (one === undefined || more.length > 0)
    throw usageFailure(`\`${verb}\` takes exactly one object`, `starling ${verb} --help`);
  return one;
}

/** The same as `parseOne`, but a word that is not a kind is the name of a group. */
export function parseOneOrGroup(args: readonly string[], verb: string): NamedObject {
  const [first = "", ...rest] = args;
  const isGroup = first !== "" && rest.length === 0 && !first.includes("/") && findKind(first) === undefined;
  return parseOne(isGroup ? [`syncgroup/${first}`] : args, verb);
}

/** `syncgroup/shop`, the form that commands print and accept. */
export function shortName({ kind, name }: NamedObject): string {
  return `${kind.toLowerCase()}/${name}`;
}

export function listPath(kind: KindName, namespace: string | undefined): string {
  if (!hasNamespace(kind) || namespace === undefined) return `/v1/${plurals[kind]}`;
  return `/v1/namespaces/${pathSegment(namespace)}/${plurals[kind]}`;
}

export function pathOfObject(object: NamedObject, namespace: string): string {
  return `${listPath(object.kind, namespace)}/${pathSegment(object.name)}`;
}

/** Path of the artifacts of a Source, which have routes of their own: not everybody who may read objects may read them. */
export function artifactsPath(source: string, namespace: string): string {
  return `/v1/sources/${pathSegment(namespace)}/${pathSegment(source)}/artifacts`;
}

/** @throws CliFailure for `.` and `..`, which URLs drop, so that the path would be another one. */
export function pathSegment(name: string): string {
  if (name !== "." && name !== "..") return percentEncode(name);
  throw usageFailure(`"${name}" cannot be the name of an object or a namespace`, "starling get --help");
}
