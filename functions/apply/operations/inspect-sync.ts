import { applyRecalled } from "#functions/apply/operations/apply-sync.ts";
import { checkRecalled, failedJobsOf } from "#functions/apply/operations/health-check.ts";
import { obstaclesOf } from "#functions/apply/steps/apply-obstacles.ts";
import { driftFound } from "#functions/apply/steps/drift-found.ts";
import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import { objectWarnings, seenHealth } from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { appliedEvent } from "#functions/apply/steps/order-of-apply.ts";
import { findForeign } from "#functions/apply/steps/rebuild-inventory.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { askedWith, releaseHeld } from "#functions/apply/steps/release-held.ts";
import { desiredPart } from "#functions/apply/steps/rendering-places.ts";
import { claimParent, type Recalled, recallInventory, reportedWith } from "#functions/apply/steps/set-records.ts";
import { findRendering, loadRendering, saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { countCorrections, sortDrift } from "#functions/apply/steps/undone-corrections.ts";
import { withheldFromNow } from "#functions/apply/steps/withheld-finding.ts";
import { isWorthStoring } from "#functions/apply/steps/worth-storing.ts";
import { defined } from "#shared/base/defined.ts";
import { isReconciled, maxProblems, type ObjectProblem } from "#shared/fleet/rows/sync-row.ts";
import { healthFinding } from "#shared/fleet/sync/observe.ts";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { checkHealth, needsWholeObjects } from "#shared/kube/engine/check-health.ts";
import { type DriftedObject, type DriftReport, detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { changeInventory, entriesById, type Inventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { objectIdKey, placesOf } from "#shared/kube/object-id.ts";

/**
 * The routine inspection of an applied Sync: has anything changed, and is everything still ready? Drift is corrected
 * from the assigned rendering, object by object, under the same claim as an apply. A correction that somebody undoes
 * each time is given up after a while.
 */
export async function inspectSync(context: OperationContext): Promise<OperationResult> {
  const recalled = await recallInventory(context);
  if (!("reported" in recalled)) return recalled;
  if (context.row.desired.apply.drift === "off") {
    const released = await releaseHeld(recalled);
    return askedWith(released, await checkRecalled(recalled, released.inventory));
  }
  // A rebuilt inventory records objects as they were found: only an apply proves that they are as desired.
  if (recalled.reported.rebuilt !== undefined && isCorrected(context)) return whenPermitted(recalled);
  const released = await releaseHeld(recalled);
  return askedWith(released, reportedWith(recalled, await inspectOver(recalled, released.inventory)));
}

async function whenPermitted(recalled: Recalled): Promise<OperationResult> {
  const { withheld } = recalled.context;
  if (withheld === undefined) return applyRecalled(recalled);
  return { phase: "Retrying", reason: "InventoryLost", message: `the inventory is lost; ${withheld.message}` };
}

function isCorrected({ row }: OperationContext): boolean {
  return row.desired.apply.drift === "correct";
}

/** @param before - the inventory without what siblings have taken over since. */
async function inspectOver(recalled: Recalled, before: Inventory): Promise<OperationResult> {
  const { context, inventory, reported } = recalled;
  const { row, client, ports } = context;
  const known = new Set(before.entries.map((entry) => objectIdKey(entry.id)));
  const named = (row.observed?.foreign ?? []).filter(({ member }) => member).map(({ id }) => id);
  const report = await detectDrift(client, await desiredPart(row, before, ports.blobs), {
    also: named,
    isWhole: needsWholeObjects,
  });
  if (report.drifted.some(isAway)) {
    const identity = await identityFinding(context);
    if (!("uid" in identity)) return identity;
  }
  const seen = changeInventory(before, { recorded: report.moved, settled: [], definitions: report.definitions });
  const isWorth = before !== inventory || isWorthStoring(row, { before, report }, ports.clock.now());
  const recorded = isWorth ? () => stored(context, seen) : () => ({});
  // People who ask for a reconcile may know that members came back, also of kinds that the Sync no longer has.
  const foreign =
    reported.foreign ??
    (isReconciled(row)
      ? report.foreign.filter(({ id }) => !known.has(objectIdKey(id)))
      : await findForeign(context, before));
  const { toCorrect, leftAlone } =
    isCorrected(context) && isReconciled(row)
      ? sortDrift(report.drifted, before)
      : { toCorrect: report.drifted, leftAlone: [] };
  const counted = (found: OperationResult): OperationResult => ({
    ...found,
    foreign,
    ...notCompared(report),
    leftAlone,
    inspected: true,
  });
  if (toCorrect.length === 0) {
    const { finding, complete } = await healthOver(context, seen, report.live);
    const kept =
      complete.length === 0
        ? await recorded()
        : await stored(context, changeInventory(seen, { recorded: complete, settled: [], progress: seen.progress }));
    return { ...counted(finding), ...kept, ...newlyLeft(context, leftAlone), reconciled: true };
  }
  const why = isCorrected(context) ? await withheldFromNow(context) : undefined;
  if (!isCorrected(context) || why !== undefined) {
    const rendering = await renderingOf(context);
    const { drifted } = report;
    const found = { drift: driftFound(row, { drifted, at: ports.clock.now(), corrected: false, rendering }) };
    const withheld = why === undefined ? {} : { withheld: why };
    const reconciled = row.desired.apply.drift === "report" ? { reconciled: true as const } : {};
    return {
      ...counted(await withHealth(context, seen)),
      ...(await recorded()),
      ...found,
      ...withheld,
      ...reconciled,
    };
  }
  return counted(await correct(context, { report: { ...report, drifted: toCorrect }, seen, before }));
}

/** The rendering only names the drifted fields; drift is reported without it when it is lost. */
async function renderingOf({ row, ports }: OperationContext): Promise<readonly ManifestObject[] | undefined> {
  const { renderDigest } = row.desired;
  if (renderDigest === undefined) return undefined;
  return (await findRendering(renderDigest, ports.blobs))?.[appliedEvent(row, renderDigest)];
}

/** Reported once, not at every inspection. */
function newlyLeft(
  { row, ports }: OperationContext,
  leftAlone: readonly ObjectProblem[],
): Pick<OperationResult, "drift"> {
  const known = new Set((row.observed?.leftAlone ?? []).map(({ object }) => object));
  const isNew = leftAlone.length > known.size || leftAlone.some(({ object }) => !known.has(object));
  if (!isNew || known.size === maxProblems) return {};
  return { drift: { at: ports.clock.now().toISOString(), objects: leftAlone.length, corrected: false } };
}

/** A kind that cannot be listed shows no drift, which does not mean that there is none. */
function notCompared({ unread }: DriftReport): Pick<OperationResult, "notCompared"> {
  const [first, ...others] = unread;
  if (first === undefined) return {};
  const more = others.length === 0 ? "" : ` and ${others.length} more kinds`;
  return { notCompared: `${first.kind}${more} could not be compared: ${first.failure.message}` };
}

function isAway({ how }: DriftedObject): boolean {
  return how === "missing" || how === "replaced";
}

async function correct(
  context: OperationContext,
  drift: { readonly report: DriftReport; readonly seen: Inventory; readonly before: Inventory },
): Promise<OperationResult> {
  const { row, client, ports, deadline } = context;
  const { report, seen, before } = drift;
  const renderDigest = row.desired.renderDigest;
  if (renderDigest === undefined) throw new Error(`${row.name} was applied and has no rendering`);
  const parent = await claimParent(
    context,
    seen.entries.map((entry) => entry.id),
  );
  if (parent.kind === "refused") return refusedFinding(context, parent);
  // An object that is gone, or has another owner by now, is handled like a new one: it may belong to somebody else.
  const lost = report.drifted.filter(isAway).map(({ id }) => id);
  const held = changeInventory(seen, { recorded: asRead(report, seen), settled: lost });
  const drifted = new Set(report.drifted.map((object) => objectIdKey(object.id)));
  const rendering = (await loadRendering(renderDigest, ports.blobs))[appliedEvent(row, renderDigest)];
  const { defaultNamespace } = row.desired.apply;
  const objects = rendering.filter((object) =>
    placesOf(objectIdOf(object), defaultNamespace).some((id) => drifted.has(objectIdKey(id))),
  );
  const result = await applySet(client, {
    objects,
    setId: seen.setId,
    defaultNamespace,
    inventory: held,
    standingOf: (setId, id) => context.siblings.standingOf(setId, id),
    clock: ports.clock,
    deadline,
  });
  const applied = result.objects.flatMap((object) => ("entry" in object ? [object.entry] : []));
  const made = { drifted: report.drifted, rendering: objects, defaultNamespace, inventory: before };
  const recorded = countCorrections(applied, { ...made, isAsked: !isReconciled(row) });
  // An object that could not be restored stays recorded, or the next inspection would not miss it.
  const after = changeInventory(seen, { recorded, settled: [], definitions: result.definitions });
  const done = result.outcome === "applied";
  const found = {
    ...(await stored(context, after)),
    warnings: objectWarnings(result),
    drift: driftFound(row, { drifted: report.drifted, at: ports.clock.now(), corrected: done, rendering: objects }),
  };
  if (done) return { ...(await withHealth(context, after)), ...found, reconciled: true };
  const { final, problems, waiting, notBeforeSeconds } = obstaclesOf(result);
  if (result.timeWasUp && problems.length === 0) {
    return {
      phase: "Applying",
      reason: outOfTime.reason,
      message: `drift is put back: ${outOfTime.message}`,
      ...found,
    };
  }
  const message = problems[0]?.message ?? waiting?.message ?? "drift could not be put back yet";
  const phase = result.outcome === "unreachable" ? "Unreachable" : final ? "Failed" : "Retrying";
  // A permanent failure must not keep undone corrections from being given up.
  const reconciled = final ? { reconciled: true as const } : {};
  const asked = defined({ notBeforeSeconds });
  return { phase, reason: "DriftCorrectionFailed", message, problems, ...asked, ...found, ...reconciled };
}

/** The changed object carried the set's mark when it was read: it is applied over that state, and over no later one. */
function asRead({ drifted }: DriftReport, inventory: Inventory): readonly InventoryEntry[] {
  const known = entriesById(inventory);
  return drifted.flatMap(({ id, live }) => {
    const entry = known.get(objectIdKey(id));
    const resourceVersion = stringAt(live, "metadata", "resourceVersion");
    return entry === undefined || resourceVersion === undefined ? [] : [{ ...entry, resourceVersion }];
  });
}

async function withHealth(context: OperationContext, inventory: Inventory): Promise<OperationResult> {
  return (await healthOver(context, inventory, new Map())).finding;
}

/** @returns the finding, and what to record; see `HealthReport.complete`. */
async function healthOver(
  context: OperationContext,
  inventory: Inventory,
  live: DriftReport["live"],
): Promise<{ readonly finding: OperationResult; readonly complete: readonly InventoryEntry[] }> {
  const { row, client, ports } = context;
  const desired = await desiredPart(row, inventory, ports.blobs);
  const failedJobs = failedJobsOf(row);
  const report = await checkHealth(client, { inventory: desired, clock: ports.clock, failedJobs, live });
  return { finding: healthFinding(row, seenHealth(report), ports.clock.now()), complete: report.complete };
}

async function stored(context: OperationContext, inventory: Inventory): Promise<{ readonly inventory?: string }> {
  const key = await saveInventory(context, inventory);
  return key === undefined ? {} : { inventory: key };
}
