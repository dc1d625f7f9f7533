/** A registered cluster as a plan goes by it, and what it has of one subject. */
import { defined } from "#shared/base/defined.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Applied, Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncState } from "#shared/fleet/sync/sync-state.ts";

/** What was assigned to the cluster last. */
export interface MemberSync extends Pick<Assigned, "action" | "revision" | "renderDigest" | "input" | "apply"> {
  readonly name: string;
  /** One word, of `syncState`. */
  readonly state: string;
  /** What it holds whole; absent: nothing was ever applied whole, and what comes is a first install. */
  readonly applied?: Pick<Applied, "renderDigest" | "event">;
}

export interface FleetMember {
  readonly cluster: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Without those of ClusterValues; see `effective-values.ts`. */
  readonly values: Values;
  readonly discoveredValues?: readonly string[];
  readonly syncs: readonly MemberSync[];
}

/** Only a newer version of Starling can read what is written of it. */
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
    // What was forgotten is on no cluster any more, as far as anybody asks.
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
