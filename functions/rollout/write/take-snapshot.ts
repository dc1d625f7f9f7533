/** Takes the snapshot of a rollout for a stage: the stage run begins. */

import { targetsAt } from "#functions/rollout/read/clusters-by-state.ts";
import { targetsWithInputs } from "#functions/rollout/read/inputs-before.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { clustersWithSyncs, rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { gatesOfStage, stagePlan } from "#functions/rollout/write/stage-plan.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { isThere, unlessLost } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { youngSince } from "#shared/fleet/blob-life.ts";
import { approvalOf, outdatedBy } from "#shared/fleet/rollout/approval.ts";
import type { Member } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { pinnedSources } from "#shared/fleet/rollout/pinned-sources.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { isStalled, isUnbegun, leftOf, noTargets, refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type {
  AskedPlan,
  RolloutRow,
  SnapshotTarget,
  StageRecord,
  StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

/** Targets in one blob: what a check of a stage run reads of its snapshot. */
export const snapshotPageSize = 1000;

/** Takes the snapshot of a rollout for a stage; the stage run in progress is superseded. */
export async function startStageRun(
  transaction: Transaction,
  { stage: index, rollout }: { readonly stage: number; readonly rollout: RolloutRow },
  ports: PlannerPorts,
): Promise<void> {
  const { known } = transaction;
  const stage = transaction.rolloutState.stages[index];
  if (stage === undefined) throw new Error(`there is no stage ${index}`);
  const old = stage.updatingTo && transaction.stageRun(stage.updatingTo);
  const members = await membersFor(transaction, { stage: stage.name, rollout }, ports);
  const holders = changingOf(transaction.rolloutState) === 0 ? [] : await holdersOf(known, ports);
  const before = old && (await standingIn(old, { rollout, known }, ports));
  const standings = new Map<string, Standing>([
    ...holders.map((cluster) => [cluster, "unhealthy"] as const),
    ...(before ?? []),
  ]);
  const places = old === undefined ? new Map<string, number>() : await placesIn(old, ports);
  const placeOf = ({ cluster }: Member) => places.get(cluster) ?? old?.size ?? 0;
  const byPlace = members.toSorted((a, b) => placeOf(a) - placeOf(b));
  const groups = Map.groupBy(byPlace, ({ cluster }) => standings.get(cluster) ?? "untouched");
  const { unhealthy = [], well = [], untouched = [], newest = [] } = Object.fromEntries(groups);
  const ordered = [...unhealthy, ...well, ...untouched, ...newest];
  const targetOf = targetsWithInputs(known.owner, ports);
  const targets = await Promise.all(ordered.map((member) => targetOf(member, rollout)));
  const pages: { key: string; first: number }[] = [];
  for (const [at, page] of inParts(targets, snapshotPageSize).entries())
    pages.push({ key: await ports.lists.store(page), first: at * snapshotPageSize });
  const snapshot = transaction.rolloutState.snapshots + 1;
  const message = `stage ${stage.name} begins: ${ordered.length === 1 ? "1 cluster" : `${ordered.length} clusters`} to check`;
  const gates = gatesFor(transaction, { stage, old, rollout, targets });
  const phase = approvalOf(gates) === undefined ? "Updating" : "Gated";
  const stageRun: StageRunRow = {
    ...keys.stageRun(known.owner, { rollout: rollout.number, stage: stage.name, snapshot }),
    type: "StageRun",
    schema: rowSchema,
    version: 0,
    owner: known.owner,
    rollout: rollout.number,
    stage: stage.name,
    snapshot,
    phase,
    reason: phase,
    message,
    size: ordered.length,
    pages,
    membersVersion: transaction.rolloutState.membersVersion,
    next: 0,
    holds: [],
    returned: [],
    unrendered: [],
    ...(well.length === 0 ? {} : { verified: { from: unhealthy.length, to: unhealthy.length + well.length } }),
    counts: { ...noTargets, Waiting: ordered.length },
    preexistingFailures: 0,
    failures: [],
    away: [],
    // No cluster may have joined for what was requested then.
    ...defined({ retriedAt: old?.retriedAt, left: hasLost(old, rollout) }),
    ...gates,
    ...(rollout.rollback === undefined ? {} : { rollback: true as const }),
    ...defined({ takesBack: takesBackOf(rollout) }),
    startedAt: transaction.at,
    transitions: [{ at: transaction.at, phase, reason: phase, message }],
  };
  if (old !== undefined) transaction.supersede(old, rollout.number);
  transaction.putStageRun(stageRun);
  transaction.edit({ snapshots: snapshot });
  const isAhead = stage.ahead === true && old?.rollout === rollout.number;
  transaction.editStage(stage.name, ({ ahead: _before, gated, ...kept }) => ({
    ...kept,
    ...(gated === undefined || gated.rollout === rollout.number ? {} : { gated }),
    updatingTo: refOf(stageRun),
    ...(isAhead ? { ahead: true } : {}),
  }));
  transaction.report(stageRun);
}

