/** The members that a guard lets a group have. */

import type { Fleet } from "#functions/rollout/read/fleet.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { stateEntries } from "#functions/rollout/read/read-clusters.ts";
import { type Member, memberChanges, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import {
  afterChanges,
  afterRead,
  type Change,
  type GuardFacts,
  isGuarded,
  judgeChange,
  withMembersWithheld,
} from "#shared/fleet/rollout/guard.ts";
import type { GuardState } from "#shared/fleet/rows/rollout-rows.ts";

interface Found {
  readonly known: Known;
  /** The members before, by the present names of their stages. */
  readonly former: readonly Member[];
  /** The clusters that are selected now. */
  readonly found: readonly Member[];
  readonly fleet: Fleet;
}

interface Guarded {
  readonly members: readonly Member[];
  readonly guard: GuardState | undefined;
}

/**
 * Withholds clusters that join, and clusters that leave, when there are too many of them. A cluster that is withheld
 * from leaving stays a member and keeps what it has. The first rollout of a group is no addition.
 */
export async function guardMembers({ known, former, found, fleet }: Found, ports: PlannerPorts): Promise<Guarded> {
  const { row, rolloutState } = known;
  const state = afterRead({ row, guard: rolloutState.guard, now: ports.clock.now() });
  const facts: GuardFacts = { row, guard: state, now: ports.clock.now() };
  if (state === undefined) return { members: found, guard: state };
  const isFirst = rolloutState.last === 0 || rolloutState.members === undefined;
  if (!isGuarded(facts) || isFirst) return { members: found, guard: withMembersWithheld(state, []) };
  const { joined, left } = memberChanges(former, found, undefined);
  const had = new Set(former.map(({ cluster }) => cluster));
  const fresh = await withoutSyncs(
    known,
    joined.filter((cluster) => !had.has(cluster)),
    ports,
  );
  const deselected = new Set(left.filter((cluster) => isRegistered(cluster, { known, fleet })));
  const changeOf = (kind: Change["kind"], names: readonly string[]): Change => {
    return { kind, names, count: names.length, members: former.length };
  };
  const added = changeOf("additions", fresh);
  const removed = changeOf("deletions", [...deselected]);
  const passed = [added, removed].map((change) => ({ change, judgement: judgeChange(change, facts) }));
  const withheld = passed.flatMap(({ judgement }) => (judgement.passes ? [] : [judgement.withheld]));
  const isWithheld = ({ kind }: Change) => withheld.some((one) => one.kind === kind);
  const pending = new Set(isWithheld(added) ? fresh : []);
  const kept = isWithheld(removed) ? former.filter(({ cluster }) => deselected.has(cluster)) : [];
  const leaving = kept.map((member): Member => ({ ...member, leaving: true }));
  const counted = afterChanges(state, passed, facts);
  return {
    members: [...found.filter(({ cluster }) => !pending.has(cluster)), ...leaving],
    guard: withMembersWithheld(counted, withheld),
  };
}

/** Clusters that had a Sync of the group at any time are no additions. */
async function withoutSyncs({ owner }: Known, joined: readonly string[], { table }: PlannerPorts) {
  if (joined.length === 0) return joined;
  const entries = await stateEntries(owner, table);
  return [...new Set(joined).difference(new Set(entries.map(({ cluster }) => cluster)))];
}

/** A cluster that is not registered any more has left, whatever a guard says. */
function isRegistered(cluster: string, { known, fleet }: Pick<Found, "known" | "fleet">): boolean {
  const { names } = relationOf(known.row).clusters;
  const isAsked = names === undefined || names.includes(cluster);
  return !isAsked || fleet.clusters.some(({ name }) => name === cluster);
}
