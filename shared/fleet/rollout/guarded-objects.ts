/** Prunes that the guard of a group withholds: a worker reports them, and people let them through. Pure. */

import {
  type Guarded,
  type GuardFacts,
  guardsInForce,
  isGuarded,
  noGuard,
  unusedApprovals,
} from "#shared/fleet/rollout/guard.ts";
import type { GuardApproval } from "#shared/fleet/rows/object-rows.ts";
import type { GuardState, RolloutStateRow, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import type { Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Clusters that are named where the same prune failed. */
const keptClusters = 20;

/** The bounds of the objects that an assignment of this rollout may prune, and what people let through. */
export function objectBounds(
  row: Guarded,
  { guard }: Pick<RolloutStateRow, "guard">,
  { rollout, now }: { readonly rollout: number; readonly now: Date },
): Pick<Assigned, "objectBounds" | "mayPrune"> {
  const facts: GuardFacts = { row, guard, now };
  if (!isGuarded(facts)) return {};
  // A guard that an older version stored has no bound of objects.
  const bounds = guardsInForce(facts, now.toISOString()).flatMap(
    ({ objects }: { objects?: GuardBound }) => objects ?? [],
  );
  if (bounds.length === 0) return {};
  const approved = (guard?.mayPrune ?? []).filter((one) => one.rollout === rollout).map(({ hash }) => hash);
  return { objectBounds: bounds, ...(approved.length === 0 ? {} : { mayPrune: approved }) };
}

type GuardBound = NonNullable<Assigned["objectBounds"]>[number];

/** The end of a cluster's turn, with what its Syncs say about prunes. */
export interface EndedTurn {
  readonly cluster: string;
  readonly rollout: number;
  /** The Syncs of the turn. */
  readonly syncs: readonly SyncRow[];
  readonly at: string;
}

/** The state after a turn: its cluster waits for no other prune than those that failed in it. */
export function afterTurn(guard: GuardState | undefined, turn: EndedTurn): GuardState | undefined {
  if (guard === undefined) return undefined;
  const others = guard.withheld.flatMap((one) => withoutCluster(one, turn.cluster));
  const withheld = turn.syncs.reduce<readonly WithheldChange[]>((list, sync) => withPrune(list, sync, turn), others);
  return isSameList(withheld, guard.withheld) ? guard : { ...guard, withheld };
}

function withoutCluster(one: WithheldChange, cluster: string): readonly WithheldChange[] {
  if (one.kind !== "objects" || !one.names.includes(cluster)) return [one];
  const names = one.names.filter((name) => name !== cluster);
  return names.length === 0 ? [] : [{ ...one, names }];
}

function withPrune(
  withheld: readonly WithheldChange[],
  { name, desired, observed }: SyncRow,
  { cluster, rollout, at }: Omit<EndedTurn, "syncs">,
): readonly WithheldChange[] {
  const prune = observed?.attempt === desired.attempt ? observed.guardedPrune : undefined;
  if (prune === undefined) return withheld;
  const isSame = (one: WithheldChange) => one.kind === "objects" && one.hash === prune.hash && one.rollout === rollout;
  const known = withheld.find(isSame);
  if (known === undefined)
    return [...withheld, { kind: "objects", ...prune, before: 0, names: [cluster], since: at, sync: name, rollout }];
  if (known.names.length >= keptClusters) return withheld;
  return withheld.map((one) => (one === known ? { ...known, names: [...known.names, cluster].sort() } : one));
}

/** Number of clusters on which prunes of a rollout are withheld; infinite where not all of them are named. */
export function prunedClusters(guard: GuardState | undefined, rollout: number): number {
  const withheld = (guard?.withheld ?? []).filter((one) => one.kind === "objects" && one.rollout === rollout);
  if (withheld.some(({ names }) => names.length >= keptClusters)) return Number.POSITIVE_INFINITY;
  return new Set(withheld.flatMap(({ names }) => names)).size;
}

function isSameList(a: readonly WithheldChange[], b: readonly WithheldChange[]): boolean {
  return a.length === b.length && a.every((one, index) => one === b[index]);
}

/** The state without the prunes of rollouts that no stage has any more. */
export function withoutPast(guard: GuardState, { stages }: Pick<RolloutStateRow, "stages">): GuardState {
  const numbers = new Set(stages.flatMap(({ current, updatingTo }) => [current, updatingTo?.rollout]));
  const isOpen = ({ rollout }: { readonly rollout?: number }) => rollout === undefined || numbers.has(rollout);
  const withheld = guard.withheld.filter(isOpen);
  const mayPrune = guard.mayPrune?.filter(isOpen) ?? [];
  if (withheld.length === guard.withheld.length && mayPrune.length === (guard.mayPrune ?? []).length) return guard;
  const { mayPrune: _mayPrune, ...kept } = guard;
  return { ...kept, withheld, ...(mayPrune.length === 0 ? {} : { mayPrune }) };
}

export interface ReleasedPrunes {
  readonly guard: GuardState;
  /** The clusters that get another turn; when both are absent, all that failed. */
  readonly clusters?: readonly string[];
  /** Clusters whose turn had ended well before. */
  readonly catchingUp?: readonly string[];
}

/**
 * The prunes that a check met when its cluster had no turn: the planner does not know them.
 * @param syncs - Syncs of one owner that have failed.
 */
export function prunesOfChecks(syncs: readonly SyncRow[], guard: GuardState | undefined): readonly WithheldChange[] {
  const known = new Set(guard?.withheld.map(({ hash }) => hash));
  return syncs
    .filter(({ observed }) => observed?.guardedPrune !== undefined && !known.has(observed.guardedPrune.hash))
    .reduce<readonly WithheldChange[]>((list, sync) => {
      const { cluster, desired, observed } = sync;
      return withPrune(list, sync, { cluster, rollout: desired.rollout, at: observed?.since ?? desired.assignedAt });
    }, []);
}

/** The prunes that were approved, or that no guard withholds any more. @returns undefined when there are none. */
export function releasedPrunes(
  facts: GuardFacts & { readonly rolloutState: Pick<RolloutStateRow, "stages"> },
): ReleasedPrunes | undefined {
  const approvals = unusedApprovals(facts);
  return releasedTurns(facts, approvals) ?? releasedChecks(facts, approvals);
}

/** A cluster without a turn gets what its stage has: every such rollout may prune it. */
function releasedChecks(
  { guard = noGuard, rolloutState: { stages } }: Parameters<typeof releasedPrunes>[0],
  approvals: readonly GuardApproval[],
): ReleasedPrunes | undefined {
  const released = approvals.filter(({ clusters }) => clusters !== undefined);
  if (released.length === 0) return undefined;
  const rollouts = new Set(stages.flatMap(({ current }) => current ?? []));
  return {
    guard: {
      ...guard,
      used: [...guard.used, ...released.map(({ number }) => number)],
      mayPrune: [
        ...(guard.mayPrune ?? []),
        ...released.flatMap(({ hash }) => [...rollouts].map((rollout) => ({ hash, rollout }))),
      ],
    },
    catchingUp: [...new Set(released.flatMap(({ clusters = [] }) => clusters))].sort(),
  };
}

function releasedTurns(facts: GuardFacts, approvals: readonly GuardApproval[]): ReleasedPrunes | undefined {
  const { guard } = facts;
  if (guard === undefined) return undefined;
  const isFree = !isGuarded(facts);
  const approvalOf = ({ hash }: WithheldChange) => approvals.find((approval) => approval.hash === hash);
  const released = guard.withheld.filter((one) => one.kind === "objects" && (isFree || approvalOf(one) !== undefined));
  if (released.length === 0) return undefined;
  const names = [...new Set(released.flatMap((one) => one.names))];
  const isWhole = released.every((one) => one.names.length < keptClusters);
  return {
    guard: {
      ...guard,
      withheld: guard.withheld.filter((one) => !released.includes(one)),
      used: [...guard.used, ...released.flatMap((one) => approvalOf(one)?.number ?? [])],
      mayPrune: [
        ...(guard.mayPrune ?? []),
        ...released.flatMap(({ hash, rollout }) => (rollout === undefined ? [] : [{ hash, rollout }])),
      ],
    },
    ...(isWhole ? { clusters: names } : {}),
  };
}
