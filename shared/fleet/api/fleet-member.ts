/** A registered cluster as a plan needs it, with its Syncs of one owner. */
import { defined } from "#shared/base/defined.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Applied, Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncState } from "#shared/fleet/sync/sync-state.ts";

/** The last assignment of the cluster. */
export interface MemberSync extends Pick<Assigned, "action" | "revision" | "renderDigest" | "input" | "apply"> {
  readonly name: string;
  /** One state, of `syncState`. */
  readonly state: string;
  /**
   * The rendering that it holds whole; absent when nothing was ever applied whole, so that the next apply is an
   * install.
   */
  readonly applied?: Pick<Applied, "renderDigest" | "event">;
}

export interface FleetMember {
  readonly cluster: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Its own values, without ClusterValues; see `effective-values.ts`. */
  readonly values: Values;
  readonly discoveredValues?: readonly string[];
  readonly syncs: readonly MemberSync[];
}

/** Only a newer version of Starling can read the cluster's row. */
export interface UnreadableMember {
  readonly cluster: string;
  readonly unreadable: true;
}

export function fleetMember(row: FleetRow, syncs: readonly SyncRow[]): FleetMember {
  const { name: cluster, uid, labels, values, discoveredValues } = row;
  return {
    cluster,
    uid,
    labels,
    values,
    ...(discoveredValues === undefined ? {} : { discoveredValues }),
    // A forgotten Sync is on no cluster any more.
    syncs: syncs.filter(({ desired }) => desired.action !== "orphan").map(memberSync),
  };
}

function memberSync(row: SyncRow): MemberSync {
  const applied = row.observed?.applied;
  const { action, revision, renderDigest, input, apply } = row.desired;
  return {
    name: row.name,
    state: syncState(row, {}),
    action,
    revision,
    ...(renderDigest === undefined ? {} : { renderDigest }),
    ...(input === undefined ? {} : { input }),
    apply,
    ...(applied === undefined
      ? {}
      : { applied: { renderDigest: applied.renderDigest, ...defined({ event: applied.event }) } }),
  };
}
