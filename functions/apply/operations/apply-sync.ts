import { type PruneGuard, pruneGuardOf } from "#functions/apply/steps/ask-prune-guard.ts";
import { deletionWarningsOf, objectWarnings } from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { type ApplyOrder, isInSteps, orderOf } from "#functions/apply/steps/order-of-apply.ts";
import { progressAfter, progressOf, unsettledIds } from "#functions/apply/steps/progress.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { findForeign } from "#functions/apply/steps/rebuild-inventory.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { placesIn, unrecordedIds } from "#functions/apply/steps/rendering-places.ts";
import { claimParent, type Recalled, recallInventory, reportedWith } from "#functions/apply/steps/set-records.ts";
import { stillGoing } from "#functions/apply/steps/still-going.ts";
import { loadRendering, saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import {
  applyAfter,
  applyBefore,
  misorderedFinding,
  progressOfWalk,
  StepWalk,
} from "#functions/apply/steps/walk-steps.ts";
import { withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { defined } from "#shared/base/defined.ts";
import type { Applied, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { healthFinding } from "#shared/fleet/sync/observe.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import { beginParent, type ParentReads } from "#shared/kube/engine/ensure-parent.ts";
import { type PruneResult, pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { rememberedInstall } from "#shared/kube/parent-object.ts";
import type { Rendering } from "#shared/source/rendering.ts";

/**
 * Takes the cluster to the desired rendering. It claims the parent object, applies step by step, and prunes what is no
 * longer desired only when every object was applied. Each step may be the last one that succeeds; a repetition ends in
 * the same state. When the time of a run is up, the next run continues behind the recorded progress.
 */
export async function applySync(context: OperationContext): Promise<OperationResult> {
  const begun = begin(context);
  const recalled = await recallInventory(context);
  return "reported" in recalled ? applyRecalled(recalled, begun) : recalled;
}

/** Applies when the inventory has been recalled already. */
export async function applyRecalled(recalled: Recalled, begun = begin(recalled.context)): Promise<OperationResult> {
  return reportedWith(recalled, await applyOver(recalled, { rendering: await begun.rendering, reads: begun.reads }));
}

/** Reads the store and the cluster at the same time. */
function begin(context: OperationContext) {
  const rendering = desiredRendering(context);
  // When the inventory ends the operation, the result of the other read does not matter.
  rendering.catch(() => {});
  return { rendering, reads: beginParent(context.client, context.claim) };
}

async function desiredRendering({ row, ports }: OperationContext): Promise<Rendering> {
  return loadRendering(desiredDigest(row), ports.blobs);
}

function desiredDigest({ name, desired }: SyncRow): string {
  if (desired.renderDigest === undefined) throw new Error(`${name} is to be applied and has no rendering`);
  return desired.renderDigest;
}

async function applyOver(
  { context, inventory: before, reported }: Recalled,
  { rendering, reads }: { readonly rendering: Rendering; readonly reads: ParentReads },
): Promise<OperationResult> {
  const { row, ports } = context;
  const { desired } = row;
  const renderDigest = desiredDigest(row);
  // The claim reports a cluster that cannot be read.
  const remembered = await reads.parent.catch(() => undefined);
  const install = rememberedInstall(remembered, context.claim, desired.keptThrough);
  const order = orderOf(rendering, { renderDigest, before, row, install });
  if ("problems" in order) return misorderedFinding(order.problems);
  const members = [...before.entries, ...(reported.foreign ?? [])].map(({ id }) => id);
  const groupKinds = [...order.objects.map((object) => objectIdOf(object)), ...members];
  const installing = order.record.event === "install" && row.observed?.applied === undefined;
  const parent = await claimParent(context, groupKinds, { reads, installing });
  if (parent.kind === "refused") return refusedFinding(context, parent);
  const claimed = { clusterUid: parent.clusterUid, claimed: context.claim.token };

  const begun = progressOf(before, row);
  const { defaultNamespace } = desired.apply;
  const kept = placesIn(order.objects, defaultNamespace);
  const going = isInSteps(order) ? await stillGoing(context, { inventory: before, kept }) : [];
  const walk = new StepWalk({ context, order, inventory: before, progress: begun, going });
  const found = await applyBefore(walk, order);
  if (found !== undefined) return { ...(await stored(context, walk, order)), ...claimed, ...found };

  const earlier = parent.record.attempted.filter((digest) => digest !== renderDigest);
  const left = await unrecordedIds(earlier, { desired: kept, defaultNamespace }, ports.blobs);
  const unrecorded = unsettledIds(left.ids, begun);
  const applied = walk.inventory;
  const guard = pruneGuardOf(context, { entries: applied.entries, kept, progress: walk.progress });
  const pruned = desired.apply.prune ? await prune(context, { applied, kept, unrecorded, guard }) : undefined;
  if (guard.hasPassed()) walk.progress = { ...walk.progress, pruning: true };
  const settled = pruned !== undefined && "settled" in pruned ? pruned.settled : [];
  if (pruned !== undefined && pruned.outcome !== "withheld") walk.deletions.push(...deletionWarningsOf(pruned));
  walk.timeWasUp ||= pruned !== undefined && "settled" in pruned && pruned.timeWasUp;
  walk.progress = progressAfter(walk.progress, { settled });
  const recorded = pruned !== undefined && "held" in pruned ? pruned.held : [];
  walk.inventory = changeInventory(applied, { recorded, settled });
  const named = left.lost.length === 0 ? {} : { foreign: await findForeign(context, walk.inventory) };
  if (pruned?.outcome === "withheld") {
    const finding = withheldFinding("everything was applied; nothing is pruned", pruned.why);
    return { ...(await stored(context, walk, order)), ...claimed, ...named, ...finding };
  }
  if (pruned !== undefined && pruned.outcome !== "done") {
    const finding = { ...pruneFinding(pruned, { waiting: "Pruning", failed: "PruneFailed" }), ...guard.found() };
    return { ...(await stored(context, walk, order)), ...claimed, ...named, ...finding };
  }
  const late = await applyAfter(walk, order);
  if (late !== undefined) return { ...(await stored(context, walk, order)), ...claimed, ...named, ...late };

  // Without a prune, or for a lost rendering, nothing was searched; another attempt may search.
  const known = new Set(applied.entries.map(({ id }) => objectIdKey(id)));
  const isLeft = !desired.apply.prune && unrecorded.some((id) => !known.has(objectIdKey(id)));
  const unsettled = isLeft ? earlier : left.lost;
  const whole: Applied = {
    renderDigest,
    revision: desired.revision,
    attempt: desired.attempt,
    at: ports.clock.now().toISOString(),
    ...(order.isByEvent && order.record.event === "install" ? { event: "install" as const } : {}),
    ...(unsettled.length === 0 ? {} : { unsettled }),
  };
  const health = walk.isOfThisRun() ? healthFinding(row, walk.health(), ports.clock.now()) : resumed(walk.total());
  return { ...health, ...(await stored(context, walk, order, "whole")), ...claimed, ...named, applied: whole };
}

/** Saves what the run found, and reports its progress. */
async function stored(context: OperationContext, walk: StepWalk, order: ApplyOrder, end?: "whole") {
  const change = { recorded: [], settled: [], ...progressOfWalk(walk, order, end) };
  const inventory = await saveInventory(context, changeInventory(walk.inventory, change));
  const done = walk.done() + walk.progress.settled.length;
  return { done, warnings: [...objectWarnings(walk), ...walk.deletions], ...defined({ inventory }) };
}

/** The health of objects that an earlier run applied needs a check, which gets a run of its own. */
function resumed(total: number): OperationResult {
  const message = `${total} objects applied, in more than one run; their health is checked next`;
  return { phase: "Verifying", reason: "NotReady", message, objects: { total, ready: 0, failed: 0, foreign: 0 } };
}

interface Pruning {
  readonly applied: Inventory;
  /** `objectIdKey` of each desired object. */
  readonly kept: ReadonlySet<string>;
  readonly unrecorded: readonly ObjectId[];
  readonly guard: PruneGuard;
}

/** Pruning reads the rows again: the rows that were read before the apply may be old by now. */
async function prune(
  context: OperationContext,
  pruning: Pruning,
): Promise<PruneResult | { readonly outcome: "withheld"; readonly why: Withheld } | undefined> {
  const { client, claim, ports, deadline } = context;
  const isDesired = (id: ObjectId) => pruning.kept.has(objectIdKey(id));
  const candidates = pruning.applied.entries.filter((entry) => !isDesired(entry.id));
  if (candidates.length === 0 && pruning.unrecorded.length === 0) return undefined;
  const why = await context.gate.ask(context.row.desired.attempt);
  if (why !== undefined) return { outcome: "withheld", why };
  const heldFor = await context.siblings.desiringOrWhy([...candidates.map(({ id }) => id), ...pruning.unrecorded]);
  if ("reason" in heldFor) return { outcome: "withheld", why: heldFor };
  const keepUids = new Set(pruning.applied.entries.filter((entry) => isDesired(entry.id)).map((entry) => entry.uid));
  return pruneSet(client, {
    setId: pruning.applied.setId,
    candidates,
    unrecorded: pruning.unrecorded,
    heldFor,
    ...defined({ guard: pruning.guard.ask }),
    keepUids,
    claim,
    clock: ports.clock,
    deadline,
  });
}
