import { type TargetZonesPorts, withTargetZones } from "#functions/api/read/target-zones.ts";
import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { readSnapshot, storedList } from "#shared/adapters/stored-list.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorCode, StarlingError, unlessLost } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { TargetItem } from "#shared/fleet/api/objects.ts";
import {
  type FoundTarget,
  newestStageRuns,
  type RolloutInProgress,
  targetItem,
} from "#shared/fleet/api/rollout-object.ts";
import { heldIn } from "#shared/fleet/rollout/holding.ts";
import { judge, wasUnhealthy } from "#shared/fleet/rollout/judge.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import {
  type SlotRow,
  type SnapshotTarget,
  type StageRunRow,
  type TargetRow,
  type TargetState,
  targetStates,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type NewerRow, newerRowText } from "#shared/fleet/rows/row.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { slotState } from "#shared/fleet/waits/slot-state.ts";
import type { BlobStore, Table } from "#shared/ports.ts";

/** Reads for one answer when the requested state is rare. */
const readsPerAnswer = 10;
const targetsPerRead = 500;
/** Rows of targets that the table reads for one answer, whatever part of them is requested. */
const rowsPerRead = 2500;

/** States in which a target has its own row, and those in which its cluster has a slot. */
const endStates: readonly TargetState[] = ["Succeeded", "Unchanged", "Failed", "Unreachable", "Superseded", "Skipped"];
const slotStates: readonly TargetState[] = ["Assigned", "Applying", "Verifying"];

export interface TargetPorts extends TargetZonesPorts {
  readonly table: Table;
  readonly blobs: Pick<BlobStore, "get">;
}

export interface TargetFilter {
  readonly way: RolloutInProgress;
  /** Name of a stage. */
  readonly stage?: string;
  readonly states?: readonly TargetState[];
  readonly page: PageRequest;
}

/** The rows and the snapshot of a stage run, as far as they were read. */
type Found = FoundTarget | NewerTarget;

interface NewerTarget {
  readonly newer: NewerRow;
  readonly cluster: string;
  readonly order: number;
  readonly stage: string;
}

/** Position within a stage run where a list continues: at an order, or after a row. */
interface Place {
  readonly at?: number;
  readonly after?: string;
}

interface StageRunPart {
  readonly found: readonly Found[];
  /** When absent, the stage run is complete. */
  readonly next?: Place;
}

/**
 * Targets of a rollout, stage by stage and in the order of the snapshot, with the worker's report about those that are
 * not done. When only states with a row are requested, the targets come by cluster, and waiting ones are not read.
 */
export async function listTargets(ports: TargetPorts, filter: TargetFilter): Promise<ListPage<TargetItem>> {
  const { way, page, states } = filter;
  const stageRuns = stageRunsOf(filter);
  const cursor = page.after === undefined ? {} : placeOf(page.after);
  const first = stageRuns.findIndex(({ stage }) => stage === cursor.stage);
  let index = Math.max(0, first);
  let place: Place = first === -1 ? {} : cursor;
  const found: Found[] = [];
  for (let reads = 0; reads < readsPerAnswer && found.length < page.limit; reads++) {
    for (; stageRuns[index] !== undefined && !hasAny(stageRuns[index], states); index++) place = {};
    const stageRun = stageRuns[index];
    if (stageRun === undefined) break;
    const most = Math.min(targetsPerRead, page.limit - found.length);
    const part = await readStageRun(ports, { stageRun, way, states, place, most });
    found.push(...part.found);
    if (part.next === undefined) index++;
    place = part.next ?? {};
  }
  const syncs = await syncsOfTargets(ports.table, way, found);
  const own = found
    .map((target) => itemOf(target, syncs.get(target.cluster) ?? [], states))
    .filter((item) => item !== undefined);
  const items = await withTargetZones(own, ports);
  const stageRun = stageRuns[index];
  if (stageRun === undefined) return { items };
  const { at, after } = place;
  return { items, next: encodeCursor({ stage: stageRun.stage, ...defined({ at: at?.toString(), after }) }) };
}

function stageRunsOf({ way, stage }: TargetFilter): readonly StageRunRow[] {
  const stageRuns = newestStageRuns(way.stageRuns, way.stages);
  if (stage === undefined) return stageRuns;
  const names = new Set([...stageRuns.map((stageRun) => stageRun.stage), ...way.stages.map(({ name }) => name)]);
  if (names.has(stage)) return stageRuns.filter((stageRun) => stageRun.stage === stage);
  throw refusal("BadRequest", `stage is "${excerpt(stage)}"; this rollout has ${[...names].join(", ")}`);
}

/** @throws StarlingError `BadRequest` when the cursor does not come from a list of targets. */
function placeOf(token: string): Place & { readonly stage?: string } {
  const { stage, at, after } = decodeCursor(token);
  const order = at === undefined ? undefined : Number(at);
  if (order !== undefined && !Number.isSafeInteger(order))
    throw refusal("BadRequest", "continue is not a token of this list");
  return defined({ stage, at: order, after });
}

