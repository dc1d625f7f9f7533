/**
 * Guards: how many clusters may join a group, leave it, or lose a template within a window that ends now. A change over
 * that is withheld as a whole until somebody approves it by its hash, or the window has room for it. Pure.
 */

import { counted, firstOf } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf, hexOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { resolveCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { PlannedOwner } from "#shared/fleet/rollout/desired-plan.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { GuardApproval, Operations } from "#shared/fleet/rows/object-rows.ts";
import type { GuardedChange, GuardedKind, GuardState, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";

/** Approvals that were not used yet, and the length of their lives in seconds. */
const keptApprovals = 10;
const approvalSeconds = 86_400;
/** Changes that are kept apart: nearer ones are counted as the earlier of them. */
const keptChanges = 24;
const keptNames = 20;

/** The state of a guard that nothing is known of. */
export const noGuard: GuardState = { former: [], changes: [], withheld: [], used: [] };

/** The parts of an owner that a guard depends on. */
export type Guarded = Pick<PlannedOwner, "type" | "spec" | "operations">;

export interface GuardFacts {
  readonly row: Guarded;
  /** Absent before the planner has seen a guard. */
  readonly guard: GuardState | undefined;
  readonly now: Date;
}

/** A change that may be too much. */
export interface Change {
  readonly kind: GuardedKind;
  /** Names of the clusters, or of the templates. */
  readonly names: readonly string[];
  /** Number of clusters that it concerns. */
  readonly count: number;
  /** Number of members before the change. */
  readonly members: number;
}

export type Judgement =
  | { readonly passes: true; readonly by?: GuardApproval }
  | { readonly passes: false; readonly withheld: WithheldChange };

/** The owner with the installation's guard, when it is a group without a guard of its own. */
export function withDefaultGuard<Row extends Pick<PlannedOwner, "type" | "spec">>(
  row: Row,
  guard: GuardSpec | undefined,
): Row {
  if (guard === undefined || row.type !== "SyncGroup" || guardSpecOf(row) !== undefined) return row;
  return { ...row, spec: { ...row.spec, guard } };
}

export function guardSpecOf(row: Pick<PlannedOwner, "type" | "spec">): GuardSpec | undefined {
  return row.type === "SyncGroup" && "guard" in row.spec ? row.spec.guard : undefined;
}

/** Every guard that is in force: an edit that raises a guard, or removes it, is judged by the former one. */
export function guardsInForce({ row, guard }: GuardFacts, at: string): readonly GuardSpec[] {
  const spec = guardSpecOf(row);
  const replaced = guard?.spec !== undefined && !isSameGuard(guard.spec, spec) ? [guard.spec] : [];
  const former = (guard?.former ?? []).filter(({ until }) => until > at);
  return [...(spec === undefined ? [] : [spec]), ...replaced, ...former];
}

export function isGuarded(facts: GuardFacts): boolean {
  return facts.row.operations.deletion === undefined && guardsInForce(facts, facts.now.toISOString()).length > 0;
}

function isSameGuard(a: GuardSpec | undefined, b: GuardSpec | undefined): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

/** The hash of a change: it covers its kind and every name. */
function hashOfChange({ kind, names }: Pick<Change, "kind" | "names">): string {
  return hexOf(digestOf({ kind, names: [...names].sort() })).slice(0, 16);
}

/** Whether a change passes the strictest guard in force, or was approved. */
export function judgeChange(change: Change, facts: GuardFacts): Judgement {
  if (change.names.length === 0 || change.count === 0 || !isGuarded(facts)) return { passes: true };
  const at = facts.now.toISOString();
  const room = roomAt(change, facts, at);
  if (room.isEnough) return { passes: true };
  const hash = hashOfChange(change);
  const by = unusedApprovals(facts).find((approval) => approval.hash === hash);
  if (by !== undefined) return { passes: true, by };
  const { before, allowed, members } = room;
  const until = timesOf(facts).find((time) => roomAt(change, facts, time).isEnough);
  const since = facts.guard?.withheld.find((one) => one.hash === hash)?.since ?? at;
  const { kind, names, count } = change;
  const named = names.slice(0, keptNames);
  return {
    passes: false,
    withheld: { kind, count, before, allowed, members, names: named, hash, since, ...defined({ until }) },
  };
}

function roomAt({ kind, count, members }: Change, facts: GuardFacts, at: string) {
  const guards = guardsInForce(facts, at);
  const changes = changesWithin(facts.guard, guards, at);
  // A group of nobody has no share of anything: its first clusters join it freely.
  const base = changes[0]?.members ?? members;
  const before = changes.reduce((sum, { added, removed }) => sum + (kind === "additions" ? added : removed), 0);
  const bounds = guards.map((guard) => resolveCount(kind === "additions" ? guard.additions : guard.deletions, base));
  const allowed = Math.min(...bounds);
  const isFirst = kind === "additions" && base === 0;
  return { before, allowed, members: base, isEnough: isFirst || before + count <= allowed };
}

function changesWithin(
  guard: GuardState | undefined,
  guards: readonly GuardSpec[],
  at: string,
): readonly GuardedChange[] {
  const seconds = Math.max(0, ...guards.map(({ per }) => secondsOf(per)));
  return (guard?.changes ?? []).filter((change) => later(new Date(change.at), seconds) > at);
}

/** Times at which a change leaves the window, or a former guard ends, the nearest first. */
function timesOf({ row, guard }: GuardFacts): readonly string[] {
  if (guard === undefined) return [];
  const specs = [guardSpecOf(row) ?? [], guard.spec ?? [], guard.former].flat();
  const lengths = new Set(specs.map(({ per }) => secondsOf(per)));
  const left = guard.changes.flatMap(({ at }) => [...lengths].map((seconds) => later(new Date(at), seconds)));
  return [...left, ...guard.former.map(({ until }) => until)].sort();
}

/** The approvals that are still to be used. */
export function unusedApprovals({ row: { operations }, guard, now }: GuardFacts): readonly GuardApproval[] {
  const oldest = later(now, -approvalSeconds);
  return allApprovals(operations).filter(({ number, at }) => at > oldest && guard?.used.includes(number) !== true);
}

function allApprovals({ guard }: Pick<Operations, "guard">): readonly GuardApproval[] {
  if (guard === undefined) return [];
  const { earlier = [], ...newest } = guard;
  return [newest, ...earlier];
}

/** The operations with one approval more; the oldest ones are dropped. */
export function withApproval(operations: Operations, approval: GuardApproval): Operations {
  const earlier = allApprovals(operations).slice(0, keptApprovals - 1);
  return { ...operations, guard: { ...approval, ...(earlier.length === 0 ? {} : { earlier }) } };
}

/** The state after the guard of the spec was read. @returns undefined when nothing has ever been guarded. */
export function afterRead(facts: GuardFacts): GuardState | undefined {
  const { row, now, guard = noGuard } = facts;
  const at = now.toISOString();
  const spec = guardSpecOf(row);
  const { spec: last, ...kept } = guard;
  const replaced =
    last === undefined || isSameGuard(last, spec) ? [] : [{ ...last, until: later(now, secondsOf(last.per)) }];
  const former = [...guard.former.filter(({ until }) => until > at), ...replaced];
  const isAtEnd = spec === undefined && former.length === 0;
  const oldest = later(now, -approvalSeconds);
  const known = new Set(allApprovals(row.operations).flatMap((one) => (one.at > oldest ? one.number : [])));
  const used = guard.used.filter((number) => known.has(number));
  // The withheld changes pass first, and no approval serves twice.
  if (isAtEnd && guard.withheld.length + used.length === 0) return undefined;
  return { ...kept, ...defined({ spec }), former, used };
}

/** The state after changes that passed: those without an approval are counted in the window. */
export function afterChanges(
  state: GuardState,
  passed: readonly { readonly change: Change; readonly judgement: Judgement }[],
  facts: GuardFacts,
): GuardState {
  const at = facts.now.toISOString();
  let { changes, used } = state;
  changes = changesWithin(state, guardsInForce({ ...facts, guard: state }, at), at);
  for (const { change, judgement } of passed) {
    if (!judgement.passes || change.count === 0) continue;
    const { kind, count, members } = change;
    const { by } = judgement;
    if (by !== undefined) {
      used = [...used, by.number];
      // An approved change is no change of the window: the group was that large from its start.
      const more = kind === "additions" ? count : kind === "deletions" ? -count : 0;
      changes = changes.map((one) => ({ ...one, members: Math.max(0, one.members + more) }));
      continue;
    }
    const [added, removed] = kind === "additions" ? [count, 0] : [0, count];
    changes = [...changes, { at, members, added, removed }];
  }
  return { ...state, changes: merged(changes), used };
}

/** Two neighbours become one, at the later time, so that none leaves the window too early. */
function merged(changes: readonly GuardedChange[]): readonly GuardedChange[] {
  const [first, second, ...others] = changes;
  if (first === undefined || second === undefined || changes.length <= keptChanges) return changes;
  const one = {
    ...second,
    members: first.members,
    added: first.added + second.added,
    removed: first.removed + second.removed,
  };
  return merged([one, ...others]);
}

/** The state with what is withheld of these kinds now. */
function withWithheld(
  state: GuardState,
  kinds: readonly GuardedKind[],
  withheld: readonly WithheldChange[],
): GuardState {
  return { ...state, withheld: [...state.withheld.filter(({ kind }) => !kinds.includes(kind)), ...withheld] };
}

/** The state with what is withheld of the templates now. */
export function withTemplatesWithheld(state: GuardState, withheld: readonly WithheldChange[]): GuardState {
  return withWithheld(state, ["templates"], withheld);
}

const memberKinds: readonly GuardedKind[] = ["additions", "deletions"];

/** The changes of members that are withheld. */
export function membersWithheld(guard: GuardState | undefined): readonly WithheldChange[] {
  return (guard?.withheld ?? []).filter(({ kind }) => memberKinds.includes(kind));
}

/** The state with what is withheld of the members now. */
export function withMembersWithheld(state: GuardState, withheld: readonly WithheldChange[]): GuardState {
  return withWithheld(state, memberKinds, withheld);
}

/** A change of members that is withheld was approved, or the window has room for it, or no guard is in force. */
export function mayChangeMembers(facts: GuardFacts): boolean {
  const at = facts.now.toISOString();
  const approved = new Set(unusedApprovals(facts).map(({ hash }) => hash));
  const withheld = membersWithheld(facts.guard);
  const isFree = !isGuarded(facts);
  return withheld.some(({ hash, until }) => isFree || approved.has(hash) || (until !== undefined && until <= at));
}

/** One line for people. */
export function withheldText({ kind, count, before, allowed, members, names, sync = "" }: WithheldChange): string {
  if (kind === "objects") {
    const where = firstOf(names, { most: 3 });
    const on = `${names.length === 1 ? "cluster" : "clusters"} ${where}`;
    return `${count} of ${counted(members, "object")} of Sync ${sync} on ${on} would be pruned: the guard allows ${allowed}`;
  }
  const clusters = counted(count, "cluster");
  const more = before === 0 ? "" : `, after ${before} within the window`;
  const rule = `the guard allows ${allowed} of ${members}${more}`;
  if (kind === "templates") {
    const templates = `${names.length === 1 ? "template" : "templates"} ${names.join(", ")}`;
    return `${templates} would be deleted from ${clusters}: ${rule}`;
  }
  const shown = firstOf(names, { most: 3, count });
  return `${clusters} would ${kind === "additions" ? "be added" : "leave"} (${shown}): ${rule}`;
}
