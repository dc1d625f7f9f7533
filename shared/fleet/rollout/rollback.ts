/** Rollbacks that people ask for. The plan of one: its stages, and the rollouts that it rejects. Pure. */

import { templateNames } from "#shared/fleet/rollout/lost-templates.ts";
import {
  backAt,
  behindRollback,
  coveredBy,
  neverAsked,
  newestTaken,
  rollbackTarget,
  takenAfter,
} from "#shared/fleet/rollout/order.ts";
import { isRejected } from "#shared/fleet/rollout/rejection.ts";
import type { Operations, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { LedgerEntry, RolloutRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

type State = Pick<RolloutStateRow, "stages" | "ledger" | "rejected">;

/** The rollback that the planner has not started; undefined without one. */
export function newRollback(
  { operations: { rollback } }: Pick<OwnerRow, "operations">,
  { handledRollback }: Pick<RolloutStateRow, "handledRollback">,
): Operations["rollback"] {
  return rollback?.number === handledRollback ? undefined : rollback;
}

export interface RollbackPlan {
  readonly to: number;
  readonly revision: string;
  /** Names of the stages that go back, and the number of their clusters. */
  readonly stages: readonly { readonly name: string; readonly members: number }[];
  /** Rollouts that no cluster gets any more. */
  readonly rejects: readonly number[];
  /** Names of the templates that a later rollout added and the spec still has: their Syncs stay. */
  readonly stay: readonly string[];
  /** Names of those of them that are deleted instead, because the request says so. */
  readonly deletes: readonly string[];
  /** Names of the templates that a later rollout dropped: their Syncs are created again. */
  readonly createdAgain: readonly string[];
}

/** Why a rollback cannot be made, and of which field; or what it does. */
export type RollbackAnswer =
  | { readonly ok: true; readonly plan: Omit<RollbackPlan, "stay" | "deletes" | "createdAgain"> }
  | { readonly ok: false; readonly message: string };

/** @param named - number or revision of the rollout to go back to; without it, the one before the newest. */
export function rollbackPlan(rolloutState: State, named: number | string | undefined): RollbackAnswer {
  const { ledger } = rolloutState;
  const asked = typeof named === "string" ? numberOf(rolloutState, named) : named;
  if (asked === undefined && named !== undefined)
    return no(`no kept rollout has revision ${named}; the newest with it may be rejected, or past: name a number`);
  const newest = ledger.find(({ number }) => number === newestTaken(rolloutState));
  if (newest === undefined) return no("nothing was rolled out yet");
  if (asked === undefined && newest.rollback !== undefined)
    return no(`rollout ${newest.number} is a rollback to ${newest.rollback}; name an older one: --to N`);
  const to = asked ?? rollbackTarget(rolloutState);
  const known = ledger.map(({ number }) => number).join(", ");
  if (to === undefined) return no(`no stage had a rollout before ${newest.number} that it could get again`);
  const entry = ledger.find(({ number }) => number === to);
  if (entry === undefined) return no(`rollout ${to} is not kept; these are: ${known}`);
  if (entry.rollback !== undefined)
    return no(`rollout ${to} is a rollback; go back to the rollout that it went to: --to ${entry.rollback}`);
  if (isRejected(rolloutState, to)) return no(`rollout ${to} is rejected; unreject it first, or name another: --to N`);
  // A stage that had nothing else keeps what it has, so that the stages before it can go back.
  const [unasked] = neverAsked(rolloutState, to).flatMap(({ name, previous }) =>
    previous === undefined ? [] : [{ name, had: behindRollback(rolloutState, previous) }],
  );
  if (unasked !== undefined) {
    const { name, had } = unasked;
    return no(`stage ${name} asks for approvals, and rollout ${to} never passed it; name one that it had: --to ${had}`);
  }
  const covered = coveredBy(rolloutState, to);
  const back = backAt(rolloutState, covered, to);
  if (back !== undefined)
    return no(`rollout ${back} is a rollback to ${to} already; starling rollout retry tries failed clusters again`);
  const stages = covered.map(({ name, members }) => ({ name, members }));
  if (stages.length === 0) return no(`no stage has had rollout ${to} and has, or updates to, anything newer`);
  return { ok: true, plan: { to, revision: entry.revision, stages, rejects: takenAfter(rolloutState, to) } };
}

/**
 * The templates that a rollback does not take back as they were.
 * @param rollouts - the kept ones; nothing is said of those that are missing.
 * @param desired - names of the templates that the spec has.
 */
export function templatesAfter(
  { to, rejects }: Pick<RollbackPlan, "to" | "rejects">,
  rollouts: readonly Pick<RolloutRow, "number" | "plan">[],
  desired: ReadonlySet<string>,
): Pick<RollbackPlan, "stay" | "createdAgain"> {
  const back = rollouts.find(({ number }) => number === to);
  if (back === undefined) return { stay: [], createdAgain: [] };
  const had = templateNames(back);
  const later = rollouts.filter(({ number }) => rejects.includes(number)).map(templateNames);
  const added = later.reduce((all, names) => all.union(names), new Set<string>()).difference(had);
  return {
    stay: [...added.intersection(desired)].sort(),
    createdAgain: [...had].filter((name) => later.some((names) => !names.has(name))).sort(),
  };
}

/**
 * The newest rollout with a revision that is not rejected. @param text - a revision, or at least seven characters of
 * the id of its commit.
 */
function numberOf(rolloutState: State, text: string): number | undefined {
  const isNamed = ({ revision }: LedgerEntry) => {
    const id = revision.split(":").at(-1) ?? revision;
    return revision === text || (text.length >= shortestId && id.startsWith(text));
  };
  const found = rolloutState.ledger.find(
    (entry) => entry.rollback === undefined && isNamed(entry) && !isRejected(rolloutState, entry.number),
  );
  return found?.number;
}

const shortestId = 7;

function no(message: string): RollbackAnswer {
  return { ok: false, message };
}