/** False when the counts exclude the state: then nothing of the stage run is read. */
function hasAny(stageRun: StageRunRow | undefined, states: readonly TargetState[] | undefined): boolean {
  // States that a worker reports meanwhile are counted as assigned.
  return (
    states === undefined ||
    states.some((state) => (stageRun?.counts[slotStates.includes(state) ? "Assigned" : state] ?? 0) > 0)
  );
}

interface Reading {
  readonly stageRun: StageRunRow;
  readonly way: RolloutInProgress;
  readonly states: readonly TargetState[] | undefined;
  readonly place: Place;
  readonly most: number;
}

async function readStageRun(ports: TargetPorts, reading: Reading): Promise<StageRunPart> {
  const { stageRun, states } = reading;
  if (
    states?.every((state) => endStates.includes(state)) === true &&
    (stageRun.phase !== "Superseded" || !states.includes("Superseded"))
  )
    return readEnds(ports, reading);
  if (states?.every((state) => slotStates.includes(state)) === true) return readSlots(ports, reading);
  return readOrders(ports, reading).catch((error: unknown) => {
    // The snapshot of a stage run that has ended expires; its rows remain.
    if (stageRun.endedAt === undefined || errorCode(error) !== "TargetsLost") throw error;
    return readEnds(ports, { ...reading, states: endStates });
  });
}

async function readEnds(
  { table }: TargetPorts,
  { stageRun, way, states = [], place, most }: Reading,
): Promise<StageRunPart> {
  // When all targets fit into the answer, no read finds too many, so a few among thousands are found.
  const matching = states.reduce((sum, state) => sum + stageRun.counts[state], 0);
  const limit = matching <= most ? rowsPerRead : most;
  const range = { ...ranges.targets(way.rollout.owner, stageRun), limit, newer: "kept", states } as const;
  const { items, next } = await table.query({ ...range, ...defined({ after: place.after }) });
  const found = items.filter((row) => !isNewer(row));
  return { found: found.map((row) => ended(row, stageRun)), ...(next === undefined ? {} : { next: { after: next } }) };
}

/** There are never more slots than clusters that may change at once. */
async function readSlots({ table }: TargetPorts, { stageRun, way, place, most }: Reading): Promise<StageRunPart> {
  const range = ranges.slots(way.rollout.owner);
  const slots = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
  const own = slots
    .filter((slot) => !isNewer(slot))
    .filter((slot) => isSameStageRun(slot.stageRun, stageRun) && slot.releasing === undefined);
  const ordered = own.map((slot) => changing(slot, stageRun)).sort((a, b) => a.order - b.order);
  const rest = ordered.filter(({ order }) => order >= (place.at ?? 0));
  const next = rest[most];
  return { found: rest.slice(0, most), ...(next === undefined ? {} : { next: { at: next.order } }) };
}

async function readOrders(ports: TargetPorts, { stageRun, way, states, place, most }: Reading): Promise<StageRunPart> {
  const orders: number[] = [];
  let at = place.at ?? 0;
  const waits = waitingIn(stageRun);
  for (; at < stageRun.size && orders.length < most; at++) {
    const state = waits(at);
    if (states === undefined || state === undefined || states.includes(state)) orders.push(at);
  }
  const lists = { read: (key: string) => storedList<SnapshotTarget>(ports.blobs, key) };
  const snapshot = await unlessLost(readSnapshot(stageRun, orders, lists), () => {
    const message = `the list of targets in stage ${stageRun.stage} is lost; the planner writes it again at its next check of the stage`;
    throw new StarlingError(message, { code: otherCode("TargetsLost"), retry: "transient" });
  });
  const { owner } = way.rollout;
  const clusters = orders.flatMap((order) => {
    const cluster = snapshot.get(order)?.cluster;
    return cluster === undefined ? [] : [{ order, cluster, state: waits(order) }];
  });
  const read = clusters.filter(({ order, state }) => state === undefined || heldIn(stageRun, "worker").includes(order));
  const rows = await ports.table.getMany(
    read.flatMap(({ cluster }) => [keys.target(owner, stageRun, cluster), keys.slot(owner, cluster)]),
    { newer: "kept" },
  );
  const targets = new Map(rows.flatMap((row) => named(keys.target.parse(row), row)));
  const slots = new Map(rows.flatMap((row) => named(keys.slot.parse(row), row)));
  const found = clusters.map(({ cluster, order, state }): Found => {
    const [target, slot] = [targets.get(cluster), slots.get(cluster)];
    const newer = [target, slot].find((row) => row !== undefined && isNewer(row));
    const about = { cluster, order, stage: stageRun.stage };
    if (newer !== undefined && isNewer(newer)) return { newer, ...about };
    if (state === undefined && target?.type === "Target") return ended(target, stageRun);
    const own = slot?.type === "Slot" ? slot : undefined;
    if (
      state === undefined &&
      own !== undefined &&
      isSameStageRun(own.stageRun, stageRun) &&
      stageRun.endedAt === undefined
    )
      return changing(own, stageRun);
    const open = stageRun.phase === "Superseded" ? "Superseded" : (state ?? "Waiting");
    return { ...about, state: open, reason: waitingReason(stageRun, { order, slot: own }), attempts: {} };
  });
  const kept = found.filter((target) => states === undefined || ("state" in target && isAsked(target, states)));
  return { found: kept, ...(at < stageRun.size ? { next: { at } } : {}) };
}