function takesBackOf({ takesBack, rollback: to, asked }: RolloutRow): StageRunRow["takesBack"] {
  if (takesBack === undefined || to === undefined) return undefined;
  return { rollout: takesBack.rollout, to, reason: asked?.reason ?? "" };
}

interface Gating {
  readonly stage: StageRecord;
  /** The stage run in progress that it replaces. */
  readonly old: StageRunRow | undefined;
  readonly rollout: RolloutRow;
  readonly targets: readonly SnapshotTarget[];
}

/**
 * The gates of the stage, by the present spec. A new snapshot of a rollout that bakes keeps the clock; it does not get
 * past a bake that has failed.
 */
function gatesFor(
  transaction: Transaction,
  { stage, old, rollout, targets }: Gating,
): Pick<StageRunRow, "gates" | "adopts" | "bake" | "planHash" | "planParts" | "outdated" | "approvedBy"> {
  const isUngated = rollout.plan.deletion !== undefined || rollout.rollback !== undefined;
  const gates = isUngated ? undefined : gatesOfStage(transaction.known, stage);
  if (gates === undefined) return {};
  const { before, after } = gates;
  const asked =
    targets.length === 0 || (before === undefined && after?.every(({ check }) => check === undefined) !== false)
      ? undefined
      : stagePlan(transaction, { stage, rollout, targets, gates });
  const { planHash } = asked ?? {};
  const approvedBy = planHash !== undefined && old?.planHash === planHash ? old.approvedBy : undefined;
  const isAgain = old?.rollout === rollout.number && old.phase !== "GateFailed";
  return {
    gates,
    ...defined({ planHash, approvedBy }),
    ...(before === undefined || asked === undefined
      ? {}
      : defined({ planParts: asked.parts, outdated: outdatedIn(transaction, { stage, old, rollout, asked }) })),
    ...(old !== undefined && (old.adopts === true || !isUnbegun(old)) ? { adopts: true } : {}),
    ...(isAgain && old.bake !== undefined ? { bake: { from: old.bake.from, stood: old.bake.stood } } : {}),
  };
}

interface Replaced extends Pick<Gating, "stage" | "old" | "rollout"> {
  readonly asked: AskedPlan;
}

/** The plan that somebody approved while the rollout was on its way, or in the snapshot before. */
function outdatedIn({ known }: Transaction, { stage, old, rollout, asked }: Replaced): AskedPlan | undefined {
  const { approvals } = known.row.operations;
  const about = { stage: stage.name, approvals };
  if (stage.gated?.rollout === rollout.number) return outdatedBy(stage.gated, asked, about);
  const { planHash, planParts: parts, outdated, approvedBy } = old ?? {};
  if (planHash === undefined || parts === undefined || approvedBy !== undefined) return undefined;
  return outdatedBy({ planHash, parts, outdated }, asked, about);
}

/** Whether targets left before this rollout was verified in the stage: a new snapshot is no evidence. */
function hasLost(old: StageRunRow | undefined, { number }: RolloutRow): true | undefined {
  return old?.rollout === number && (old.left === true || leftOf(old) > 0) ? true : undefined;
}

