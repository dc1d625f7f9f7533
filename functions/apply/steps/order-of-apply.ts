/** The steps of an apply, and which of its hooks are run, over, and to be deleted: pure functions of what is stored. */

import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ApplyPlan, type OrderProblem, planSteps } from "#shared/kube/apply-steps.ts";
import type { HookRecord, Inventory, InventoryEntry, Progress } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import type { ApplyEvent, HookMarks } from "#shared/kube/order-marks.ts";
import type { RememberedInstall } from "#shared/kube/parent-object.ts";
import type { Rendering } from "#shared/source/rendering.ts";

export interface ApplyOrder extends ApplyPlan {
  /** Of the rendering, for its event. */
  readonly objects: readonly ManifestObject[];
  /** An upgrade has others than an install. */
  readonly isByEvent: boolean;
  /** As it is stored, or begins. */
  readonly record: HookRecord;
  /** By `objectIdKey` of every place that one may have. */
  readonly hooksByKey: ReadonlyMap<string, HookMarks>;
}

interface Ground {
  /** Of the rendering. */
  readonly renderDigest: string;
  readonly before: Inventory;
  readonly row: SyncRow;
  /** As the cluster remembers it. */
  readonly install: RememberedInstall | undefined;
}

/** The same in every run of an attempt. */
export function orderOf(
  rendering: Rendering,
  { renderDigest, before, row, install }: Ground,
): ApplyOrder | { readonly problems: readonly OrderProblem[] } {
  const { defaultNamespace } = row.desired.apply;
  const stored = before.hooks?.renderDigest === renderDigest ? before.hooks : undefined;
  // What was applied whole has had its hooks, also where another rendering was tried since.
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
  // An aid that went by its policy is made again for what runs again with it.
  const isLeft = (key: string) => hooksByKey.get(key)?.isAid !== true || recorded.has(key);
  const succeeded = isWhole ? [...hooksByKey.keys()] : (stored?.succeeded ?? []).filter(isLeft);
  const isByEvent = rendering.install !== rendering.upgrade;
  return { ...plan, objects, isByEvent, hooksByKey, record: { renderDigest, event, succeeded } };
}

/** What the apply of a rendering that the cluster holds was: of what it holds not, the next is an upgrade. */
export function appliedEvent({ observed }: Pick<SyncRow, "observed">, renderDigest: string): ApplyEvent {
  const applied = observed?.applied;
  return applied?.renderDigest === renderDigest ? (applied.event ?? "upgrade") : "upgrade";
}

/**
 * Something of the Sync was applied whole before: what is there of an install that did not come to its end is not. A
 * cluster whose rows were forgotten has its objects, and knows better than they.
 */
function isInstalled({ entries, hooks }: Inventory, { observed }: SyncRow, install: Ground["install"]): boolean {
  if (observed?.applied !== undefined || install === "over") return true;
  return hooks?.event !== "install" && entries.some(({ hook }) => hook === undefined);
}

/** Whether a later run has to know where this one came to, although its time was not up. */
export function isInSteps({ before, after, hooks }: ApplyPlan): boolean {
  return before.length + after.length > 1 || hooks.size > 0;
}

interface HookState {
  readonly entries: readonly InventoryEntry[];
  readonly progress: Progress;
  readonly succeeded: readonly string[];
}

/** Hooks whose phase is over, or ended early, and that their policy does not leave there. */
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
