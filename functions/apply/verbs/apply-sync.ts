import { obstaclesOf } from "#functions/apply/steps/apply-obstacles.ts";
import { warningsOf } from "#functions/apply/steps/apply-warnings.ts";
import { claimParent } from "#functions/apply/steps/claim-parent.ts";
import { placesIn } from "#functions/apply/steps/desired-part.ts";
import { progressAfter, progressOf, unsettledIds } from "#functions/apply/steps/progress.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { findForeign } from "#functions/apply/steps/rebuild-inventory.ts";
import { type Recalled, recallInventory, toldWith } from "#functions/apply/steps/recall-inventory.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { loadRendering, saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { troubleOf } from "#functions/apply/steps/trouble-of.ts";
import { unrecordedIds } from "#functions/apply/steps/unrecorded-ids.ts";
import type { VerbContext, VerbResult } from "#functions/apply/steps/verb.ts";
import { withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { defined } from "#shared/base/defined.ts";
import type { Applied, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { healthFinding } from "#shared/fleet/sync/observe.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import { type ApplySetResult, applySet } from "#shared/kube/engine/apply-set.ts";
import { endsTheRun } from "#shared/kube/engine/object-failure.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { type PruneResult, pruneSet } from "#shared/kube/engine/prune-set.ts";
import { worstOf } from "#shared/kube/health/status.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/**
 * Takes the cluster to the rendering that is desired: claims the parent object, applies, and only when every object was
 * applied, prunes what is no longer part of it. Each step may be the last one that is carried out; done again, it ends
 * the same. Where the time of a run is up, the next one goes on behind what was recorded.
 */
export async function applySync(context: VerbContext): Promise<VerbResult> {
  const rendering = desiredRendering(context);
  // Where the inventory ends the look, nobody asks what became of it.
  rendering.catch(() => {});
  const recalled = await recallInventory(context);
  return "told" in recalled ? applyRecalled(recalled, rendering) : recalled;
}

/** The same, when the inventory has been recalled already. */
export async function applyRecalled(
  recalled: Recalled,
  rendering = desiredRendering(recalled.context),
): Promise<VerbResult> {
  return toldWith(recalled, await applyOver(recalled, await rendering));
}

async function desiredRendering({ row, ports }: VerbContext): Promise<readonly ManifestObject[]> {
  return loadRendering(desiredDigest(row), ports.blobs);
}

function desiredDigest({ name, desired }: SyncRow): string {
  if (desired.renderDigest === undefined) throw new Error(`${name} is to be applied and has no rendering`);
  return desired.renderDigest;
}

async function applyOver(
  { context, inventory: before, told }: Recalled,
  rendering: readonly ManifestObject[],
): Promise<VerbResult> {
  const { row, client, ports, deadline } = context;
  const { desired } = row;
  const renderDigest = desiredDigest(row);
  const { setId } = before;
  const known = [...before.entries, ...(told.foreign ?? [])].map(({ id }) => id);
  const groupKinds = [...rendering.map((object) => objectIdOf(object)), ...known];
  const parent = await claimParent(context, groupKinds);
  if (parent.kind === "refused") return refusedFinding(context, parent);
  const claimed = { clusterUid: parent.clusterUid, claimed: context.claim.token };

  const { defaultNamespace } = desired.apply;
  const begun = progressOf(before, row);
  const result = await applySet(client, {
    objects: rendering,
    setId,
    defaultNamespace,
    inventory: before,
    done: new Set(begun.applied),
    clock: ports.clock,
    deadline,
  });
  const progress = result.timeWasUp ? progressAfter(begun, { result }) : undefined;
  const applied = changeInventory(before, {
    recorded: recordsOf(result),
    settled: [],
    definitions: result.definitions,
    progress,
  });
  const warnings = warningsOf(result);
  if (result.outcome !== "applied") {
    const inventory = await saveInventory(context, applied);
    const goesOn = progress !== undefined && progress.applied.length > begun.applied.length;
    return {
      ...unfinished(result, { goesOn }),
      ...claimed,
      done: recordsOf(result).length,
      warnings,
      ...defined({ inventory }),
    };
  }

  const earlier = parent.record.attempted.filter((digest) => digest !== renderDigest);
  const kept = placesIn(rendering, defaultNamespace);
  const left = await unrecordedIds(earlier, { desired: kept, defaultNamespace }, ports.blobs);
  const unrecorded = unsettledIds(left.ids, begun);
  const pruned = desired.apply.prune ? await prune(context, { applied, kept, unrecorded, setId }) : undefined;
  const settled = pruned !== undefined && "settled" in pruned ? pruned.settled : [];
  const timeWasUp = pruned !== undefined && "settled" in pruned && pruned.timeWasUp;
  const reached = progressAfter(begun, { result, settled });
  const after = changeInventory(applied, { recorded: [], settled, progress: timeWasUp ? reached : undefined });
  const inventory = await saveInventory(context, after);
  const named = left.lost.length === 0 ? {} : { foreign: await findForeign(context, after) };
  const done = recordsOf(result).length + reached.settled.length;
  const stored = { ...claimed, warnings, done, ...defined({ inventory }), ...named };
  if (pruned?.outcome === "withheld") {
    return { ...withheldFinding("everything was applied; nothing is pruned", pruned.why), ...stored };
  }
  if (pruned !== undefined && pruned.outcome !== "done") {
    return { ...pruneFinding(pruned, { waiting: "Pruning", failed: "PruneFailed" }), ...stored };
  }

  // Nothing was looked for without a prune, and nothing of a lost rendering: another attempt may.
  const recorded = new Set(applied.entries.map(({ id }) => objectIdKey(id)));
  const isLeft = !desired.apply.prune && unrecorded.some((id) => !recorded.has(objectIdKey(id)));
  const unsettled = isLeft ? earlier : left.lost;
  const whole: Applied = {
    renderDigest,
    revision: desired.revision,
    attempt: desired.attempt,
    at: ports.clock.now().toISOString(),
    ...(unsettled.length === 0 ? {} : { unsettled }),
  };
  if (result.objects.some(({ outcome }) => outcome === "resumed"))
    return { ...resumed(result), ...stored, applied: whole };
  return { ...healthFinding(row, appliedHealth(result), ports.clock.now()), ...stored, applied: whole };
}

/** What an earlier run applied has to be looked at to know its health; that is another run's, with its own time. */
function resumed({ objects }: ApplySetResult): VerbResult {
  const total = objects.length;
  const message = `${total} objects applied, in more than one run; whether they are ready is looked at next`;
  return { phase: "Verifying", reason: "NotReady", message, objects: { total, ready: 0, failed: 0, foreign: 0 } };
}

function recordsOf(result: ApplySetResult) {
  return result.objects.flatMap((object) => ("entry" in object ? [object.entry] : []));
}

interface Pruning {
  readonly applied: Inventory;
  /** `objectIdKey` of what is desired. */
  readonly kept: ReadonlySet<string>;
  readonly unrecorded: readonly ObjectId[];
  readonly setId: string;
}

/** Deleting is a turn of its own: what was read before all was applied may be long ago. */
async function prune(
  context: VerbContext,
  pruning: Pruning,
): Promise<PruneResult | { readonly outcome: "withheld"; readonly why: Withheld } | undefined> {
  const { client, claim, ports, deadline } = context;
  const isDesired = (id: ObjectId) => pruning.kept.has(objectIdKey(id));
  const candidates = pruning.applied.entries.filter((entry) => !isDesired(entry.id));
  if (candidates.length === 0 && pruning.unrecorded.length === 0) return undefined;
  const why = await context.gate.ask(context.row.desired.attempt);
  if (why !== undefined) return { outcome: "withheld", why };
  const keepUids = new Set(pruning.applied.entries.filter((entry) => isDesired(entry.id)).map((entry) => entry.uid));
  return pruneSet(client, {
    setId: pruning.setId,
    candidates,
    unrecorded: pruning.unrecorded,
    keepUids,
    claim,
    clock: ports.clock,
    deadline,
  });
}

/** @param run.goesOn - the next one begins further behind: what failed is judged when everything was tried. */
function unfinished(result: ApplySetResult, run: { readonly goesOn: boolean }): VerbResult {
  const total = result.objects.length;
  const done = recordsOf(result).length;
  const { troubles, final, waiting } = obstaclesOf(result);
  const message = `${done} of ${total} objects applied`;
  const objects = { total, ready: 0, failed: troubles.length, foreign: 0 };
  if (result.outcome === "unreachable") {
    const why = result.objects.flatMap((object) =>
      object.outcome === "failed" && endsTheRun(object.failure) ? [object.failure.message] : [],
    )[0];
    return { phase: "Unreachable", reason: "Unreachable", message: `${message}: ${why}`, troubles, objects };
  }
  if (result.outcome === "failed" && !run.goesOn) {
    return { phase: final ? "Failed" : "Retrying", reason: "ApplyFailed", message, troubles, objects };
  }
  if (result.timeWasUp) {
    const said = `${message}: ${outOfTime.message}`;
    return { phase: "Applying", reason: outOfTime.reason, message: said, troubles, objects };
  }
  const detail = waiting === undefined ? "" : `: ${waiting.message}`;
  return { phase: "Applying", reason: waiting?.reason ?? "Applying", message: `${message}${detail}`, objects };
}

/** From the answers of the applies: most Syncs without workloads are ready at once. */
function appliedHealth(result: ApplySetResult) {
  const seen = result.objects.flatMap((object) =>
    "health" in object ? [{ id: object.id, health: object.health }] : [],
  );
  const troubles = seen
    .filter(({ health }) => health.status !== "Current")
    .map(({ id, health }) => troubleOf(id, health));
  return {
    total: seen.length,
    ready: seen.length - troubles.length,
    failed: seen.filter(({ health }) => health.status === "Failed").length,
    worst: worstOf(seen.map(({ health }) => health.status)),
    troubles,
  };
}
