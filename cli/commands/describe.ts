import { describeClusterValues } from "#cli/format/describe-cluster-values.ts";
import { describeDiscovery } from "#cli/format/describe-discovery.ts";
import { describeCluster, describeGroup, describeSource, describeUnreadable } from "#cli/format/describe-object.ts";
import { describeReceiver } from "#cli/format/describe-receiver.ts";
import { describeSync } from "#cli/format/describe-sync.ts";
import { describeWindow } from "#cli/format/describe-window.ts";
import { foldLines } from "#cli/format/fold-lines.ts";
import type { ShownInputs } from "#cli/format/inputs-text.ts";
import { formatRolloutStatus } from "#cli/format/rollout-text.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { manyClusters } from "#cli/format/target-lines.ts";
import { inputsOn } from "#cli/seeing/described-inputs.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { hasNamespace, type NamedObject, parseOne, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type {
  ApiList,
  ClusterObject,
  ClusterValuesObject,
  DiscoveryObject,
  EventItem,
  ReceiverObject,
  RolloutObject,
  SourceObject,
  SyncGroupObject,
  SyncObject,
  TargetItem,
  WindowObject,
} from "#shared/fleet/api/objects.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";

/** At most this many Syncs with problems are shown for a group; `get syncs` lists them all. */
const failingShown = 10;
const syncsOfCluster = 500;

export interface DescribeOptions {
  readonly cluster?: string;
  readonly events: number;
  readonly objects: number;
}

export async function describe(
  session: Session,
  args: readonly string[],
  options: DescribeOptions,
): Promise<ExitReason> {
  const object = parseOne(args, "describe");
  session.io.out(foldLines(await pageOf(session, object, options), tableStyle(session).columns));
  return "done";
}

async function pageOf(session: Session, object: NamedObject, options: DescribeOptions): Promise<string> {
  const now = session.io.now();
  const path = pathOfObject(object, hasNamespace(object.kind) ? session.namespace() : "");
  switch (object.kind) {
    case "Source": {
      const source = await read<SourceObject>(session, path, { pins: "true" });
      if (isUnreadable(source)) return describeUnreadable(source, now);
      const from = await readingZone(session);
      return describeSource({ object: source, events: await events(session, path, options), from, now });
    }
    case "Receiver": {
      const receiver = await read<ReceiverObject>(session, path);
      return isUnreadable(receiver) ? describeUnreadable(receiver, now) : describeReceiver(receiver, now);
    }
    case "ClusterDiscovery": {
      const discovery = await read<DiscoveryObject>(session, path);
      if (isUnreadable(discovery)) return describeUnreadable(discovery, now);
      return describeDiscovery(discovery, now);
    }
    case "Cluster": {
      const cluster = await read<ClusterObject>(session, path);
      if (isUnreadable(cluster)) return describeUnreadable(cluster, now);
      const syncs = await readList<SyncObject>(session, { path: `${path}/syncs`, limit: syncsOfCluster });
      return describeCluster({ object: cluster, syncs: syncs.items, columns: tableStyle(session).columns, now });
    }
    case "ClusterValues": {
      const values = await read<ClusterValuesObject>(session, path);
      return isUnreadable(values) ? describeUnreadable(values, now) : describeClusterValues(values, now);
    }
    case "Window": {
      const window = await read<WindowObject>(session, path);
      return isUnreadable(window) ? describeUnreadable(window, now) : describeWindow(window, now);
    }
    case "SyncGroup": {
      const group = await read<SyncGroupObject>(session, path);
      if (isUnreadable(group)) return describeUnreadable(group, now);
      const failing = await troubled(session, path);
      const found = await events(session, path, options);
      const { cluster } = options;
      const { columns } = tableStyle(session);
      if (cluster === undefined) return describeGroup({ object: group, events: found, failing, columns, now });
      const { name } = object;
      const of = await inputsOf(session, { namespace: session.namespace(), kind: "SyncGroup", name }, { cluster });
      return describeGroup({ object: group, events: found, failing, inputs: { cluster, of }, columns, now });
    }
    case "Sync":
      return syncPage(session, { object, path, options });
    case "Rollout":
      return rolloutPage(session, path);
  }
}

