/** The work of one call of the planner, and what of it was done. */
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import type { Doomed } from "#shared/fleet/rollout/advance.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { newSkips } from "#shared/fleet/rollout/gate-acts.ts";
import type { CatchUpWait } from "#shared/fleet/rollout/holding.ts";
import { newRejections } from "#shared/fleet/rollout/rejection.ts";
import { stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Tally } from "#shared/fleet/sync/tally.ts";
import type { Table } from "#shared/ports.ts";

/** Slots that this call still has to check, and what was found about their deadlines. */
export interface Round {
  readonly slots: SlotRow[];
  /** Clusters whose slot cannot be read, when all slots were checked. */
  readonly unread: readonly string[];
  readonly all: boolean;
  /** By `stageRunKey`: targets whose worker could have begun and did not, or cannot continue. */
  readonly stuck: Map<string, number>;
  readonly doomed: Map<string, Doomed>;
  deadline: string | undefined;
}

/** @param clusters - reported clusters; undefined for any. */
async function slotsToCheck(
  { owner }: Pick<Known, "owner">,
  clusters: ReadonlySet<string> | undefined,
  table: Table,
): Promise<Round> {
  const begun = { stuck: new Map(), doomed: new Map(), deadline: undefined };
  if (clusters === undefined) {
    const { rows, unread } = await rowsAbout(ranges.slots(owner), table);
    return { ...begun, slots: [...rows], unread, all: true };
  }
  const desired = [...clusters].map((cluster) => keys.slot(owner, cluster));
  const found = await table.getMany(desired, { newer: "kept" });
  return { ...begun, slots: found.filter((row) => !isNewer(row)), unread: [], all: false };
}

/**
 * Clusters that may answer again: the reported ones, or all that the index has as such. A deletion waits for every
 * cluster, and asks whether those that do not answer are still registered.
 */
async function mayAnswerAgain(
  known: Known,
  clusters: ReadonlySet<string> | undefined,
  table: Table,
): Promise<string[]> {
  if (clusters !== undefined) return [...clusters];
  const { owner, rolloutState, row } = known;
  const entries = await stateEntries(owner, table, "Reachable");
  const answering = new Set(entries.map(({ cluster }) => cluster));
  // These wait for their turn anyway.
  const catchingUp =
    answering.size * rolloutState.catchUps.waiting > 0
      ? await rowsAbout(ranges.catchUps(owner, "waiting"), table)
      : none;
  const isGoing = row.operations.deletion !== undefined;
  const away = isGoing || catchingUp.rows.length > 0 ? await thoseAway(known, table) : [];
  return [
    ...answering
      .difference(new Set(catchingUp.rows.map(({ cluster }) => cluster)))
      .union(new Set(away.filter((cluster) => isGoing || answering.has(cluster))))
      .union(new Set(rolloutState.unreadable)),
  ];
}

const none = { rows: [] } as const;

/** Targets of stage runs that do not answer. */
async function thoseAway({ owner, rolloutState, stageRuns }: Known, table: Table): Promise<readonly string[]> {
  const away: string[] = [];
  for (const stageRun of stageRunsIn(rolloutState, stageRuns)) {
    // The stage run names them while they are few.
    const named = stageRun.away.length >= stageRun.counts.Unreachable;
    const { rows, unread } = named
      ? { rows: [], unread: stageRun.away }
      : await rowsAbout(ranges.targets(owner, stageRun), table);
    away.push(...rows.filter(({ state }) => state === "Unreachable").map(({ cluster }) => cluster), ...unread);
  }
  return away;
}

/** The time of the call is over. */
export function isOver({ until }: Pick<PlannerCall, "until">, { clock }: Pick<PlannerPorts, "clock">): boolean {
  return clock.now() >= until;
}

/** The messages that one call of the planner answers. */
export interface PlannerCall {
  /** Reported clusters; undefined for any. */
  readonly clusters?: ReadonlySet<string>;
  /** A full check continues: clusters that may answer again, by name, were asked up to this one. */
  readonly after?: string;
  /** A message named no cluster, as renderers' messages do: something may be rendered by now. */
  readonly rendered?: boolean;
  /** The call stops then, and requests another one. */
  readonly until: Date;
}

/** The work of this call, and what of it was done. */
export interface CallWork {
  readonly round: Round;
  /** Clusters that may answer again, by name; and those of them that were not asked yet. */
  readonly asked: readonly string[];
  readonly answering: string[];
  /** The states that were read of those that were asked: an index may be older. */
  readonly states: Map<string, Tally>;
  /** All slots have been checked, which determines what stages take. */
  isFed: boolean;
  readonly until: Date;
  /** Targets that this call found waiting: the same call does not check them again. */
  readonly waiting: Set<string>;
  /** The same for catch-ups, by cluster. */
  readonly catchUps: Map<string, CatchUpWait>;
  /** By `stageRunKey`: stage runs whose next target was not checked yet at the end of their bake. */
  readonly unchecked: Set<string>;
  /** Inputs that could not be rendered may be rendered by now. */
  readonly isRendered: boolean;
}

export function isOfAll({ clusters, after }: PlannerCall): boolean {
  return clusters === undefined || after !== undefined;
}

export async function beginCall(known: Known, call: PlannerCall, { table }: PlannerPorts): Promise<CallWork> {
  // A person asks for a check because messages may be lost.
  const isReconcile = known.row.operations.reconcile?.number !== known.rolloutState.handledReconcile;
  const isAsked =
    isReconcile || newRejections(known.row, known.rolloutState).length > 0 || newSkips(known.row, known).length > 0;
  const clusters = isAsked || isOfAll(call) ? undefined : call.clusters;
  const round = await slotsToCheck(known, clusters, table);
  // A cluster with a slot shows by that slot whether it answers.
  const others = clusters?.difference(new Set(round.slots.map(({ cluster }) => cluster)));
  const again = new Set([...(await mayAnswerAgain(known, others, table)), ...round.unread]);
  const { after = "" } = call;
  const asked = [...again].filter((cluster) => cluster > after || call.clusters?.has(cluster)).sort();
  const isRendered = call.rendered === true || clusters === undefined || clusters.size === 0;
  const fresh = { isFed: false, waiting: new Set<string>(), catchUps: new Map(), states: new Map() };
  return { ...fresh, unchecked: new Set(), round, asked, answering: [...asked], isRendered, until: call.until };
}
