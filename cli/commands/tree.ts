import { worstObjectsFirst } from "#cli/format/get-table.ts";
import { objectRemark } from "#cli/format/objects-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { branch, type TextTreeNode, treeText } from "#cli/format/tree-text.ts";
import { isData } from "#cli/output/output.ts";
import { lackingTargets } from "#cli/seeing/lacking-targets.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { type NamedObject, parseOne, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { ClusterObject, SyncGroupObject, SyncObject } from "#shared/fleet/api/objects.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { formatAge } from "#shared/words/age.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { isGood, stateRank } from "#shared/words/state-words.ts";

export interface TreeOptions {
  readonly cluster?: string;
  readonly objects?: boolean;
  readonly all?: boolean;
}

type ListedSync = SyncObject | UnreadableObject<"Sync">;

/** At most this many Syncs of a cluster or a group are read; the API returns the worst states first. */
const syncsRead = 500;
/** The objects of at most this many Syncs are read, with one request for each. */
const withObjects = 50;
/** At most this many objects are shown below one Sync. */
const objectsShown = 20;
/** At most this many ready clusters are named below a template. */
const wellShown = 5;

/** Prints a tree: groups and Syncs of a cluster, clusters of a group, or objects of a Sync. The worst come first. */
export async function tree(session: Session, args: readonly string[], options: TreeOptions): Promise<ExitReason> {
  const object = parseOne(args, "tree");
  const root = await rootOf(session, object, options);
  const { output } = session.options;
  if (isData(output)) session.io.out(serialise(root, output));
  else session.io.out(treeText(root, columnsOf(session)));
  return "done";
}

function columnsOf({ io, options }: Session): number | undefined {
  return io.outIsTerminal && options.output !== "wide" ? io.columns : undefined;
}

function rootOf(session: Session, object: NamedObject, options: TreeOptions): Promise<TextTreeNode> {
  if (object.kind === "Cluster") return clusterTree(session, object, options);
  if (object.kind === "SyncGroup") return groupTree(session, object, options);
  if (object.kind === "Sync") return syncTree(session, object, options);
  throw usageFailure(`a ${object.kind} has no tree`, "starling tree cluster/NAME   (or syncgroup/NAME, sync/NAME)");
}

async function clusterTree(session: Session, object: NamedObject, options: TreeOptions): Promise<TextTreeNode> {
  const path = pathOfObject(object, "");
  const cluster = await session.api.call<ClusterObject | UnreadableObject<"Cluster">>({ method: "GET", path });
  const list = await readList<ListedSync>(session, { path: `${path}/syncs`, limit: syncsRead });
  const syncs = await Promise.resolve(worstObjectsFirst(list.items));
  const leaves = await syncLeaves(session, syncs, { ...options, name: shortSync });
  const byGroup = Map.groupBy(leaves, ({ sync }) => ownerOf(sync));
  const groups = [...byGroup].map(([owner, own]): TextTreeNode => {
    const states = own.map(({ sync }) => sync);
    return branch(
      owner,
      [countsText(states.map((sync) => objectState(sync).word))],
      own.map(({ node }) => node),
    );
  });
  const version = isUnreadable(cluster) ? "" : `Kubernetes ${cluster.status.version ?? "not known"}`;
  const more = list.metadata.continue === undefined ? [] : [branch(`… more than ${syncsRead} Syncs`, [])];
  return branch(
    object.name,
    [...stateCells(cluster, session.io.now()), version, countsText(list.items.map((sync) => objectState(sync).word))],
    [...groups, ...more],
  );
}

async function groupTree(session: Session, object: NamedObject, options: TreeOptions): Promise<TextTreeNode> {
  const path = pathOfObject(object, session.namespace());
  const group = await session.api.call<SyncGroupObject | UnreadableObject<"SyncGroup">>({ method: "GET", path });
  const list = await readList<ListedSync>(session, { path: `${path}/syncs`, limit: syncsRead });
  const leaves = await syncLeaves(session, worstObjectsFirst(list.items), {
    ...options,
    name: ({ spec }) => spec.cluster ?? "-",
  });
  const lacking = isUnreadable(group) ? [] : await lackingTargets(session, path, group);
  const byTemplate = Map.groupBy(leaves, ({ sync }) => shortSync(sync));
  const bare = Map.groupBy(lacking, ({ template }) => template);
  const templates = [...new Set([...byTemplate.keys(), ...bare.keys()])].map((template): TextTreeNode => {
    const [own, none] = [byTemplate.get(template) ?? [], bare.get(template) ?? []];
    const well = own.filter(({ sync }) => isGood(objectState(sync).word));
    const hidden = options.all === true ? [] : well.slice(wellShown);
    const shown = own.filter((leaf) => !hidden.includes(leaf)).map(({ node }) => node);
    const rest = hidden.length === 0 ? [] : [branch(`and ${hidden.length} more, all ready`, ["--all shows them"])];
    const words = [...own.map(({ sync }) => objectState(sync).word), ...none.map(({ state }) => state)];
    const bareNodes = none.map(({ cluster, state, reason }) => branch(cluster, ["-", state, reason]));
    return branch(template, [countsText(words)], [...bareNodes, ...shown, ...rest]);
  });
  const more = list.metadata.continue === undefined ? [] : [branch(`… more than ${syncsRead} Syncs`, [])];
  const cells = [...stateCells(group, session.io.now()), isUnreadable(group) ? "" : clustersText(group)];
  return branch(object.name, cells, [...templates, ...more]);
}