async function syncPage(
  session: Session,
  { object, path, options }: { object: NamedObject; path: string; options: DescribeOptions },
): Promise<string> {
  if (object.name.includes(".") && options.cluster === undefined) {
    const next = `starling get sync ${object.name} -n ${session.namespace()}   (lists the clusters)`;
    throw usageFailure(`sync/${object.name} is on several clusters; choose one with --cluster`, next);
  }
  const sync = await read<SyncObject>(session, path, { cluster: options.cluster });
  if (isUnreadable(sync)) return describeUnreadable(sync, session.io.now());
  const { cluster } = sync.spec;
  const found = await events(session, path, { ...options, cluster });
  const { group, template } = sync.status;
  const owner: Owner =
    group === undefined
      ? { namespace: session.namespace(), kind: "Sync", name: object.name }
      : { namespace: session.namespace(), kind: "SyncGroup", name: group };
  return describeSync({
    sync,
    events: found,
    inputs: await inputsOf(session, owner, { cluster, template }),
    objects: await objectsOf(session, path, { ...options, cluster }),
    columns: tableStyle(session).columns,
    now: session.io.now(),
  });
}

/** The inputs of templates, or why they are not known: the Source has no revision yet, or the group does not exist. */
async function inputsOf(
  session: Session,
  owner: Owner,
  { cluster, template }: { readonly cluster: string; readonly template?: string | undefined },
): Promise<ShownInputs> {
  try {
    const all = await inputsOn(session, owner, cluster);
    if (all.length === 0) return { unknown: `${owner.kind} ${owner.name} does not select cluster ${cluster}` };
    return all.filter(({ template: of }) => template === undefined || of === template);
  } catch (error) {
    if (error instanceof CliFailure) return { unknown: error.message };
    throw error;
  }
}

/** The objects of a Sync, or why they are not known. An older API, or a lost record of the worker, does not prevent the rest. */
async function objectsOf(
  session: Session,
  path: string,
  { cluster, objects: limit }: DescribeOptions,
): Promise<ApiList<SyncObjectItem> | { readonly unknown: string }> {
  try {
    return await readList<SyncObjectItem>(session, { path: `${path}/objects`, query: { cluster }, limit });
  } catch (error) {
    if (error instanceof ApiFailure) return { unknown: error.message };
    throw error;
  }
}

async function rolloutPage(session: Session, path: string): Promise<string> {
  const rollout = await read<RolloutObject>(session, path);
  if (isUnreadable(rollout)) return describeUnreadable(rollout, session.io.now());
  const { owner, number } = rollout.spec;
  const small = rollout.status.size <= manyClusters;
  const targets = await readList<TargetItem>(session, {
    path: `${pathOfObject({ kind: owner.kind, name: owner.name }, owner.namespace)}/rollouts/${number}/targets`,
    ...(small ? {} : { query: { state: "Failed,Unreachable" } }),
    limit: 1000,
  });
  return formatRolloutStatus({
    rollout,
    targets: targets.items,
    lines: "some",
    columns: tableStyle(session).columns,
    now: session.io.now(),
  });
}

/** The zone that reads Sources, where the installation has networks and says so. */
async function readingZone(session: Session): Promise<string | undefined> {
  try {
    const { items } = await session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" });
    return items.find(({ readsSources }) => readsSources === true)?.metadata.name;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

async function troubled(session: Session, path: string): Promise<readonly SyncObject[]> {
  const found: SyncObject[] = [];
  for (const state of ["Failed", "Unreachable", "Retrying", "Drifted"]) {
    const left = failingShown - found.length;
    if (left <= 0) break;
    found.push(
      ...(await readList<SyncObject>(session, { path: `${path}/syncs`, query: { state }, limit: left })).items,
    );
  }
  return found;
}

async function events(session: Session, path: string, options: DescribeOptions): Promise<readonly EventItem[]> {
  if (options.events < 1) return [];
  const query = { cluster: options.cluster };
  return (await readList<EventItem>(session, { path: `${path}/events`, query, limit: options.events })).items;
}

function read<T>(
  session: Session,
  path: string,
  query: Readonly<Record<string, string | undefined>> = {},
): Promise<T | UnreadableObject> {
  return session.api.call<T | UnreadableObject>({ method: "GET", path, query });
}
