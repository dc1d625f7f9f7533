/** The steps of an apply, and which hooks run, have ended, and are to be deleted: pure functions of the stored state. */

import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ApplyPlan, type OrderProblem, planSteps } from "#shared/kube/apply-steps.ts";
import type { HookRecord, Inventory, InventoryEntry, Progress } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import type { ApplyEvent, HookMarks } from "#shared/kube/order-marks.ts";
import type { RememberedInstall } from "#shared/kube/parent-object.ts";
import type { Rendering } from "#shared/source/rendering.ts";

export interface ApplyOrder extends ApplyPlan {
  /** Objects of the rendering, for its event. */
  readonly objects: readonly ManifestObject[];
  /** Hooks of an upgrade differ from those of an install. */
  readonly isByEvent: boolean;
  /** The record of hooks, stored or new. */
  readonly record: HookRecord;
  /** By `objectIdKey` of every place where a hook may be. */
  readonly hooksByKey: ReadonlyMap<string, HookMarks>;
}

interface Ground {
  /** The annotations of the rendering's objects. */
  readonly renderDigest: string;
  readonly before: Inventory;
  readonly row: SyncRow;
  /** The parent object's record, as the cluster remembers it. */
  readonly install: RememberedInstall | undefined;
}

/** The result is the same in every run of an attempt. */
export function orderOf(
  rendering: Rendering,
  { renderDigest, before, row, install }: Ground,
): ApplyOrder | { readonly problems: readonly OrderProblem[] } {
  const { defaultNamespace } = row.desired.apply;
  const stored = before.hooks?.renderDigest === renderDigest ? before.hooks : undefined;
  // A rendering that was applied whole has run its hooks, also when another rendering was tried since.
  const isWhole = row.observed?.applied?.renderDigest === renderDigest;
  const next = stored?.event ?? (isInstalled(before, row, install) ? "upgrade" : "install");
  const event = isWhole ? appliedEvent(row, renderDigest) : next;
  const objects = rendering[event];
  const plan = planSteps(objects, { event, defaultNamespace });
  if ("problems" in plan) return plan;
  const hooksByKey = new Map(
    [...plan.hooks].flatMap(([object, marks]) =>
      placesOf(objectIdOf(object), defaultNamespace).map((id) => [objectIdKey(id), marks] as const),
    ),
  );
  const recorded = new Set(before.entries.map(({ id }) => objectIdKey(id)));
  // A helper object that its policy deleted is made again for the hook that runs again.
  const isLeft = (key: string) => hooksByKey.get(key)?.isAid !== true || recorded.has(key);
  const succeeded = isWhole ? [...hooksByKey.keys()] : (stored?.succeeded ?? []).filter(isLeft);
  const isByEvent = rendering.install !== rendering.upgrade;
  return { ...plan, objects, isByEvent, hooksByKey, record: { renderDigest, event, succeeded } };
}

/**
 * The event by which the cluster's rendering was applied; a rendering that the cluster does not hold is an upgrade
 * next.
 */
export function appliedEvent({ observed }: Pick<SyncRow, "observed">, renderDigest: string): ApplyEvent {
  const applied = observed?.applied;
  return applied?.renderDigest === renderDigest ? (applied.event ?? "upgrade") : "upgrade";
}

/**
 * Something of the Sync was applied whole before; the leftovers of an unfinished install do not count. A cluster whose
 * rows were forgotten has its objects, and its memory decides.
 */
function isInstalled({ entries, hooks }: Inventory, { observed }: SyncRow, install: Ground["install"]): boolean {
  if (observed?.applied !== undefined || install === "over") return true;
  return hooks?.event !== "install" && entries.some(({ hook }) => hook === undefined);
}

/** Whether a later run needs this run's record, although its time was not up. */
export function isInSteps({ before, after, hooks }: ApplyPlan): boolean {
  return before.length + after.length > 1 || hooks.size > 0;
}

interface HookState {
  readonly entries: readonly InventoryEntry[];
  readonly progress: Progress;
  readonly succeeded: readonly string[];
}

/** Hooks whose phase has ended, regularly or early, and whose policy deletes them. */
export function hooksToDelete(
  order: ApplyOrder,
  { entries, progress, succeeded }: HookState,
): readonly InventoryEntry[] {
  const { passed = 0, failed = [], failure } = progress;
  const ended = { succeeded: new Set(succeeded), failed: new Set(failed) };
  const beforeSync = order.before.filter(({ phase }) => phase === "PreSync").length;
  const ends = { PreSync: beforeSync, Sync: order.before.length, PostSync: order.before.length + order.after.length };
  return entries.filter(({ id, hook }) => {
    const key = objectIdKey(id);
    const marks = order.hooksByKey.get(key);
    const phase = marks?.until[order.record.event];
    if (hook === undefined || marks === undefined || phase === undefined) return false;
    const isOver = failure !== undefined || phase === "SyncFail" || passed >= ends[phase];
    const policy = ended.failed.has(key) ? "HookFailed" : ended.succeeded.has(key) ? "HookSucceeded" : undefined;
    return isOver && policy !== undefined && marks.deletePolicies.has(policy);
  });
}