/** A deletion concerns every cluster that has something of the owner: a cluster without a stage goes with the last. */
async function membersFor(
  { known, rolloutState }: Transaction,
  { stage, rollout }: { readonly stage: string; readonly rollout: RolloutRow },
  ports: PlannerPorts,
): Promise<readonly Member[]> {
  const members = await readMembers(known, ports);
  const isDeletion = rollout.plan.deletion !== undefined;
  const own = members.filter((member) => member.stage === stage && (isDeletion || member.leaving === undefined));
  const isLast = rolloutState.stages.at(-1)?.name === stage;
  if (!isDeletion || !isLast) return own;
  const placed = members.filter((member) => rolloutState.stages.some(({ name }) => name === member.stage));
  const clusters = await clustersWithSyncs(known.owner, ports.table);
  const others = [...clusters.difference(new Set(placed.map(({ cluster }) => cluster)))].sort();
  return [...own, ...others.map((cluster) => ({ cluster, uid: "", stage, labels: {}, values: {}, since: 0 }))];
}

/** `well` with the rollout of the snapshot, `newest` with the one that it replaces. */
type Standing = "unhealthy" | "well" | "newest";

/**
 * Clusters with a slot, of any stage. They come first: the slots that they keep count in the stage's own bound before
 * another cluster gets a new one.
 */
async function holdersOf({ owner }: Known, { table }: PlannerPorts): Promise<readonly string[]> {
  const { rows } = await rowsAbout(ranges.slots(owner), table);
  return rows.map(({ cluster }) => cluster);
}

/**
 * The places of clusters in the snapshot of a stage run that is replaced. The next snapshot has the same order, and those
 * that got the replaced rollout at its end: so the clusters with the oldest rollouts come first, each time.
 */
async function placesIn(
  stageRun: StageRunRow,
  { lists }: Pick<PlannerPorts, "lists">,
): Promise<ReadonlyMap<string, number>> {
  const pages = await Promise.all(
    stageRun.pages.map(({ key }) => unlessLost(lists.read<SnapshotTarget>(key), () => [])),
  );
  return new Map(pages.flat().map(({ cluster }, place) => [cluster, place]));
}

/**
 * Clusters with something of a stage run that stands still come first, and so do those that another one has not made
 * ready. Those that it has made ready come last. A new snapshot keeps the evidence of its rollout: the clusters that were
 * ready with it, also by a snapshot that checked none of them again.
 */
async function standingIn(
  stageRun: StageRunRow,
  { rollout, known }: { readonly rollout: RolloutRow; readonly known: Known },
  ports: PlannerPorts,
): Promise<ReadonlyMap<string, Standing>> {
  const { owner } = known;
  const { from, to } = stageRun.verified ?? { from: 0, to: 0 };
  const orders = Array.from({ length: to - from }, (_, index) => from + index);
  const [targets, verified] = await Promise.all([
    rowsAbout(ranges.targets(owner, stageRun), ports.table),
    targetsAt(stageRun, orders, ports),
  ]);
  const given = targets.rows.filter(({ attempts }) => Object.keys(attempts).length > 0);
  const touched = [...given.map(({ cluster }) => cluster), ...targets.unread];
  const succeeded = [...targets.rows.filter(({ state }) => state === "Succeeded"), ...verified];
  const replaced = isStalled(stageRun) ? "unhealthy" : "newest";
  const standing = stageRun.rollout === rollout.number ? "well" : replaced;
  return new Map<string, Standing>([
    ...touched.map((cluster) => [cluster, "unhealthy"] as const),
    ...succeeded.map(({ cluster }) => [cluster, standing] as const),
  ]);
}

/** The artifacts of a rollout, for as long as its row exists. @returns the digests of those that are lost. */
export async function renewArtifacts(
  rollouts: readonly Pick<RolloutRow, "plan">[],
  { blobs, clock }: Pick<PlannerPorts, "blobs" | "clock">,
): Promise<ReadonlySet<string>> {
  const pins = rollouts.flatMap(({ plan }) => pinnedSources(plan));
  const before = youngSince(clock.now());
  const lost = new Set<string>();
  for (const digest of new Set(pins.map(({ artifactDigest }) => artifactDigest)))
    if (!(await isThere(blobs.renew(blobKeys.artifact(digest), before)))) lost.add(digest);
  return lost;
}
