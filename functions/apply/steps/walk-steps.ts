/**
 * Walks through the steps of an apply: each step is applied, and must be ready before the next. A step that is not
 * ready yet is left to another run. After a final failure come the hooks for that case.
 */

import {
  bothHealths,
  deletionWarningsOf,
  healthOf,
  problemOfObject,
  seenHealth,
} from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { type ApplyOrder, hooksToDelete, isInSteps } from "#functions/apply/steps/order-of-apply.ts";
import { progressAfter } from "#functions/apply/steps/progress.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { unfinishedApply } from "#functions/apply/steps/unfinished-apply.ts";
import { counted } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import type { StatedProblem } from "#shared/fleet/rows/stated-reason.ts";
import type { ObjectWarning } from "#shared/fleet/rows/sync-row.ts";
import { healthFinding, type SeenHealth } from "#shared/fleet/sync/observe.ts";
import type { ApplyStep, OrderProblem } from "#shared/kube/apply-steps.ts";
import type { AppliedObject } from "#shared/kube/engine/apply-object.ts";
import { type ApplySetResult, applySet } from "#shared/kube/engine/apply-set.ts";
import { checkHealth, type UnreadyObject } from "#shared/kube/engine/check-health.ts";
import { type PruneResult, pruneSet } from "#shared/kube/engine/prune-set.ts";
import {
  changeInventory,
  type HookRecord,
  type Inventory,
  type InventoryChange,
  type InventoryEntry,
  type Progress,
} from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

interface Walk {
  readonly context: OperationContext;
  readonly order: ApplyOrder;
  /** The inventory as it is stored. */
  readonly inventory: Inventory;
  readonly progress: Progress;
  /** Objects that an earlier apply began to delete and that still exist. */
  readonly going: readonly StatedProblem[];
}

export class StepWalk {
  inventory: Inventory;
  progress: Progress;
  /** `objectIdKey` of each hook that has finished. */
  succeeded: readonly string[];
  timeWasUp = false;
  /** Objects that this run had to apply. */
  readonly objects: AppliedObject[] = [];
  /** Messages about objects that were deleted, or stay. */
  readonly deletions: ObjectWarning[] = [];

  readonly #walk: Walk;

  constructor(walk: Walk) {
    this.#walk = walk;
    this.inventory = walk.inventory;
    this.progress = walk.progress;
    this.succeeded = walk.order.record.succeeded;
  }

  /**
   * @param place.from - number of steps before these.
   * @param place.last - whether something waits for the last of these steps to be ready.
   * @returns the reason when the walk stopped early; undefined when it finished.
   */
  async over(
    steps: readonly ApplyStep[],
    { from, last }: { readonly from: number; readonly last: "awaited" | "left" },
  ): Promise<OperationResult | undefined> {
    const { passed = 0 } = this.progress;
    for (const [index, step] of steps.entries()) {
      if (from + index < passed) continue;
      const pendingReports = from + index > 0 ? this.#toReportBefore(step) : undefined;
      if (pendingReports !== undefined) return pendingReports;
      const isLeft = last === "left" && index === steps.length - 1;
      const finding = await this.#take(step, isLeft ? "left" : "awaited");
      if (finding !== undefined) return finding;
      this.progress = { ...this.progress, passed: from + index + 1 };
    }
    return undefined;
  }

  /**
   * Deletes the hooks that have ended according to the stored inventory. The results of this run must be stored before
   * anything acts on them; otherwise the next run would search for objects that are gone.
   */
  async deleteHooks(): Promise<PruneResult | undefined> {
    const { context, inventory, order, progress } = this.#walk;
    const { entries, setId } = inventory;
    const candidates = hooksToDelete(order, { entries, progress, succeeded: order.record.succeeded });
    if (candidates.length === 0) return undefined;
    const { client, claim, ports, deadline } = context;
    const common = { setId, unrecorded: [], keepUids: new Set<string>(), claim, clock: ports.clock, deadline };
    const result = await pruneSet(client, { ...common, candidates });
    this.deletions.push(...deletionWarningsOf(result));
    if (result.outcome !== "refused") {
      this.inventory = changeInventory(this.inventory, { recorded: [], settled: result.settled });
    }
    return result;
  }