/** The counts of `get syncgroups`. */
function clustersText({ status: { clusters } }: SyncGroupObject): string {
  if (clusters === undefined) return "";
  const { selected, ...counts } = clusters;
  const words = Object.entries(counts).flatMap(([word, count = 0]) => (count === 0 ? [] : `${count} ${word}`));
  return `${selected} ${selected === 1 ? "cluster" : "clusters"}${words.length === 0 ? "" : `: ${words.join(", ")}`}`;
}

async function syncTree(session: Session, object: NamedObject, options: TreeOptions): Promise<TextTreeNode> {
  const { cluster } = options;
  if (object.name.includes(".") && cluster === undefined) {
    const [group = ""] = object.name.split(".");
    const next = `starling tree sync/${object.name} --cluster NAME   (starling tree syncgroup/${group} lists them)`;
    throw usageFailure(`sync/${object.name} is on several clusters; choose one with --cluster`, next);
  }
  const path = pathOfObject(object, session.namespace());
  const sync = await session.api.call<ListedSync>({ method: "GET", path, query: { cluster } });
  const name = `${object.name} on ${sync.spec.cluster ?? "-"}`;
  if (isUnreadable(sync)) return branch(name, stateCells(sync, session.io.now()));
  return branch(name, syncCells(sync, session.io.now()), await objectNodes(session, sync, options));
}

interface SyncLeaf {
  readonly sync: ListedSync;
  readonly node: TextTreeNode;
}

async function syncLeaves(
  session: Session,
  syncs: readonly ListedSync[],
  options: TreeOptions & { readonly name: (sync: ListedSync) => string },
): Promise<readonly SyncLeaf[]> {
  const leaves: SyncLeaf[] = [];
  for (const [index, sync] of syncs.entries()) {
    const asks = options.objects === true && index < withObjects && !isUnreadable(sync);
    const objects = asks ? await objectNodes(session, sync, options) : [];
    leaves.push({ sync, node: branch(options.name(sync), syncCells(sync, session.io.now()), objects) });
  }
  return leaves;
}

async function objectNodes(session: Session, sync: SyncObject, { all }: TreeOptions): Promise<readonly TextTreeNode[]> {
  const { name, namespace = "" } = sync.metadata;
  const path = `${pathOfObject({ kind: "Sync", name }, namespace)}/objects`;
  const limit = all === true ? Number.MAX_SAFE_INTEGER : objectsShown;
  const found = await readList<SyncObjectItem>(session, { path, query: { cluster: sync.spec.cluster }, limit });
  const now = session.io.now();
  const nodes = found.items.map((item) => {
    const age = item.createdAt === undefined ? "" : formatAge(item.createdAt, now);
    return branch(item.object, [item.health, age, objectRemark(item)]);
  });
  return found.metadata.continue === undefined ? nodes : [...nodes, branch("and more", ["--all shows them"])];
}

/** `NAMESPACE/GROUP`, or the namespace of a Sync that a user wrote. */
function ownerOf({ metadata }: ListedSync): string {
  const [group, template] = metadata.name.split(".");
  return template === undefined ? `${metadata.namespace}` : `${metadata.namespace}/${group}`;
}

function shortSync({ metadata }: ListedSync): string {
  return metadata.name.slice(metadata.name.indexOf(".") + 1);
}

function stateCells(object: Parameters<typeof objectState>[0], now: Date): readonly string[] {
  const { word, seenAt, remark } = objectState(object);
  return [word, seenAt === undefined ? "" : `seen ${formatAge(seenAt, now)} ago`, remark];
}

function syncCells(sync: ListedSync, now: Date): readonly string[] {
  const { word, since, seenAt, remark } = objectState(sync);
  const revision = isUnreadable(sync) ? "-" : revisionText(sync.status.observed?.applied?.revision);
  const seen = seenAt === undefined ? "" : `seen ${formatAge(seenAt, now)} ago`;
  return [revision, `${word} ${formatAge(since, now)}`, seen, remark];
}

/** `65 Syncs: 62 Ready, 3 Failed`. */
function countsText(words: readonly string[]): string {
  const sorted = words.toSorted((a, b) => stateRank(a) - stateRank(b));
  const counts = [...Map.groupBy(sorted, (word) => word)].map(([word, those]) => `${those.length} ${word}`);
  return `${words.length} ${words.length === 1 ? "Sync" : "Syncs"}${counts.length === 0 ? "" : `: ${counts.join(", ")}`}`;
}
