/** The members that a guard lets a group have. Pure. */

import { type Member, memberChanges } from "#shared/fleet/rollout/desired-plan.ts";
import {
  afterChanges,
  type Change,
  type GuardFacts,
  isGuarded,
  judgeChange,
  withMembersWithheld,
} from "#shared/fleet/rollout/guard.ts";
import type { GuardState, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface SelectedNow {
  readonly facts: GuardFacts & { readonly guard: GuardState };
  readonly rolloutState: Pick<RolloutStateRow, "last" | "members">;
  /** The members before, by the present names of their stages. */
  readonly former: readonly Member[];
  /** The clusters that are selected now. */
  readonly found: readonly Member[];
  /** Whether a cluster that is not selected is registered: one that is not has left, and is counted. */
  readonly isRegistered: (cluster: string) => boolean;
  /** The clusters that had a Sync of the group at any time: they are no additions. It is read when clusters join. */
  readonly withSyncs: () => Promise<ReadonlySet<string>>;
}

export interface GuardedMembers {
  readonly members: readonly Member[];
  readonly guard: GuardState;
}

/**
 * Withholds clusters that join, and clusters that leave, when there are too many of them. A cluster that is withheld
 * from leaving stays a member and keeps what it has. The first rollout of a group is no addition.
 */
export async function guardedMembers(given: SelectedNow): Promise<GuardedMembers> {
  const { facts, rolloutState, former, found, isRegistered, withSyncs } = given;
  const isFirst = rolloutState.last === 0 || rolloutState.members === undefined;
  if (!isGuarded(facts) || isFirst) return { members: found, guard: withMembersWithheld(facts.guard, []) };
  const { joined, left } = memberChanges(former, found, undefined);
  const had = new Set(former.map(({ cluster }) => cluster));
  const strangers = new Set(joined).difference(had);
  const fresh = strangers.size === 0 ? [] : [...strangers.difference(await withSyncs())];
  const selected = new Set(found.map(({ cluster }) => cluster));
  // A cluster that was replaced under its name has not left the selection.
  const gone = left.filter((cluster) => !selected.has(cluster));
  const deselected = new Set(gone.filter(isRegistered));
  const changeOf = (kind: Change["kind"], names: readonly string[]): Change => {
    return { kind, names, count: names.length, members: former.length };
  };
  const unregistered = changeOf(
    "deletions",
    gone.filter((cluster) => !isRegistered(cluster)),
  );
  const guard = afterChanges(facts.guard, [{ change: unregistered, judgement: { passes: true } }], facts);
  const now = { ...facts, guard };
  const added = changeOf("additions", fresh);
  const removed = changeOf("deletions", [...deselected]);
  const passed = [added, removed].map((change) => ({ change, judgement: judgeChange(change, now) }));
  const withheld = passed.flatMap(({ judgement }) => (judgement.passes ? [] : [judgement.withheld]));
  const isWithheld = ({ kind }: Change) => withheld.some((one) => one.kind === kind);
  const pending = new Set(isWithheld(added) ? fresh : []);
  const kept = isWithheld(removed) ? former.filter(({ cluster }) => deselected.has(cluster)) : [];
  const leaving = kept.map((member): Member => ({ ...member, leaving: true }));
  return {
    members: [...found.filter(({ cluster }) => !pending.has(cluster)), ...leaving],
    guard: withMembersWithheld(afterChanges(guard, passed, now), withheld),
  };
}