  /** Uses what is known now. */
  hooksLeft(): readonly InventoryEntry[] {
    const { entries } = this.inventory;
    return hooksToDelete(this.#walk.order, { entries, progress: this.progress, succeeded: this.succeeded });
  }

  /** True when no earlier run of the attempt applied anything. */
  isOfThisRun(): boolean {
    return this.#walk.progress.passed === undefined && this.objects.every(({ outcome }) => outcome !== "resumed");
  }

  /** Health of the objects that this run applied and that stay. */
  health(): SeenHealth {
    return healthOf(
      this.objects.flatMap((object) =>
        "health" in object && object.entry.hook === undefined ? [{ id: object.id, ...object.health }] : [],
      ),
    );
  }

  /** Number of objects that stay. */
  total(): number {
    return this.#planned().filter((object) => !this.#walk.order.hooks.has(object)).length;
  }

  /** Number of objects of the rendering that this run and earlier ones applied. */
  done(): number {
    const recorded = this.objects.flatMap((object) => ("entry" in object ? [objectIdKey(object.id)] : []));
    const known = new Set([...this.progress.applied, ...this.succeeded, ...recorded]);
    return this.#planned().filter((object) => this.#isAmong(object, known)).length;
  }

  /** Runs once in each attempt. The walk does not wait for deletions: a finalizer may block one for ever. */
  #toReportBefore(step: ApplyStep): OperationResult | undefined {
    const { context, progress } = this.#walk;
    const { observed, desired } = context.row;
    const problems = this.#goingBeside(step);
    // A run that passed a step reported it then; later messages may differ.
    const isReported =
      progress.passed !== undefined ||
      (observed?.attempt === desired.attempt && observed.problems.some(({ reason }) => reason === "Terminating"));
    if (problems.length === 0 || isReported) return undefined;
    const message = `${placeOf(step)} is next; ${counted(problems.length, "object")} of before still being deleted`;
    return { phase: "Applying", reason: "StepNotReady", message, problems };
  }