/** The state of a target by its order alone; undefined when it was checked, and has a row or a slot. */
function waitingIn(stageRun: StageRunRow): (order: number) => "Waiting" | "Rendering" | undefined {
  const rendering = new Set(heldIn(stageRun, "rendering"));
  const waiting = new Set([...stageRun.holds.flatMap(({ clusters }) => clusters), ...stageRun.returned]);
  return (order) => {
    if (stageRun.phase === "Superseded") return undefined;
    if (rendering.has(order)) return "Rendering";
    return order >= stageRun.next || waiting.has(order) ? "Waiting" : undefined;
  };
}

function waitingReason(
  stageRun: StageRunRow,
  { order, slot }: { readonly order: number; readonly slot: SlotRow | undefined },
): string {
  if (stageRun.phase === "Superseded") return stageRun.message;
  const hold = stageRun.holds.find(({ clusters }) => clusters.includes(order));
  if (hold === undefined) return "";
  const { cause, name } = hold;
  switch (cause) {
    case "rendering":
      return "waiting for its rendering";
    case "cordon":
      return `waits until cluster ${name} is uncordoned`;
    case "freeze":
      return `waits until freeze ${name} ends`;
    case "window":
      return name?.includes(", ")
        ? `waits for windows ${name}: at least one is closed`
        : `waits until window ${name} opens`;
    case "bound":
    case "worker":
      if (slot === undefined) return "waits until the planner checks its stage again";
      return slot.releasing === undefined
        ? `settles what rollout ${slot.rollout} began`
        : "waits until its worker has finished";
    default:
      cause satisfies never;
      return "";
  }
}

function named<R>(parts: { readonly cluster: string } | undefined, row: R): readonly (readonly [string, R])[] {
  return parts === undefined ? [] : [[parts.cluster, row]];
}

/** The worker's state is read later. */
function isAsked({ state }: FoundTarget, states: readonly TargetState[]): boolean {
  return states.includes(state) || (state === "Assigned" && states.some((one) => slotStates.includes(one)));
}

function ended(row: TargetRow, { stage }: StageRunRow): FoundTarget {
  const { cluster, order, state, reason, attempts, assignedAt, endedAt, preexisting } = row;
  return { cluster, order, stage, state, reason, attempts, endedAt, ...defined({ assignedAt, preexisting }) };
}

function changing({ cluster, order = 0, attempts, since }: SlotRow, { stage }: StageRunRow): FoundTarget {
  return {
    cluster,
    order,
    stage,
    state: "Assigned",
    reason: "",
    attempts,
    assignedAt: since,
  };
}

/** @returns undefined when its worker reports another state than the requested one. */
function itemOf(
  target: Found,
  syncs: readonly SyncRow[],
  states: readonly TargetState[] | undefined,
): TargetItem | undefined {
  if ("newer" in target) {
    const { cluster, order, stage, newer } = target;
    return { cluster, order, stage, state: "Unreadable", reason: because("NewerRow", newerRowText(newer)) };
  }
  if (target.state !== "Assigned") return targetItem(target, syncs);
  const state = slotState(target, syncs);
  if (states !== undefined && !states.includes(state)) return undefined;
  // The planner decides whether it was in time.
  const { reason } = judge(target, syncs, { now: new Date(0), progressSeconds: 0, pausedAt: target.assignedAt ?? "" });
  const assigned = syncs.filter(({ name }) => name in target.attempts);
  return targetItem({ ...target, state, reason, ...(wasUnhealthy(assigned) ? { preexisting: true } : {}) }, syncs);
}

/** @throws StarlingError `BadRequest` that names the unknown state. */
export function targetStatesOf(text: string): readonly TargetState[] {
  return text.split(",").map((word) => {
    const state = targetStates.find((candidate) => candidate.toLowerCase() === word.trim().toLowerCase());
    if (state === undefined)
      throw refusal("BadRequest", `state is "${excerpt(word)}"; expected ${targetStates.join(", ")}`);
    return state;
  });
}

/** Syncs of targets that something was assigned to. */
async function syncsOfTargets(
  table: Table,
  { rollout: { owner, plan } }: RolloutInProgress,
  found: readonly Found[],
): Promise<ReadonlyMap<string, readonly SyncRow[]>> {
  const templates = plan.templates.map(({ name }) => syncName(owner, name));
  const touched = found
    .filter((target) => "state" in target)
    .filter(({ state }) => state !== "Waiting" && state !== "Rendering");
  const desired = touched.flatMap(({ cluster, attempts }) =>
    [...new Set([...templates, ...Object.keys(attempts)])].map((name) => keys.sync(cluster, owner.namespace, name)),
  );
  const rows = await table.getMany(desired, { newer: "kept" });
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  return Map.groupBy(syncs, ({ cluster }) => cluster);
}