  /** After the prune, nothing is deleted. */
  #goingBeside(step: ApplyStep): readonly StatedProblem[] {
    const { order, going } = this.#walk;
    return order.before.includes(step) ? going : [];
  }

  async #take(step: ApplyStep, last: "awaited" | "left"): Promise<OperationResult | undefined> {
    const { context, order } = this.#walk;
    const { row, client, ports, deadline } = context;
    const { renderDigest } = order.record;
    const ended = new Set([...this.succeeded, ...(this.progress.failed ?? [])]);
    const part = step.objects.filter((object) => !order.hooks.has(object) || !this.#isAmong(object, ended));
    if (part.length === 0) return undefined;
    const begun = this.progress.applied.length;
    const result = await applySet(client, {
      objects: order.objects,
      part: new Set(part),
      hooks: { of: order.hooks, run: { renderDigest, attempt: row.desired.attempt } },
      setId: this.inventory.setId,
      defaultNamespace: row.desired.apply.defaultNamespace,
      inventory: this.inventory,
      done: new Set(this.progress.applied),
      standingOf: (setId, id) => context.siblings.standingOf(setId, id),
      clock: ports.clock,
      deadline,
    });
    const hooks = this.#note(result);
    if (result.outcome !== "applied") {
      const goesOn = result.timeWasUp && this.progress.applied.length > begun;
      return unfinishedApply(result, { goesOn, total: this.#planned().length, done: this.done() });
    }
    return this.#judge(step, hooks, last === "left" ? healthOf([]) : await this.#healthOf(result));
  }

  /** @returns how far its hooks are. */
  #note(result: ApplySetResult): readonly UnreadyObject[] {
    this.objects.push(...result.objects);
    this.timeWasUp ||= result.timeWasUp;
    this.inventory = changeInventory(this.inventory, {
      recorded: result.objects.flatMap((object) => ("entry" in object ? [object.entry] : [])),
      settled: [],
      definitions: result.definitions,
    });
    const hooks = result.objects.flatMap((object) =>
      "health" in object && object.entry.hook !== undefined ? [{ id: object.id, ...object.health }] : [],
    );
    const keysOf = (status: UnreadyObject["status"]) =>
      hooks.filter((hook) => hook.status === status).map(({ id }) => objectIdKey(id));
    this.succeeded = [...this.succeeded, ...keysOf("Current")];
    const failed = [...(this.progress.failed ?? []), ...keysOf("Failed")];
    this.progress = { ...progressAfter(this.progress, { result }), ...(failed.length === 0 ? {} : { failed }) };
    return hooks;
  }

  #judge(step: ApplyStep, hooks: readonly UnreadyObject[], lasting: SeenHealth): OperationResult | undefined {
    const where = placeOf(step);
    const failed = hooks.filter(({ status }) => status === "Failed");
    const [first] = failed;
    if (first !== undefined) {
      const message = `${where}: the hook ${describeObject(first.id)} failed: ${first.message}`;
      const problems = failed.map((hook) => problemOfObject(hook.id, hook));
      return { phase: "Failed", reason: "HookFailed", message, problems, objects: this.#counted(lasting) };
    }
    const { row, ports } = this.#walk.context;
    const seen = bothHealths(healthOf(hooks), lasting);
    const found = healthFinding(row, seen, ports.clock.now());
    if (found.phase === "Ready") return undefined;
    const { problems, failedSince } = found;
    const message = `${where}: ${found.message}; what comes after it waits`;
    const common = { message, objects: this.#counted(seen), ...defined({ problems, failedSince }) };
    if (found.phase === "Failed") return { phase: "Failed", reason: found.reason, ...common };
    const both = [...(problems ?? []), ...this.#goingBeside(step)];
    return { phase: "Applying", reason: "StepNotReady", ...common, problems: both };
  }

  /** Uses the answers of the applies. An object that an earlier run applied is checked, and applied again if it is gone. */
  async #healthOf({ objects }: ApplySetResult): Promise<SeenHealth> {
    const answered = objects.flatMap((object) =>
      "health" in object && object.entry.hook === undefined ? [{ id: object.id, ...object.health }] : [],
    );
    const entries = objects.flatMap((object) => (object.outcome === "resumed" ? [object.entry] : []));
    if (entries.length === 0) return healthOf(answered);
    const { client, ports } = this.#walk.context;
    const report = await checkHealth(client, { inventory: { ...this.inventory, entries }, clock: ports.clock });
    const away = new Set(
      report.notReady.filter(({ status }) => status === "NotFound").map(({ id }) => objectIdKey(id)),
    );
    this.progress = { ...this.progress, applied: this.progress.applied.filter((key) => !away.has(key)) };
    return bothHealths(healthOf(answered), seenHealth(report));
  }

  /** Ready objects of earlier steps count as well: their growing number is the progress of the attempt. */
  #counted({ ready, failed }: SeenHealth): NonNullable<OperationResult["objects"]> {
    const steps = [...this.#walk.order.before, ...this.#walk.order.after].slice(0, this.progress.passed ?? 0);
    const before = steps.reduce((sum, step) => sum + step.objects.length, 0);
    return { total: this.#planned().length, ready: before + ready, failed, foreign: 0 };
  }

  #planned(): readonly ManifestObject[] {
    const { before, after } = this.#walk.order;
    return [...before, ...after].flatMap(({ objects }) => objects);
  }

  #isAmong(object: ManifestObject, keys: ReadonlySet<string>): boolean {
    const { defaultNamespace } = this.#walk.context.row.desired.apply;
    return placesOf(objectIdOf(object), defaultNamespace).some((id) => keys.has(objectIdKey(id)));
  }
}

function placeOf({ phase, wave }: ApplyStep): string {
  return `${phase}, wave ${wave}`;
}

/** Runs everything before a prune. @returns the reason when it stopped earlier. */
export async function applyBefore(walk: StepWalk, order: ApplyOrder): Promise<OperationResult | undefined> {
  const deleted = await walk.deleteHooks();
  if (deleted !== undefined && deleted.outcome !== "done") {
    return pruneFinding(deleted, { waiting: "DeletingHooks", failed: "HookNotDeleted" });
  }
  const { failure } = walk.progress;
  if (failure !== undefined) return endFailed(walk, { order, failure });
  const last = order.after.length > 0 ? "awaited" : "left";
  return orFailing(walk, { order, found: await walk.over(order.before, { from: 0, last }) });
}

/** Runs everything after a prune. @returns the reason when it stopped earlier. */
export async function applyAfter(walk: StepWalk, order: ApplyOrder): Promise<OperationResult | undefined> {
  const found = await walk.over(order.after, { from: order.before.length, last: "left" });
  return (await orFailing(walk, { order, found })) ?? hooksToGo(walk);
}

/** After a final failure, runs and deletes the hooks for a failure first. */
function orFailing(
  walk: StepWalk,
  { order, found }: { readonly order: ApplyOrder; readonly found: OperationResult | undefined },
): OperationResult | undefined {
  if (found?.phase !== "Failed") return found;
  const [problem] = found.problems ?? [];
  const detail =
    problem === undefined || found.reason === "HookFailed" ? "" : `: ${problem.object}: ${problem.message}`;
  const before = walk.progress;
  walk.progress = { ...before, failure: { reason: found.reason, message: `${found.message}${detail}` } };
  if (order.onFailure.length > 0 || walk.hooksLeft().length > 0) {
    return { ...found, phase: "Applying", reason: "Failing", message: `${found.message}; its hooks end first` };
  }
  // A later check may find the failure fixed, except for a hook, which does not run twice.
  if (found.reason !== "HookFailed") walk.progress = before;
  return found;
}

async function endFailed(
  walk: StepWalk,
  {
    order,
    failure,
  }: { readonly order: ApplyOrder; readonly failure: { readonly reason: string; readonly message: string } },
): Promise<OperationResult> {
  const from = order.before.length + order.after.length;
  const found = await walk.over(order.onFailure, { from, last: "left" });
  if (found !== undefined && found.phase !== "Failed") return found;
  const message = found === undefined ? failure.message : `${failure.message}; ${found.message}`;
  return hooksToGo(walk) ?? { phase: "Failed", reason: reportedReason(failure.reason), message };
}

/** The next run deletes them, after their end is stored. */
function hooksToGo(walk: StepWalk): OperationResult | undefined {
  const left = walk.hooksLeft();
  if (left.length === 0) return undefined;
  return {
    phase: "Applying",
    reason: "DeletingHooks",
    message: `${left.length} hooks have ended and are deleted next`,
  };
}

/** What the inventory records. @param end - true when everything was applied: the next apply is no install. */
export function progressOfWalk(
  walk: StepWalk,
  order: ApplyOrder,
  end?: "whole",
): Pick<InventoryChange, "progress" | "hooks"> {
  const isKept = end === undefined && (walk.timeWasUp || walk.progress.pruning === true || isInSteps(order));
  const { renderDigest, event } = order.record;
  const record: HookRecord = {
    renderDigest,
    event: end === undefined ? event : "upgrade",
    succeeded: [...new Set(walk.succeeded)].sort(),
  };
  // Without a record, this rendering or the next would treat half of an install as an upgrade.
  const isReported = order.hooks.size > 0 || (end === undefined && event === "install");
  return { progress: isKept ? walk.progress : undefined, hooks: isReported ? record : undefined };
}

/** The rendering is older than the check of its order, or names an object that has another namespace here. */
export function misorderedFinding(misordered: readonly OrderProblem[]): OperationResult {
  const problems = misordered.map(({ object, annotation, reason }) => ({
    object: describeObject(objectIdOf(object)),
    reason: "OrderInvalid",
    message: `${annotation} ${reason}`,
  }));
  const [first] = problems;
  const message = `nothing was applied: ${first?.object}, ${first?.message}`;
  return { phase: "Failed", reason: "OrderInvalid", message, problems };
}
