/** Clusters that wait for a slot, and clusters with a slot that wait for their worker. */
import { defined } from "#shared/base/defined.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { changingIn, changingOf, membersOfAll, moversOf, ownBound, turnsOf } from "#shared/fleet/rollout/slots.ts";
import { boundOf, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { Begun, LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import { desiredKey, holdOf } from "#shared/fleet/rows/sync-row.ts";
import { assignedIn, slotState } from "#shared/fleet/waits/slot-state.ts";
import {
  checkedSlots,
  namesShown,
  namesText,
  type Wait,
  type WaitFacts,
  waitingText,
} from "#shared/fleet/waits/wait.ts";

/** Seconds after which a worker that has not begun is late. */
const lateSeconds = 60;

/** Targets that could continue, but have no slot. */
export function slotWaits(facts: WaitFacts): readonly Wait[] {
  const { rolloutState, stageRuns, row, slots, syncs } = facts;
  const { suspended, deletion } = row.operations;
  if (suspended !== undefined || (facts.freezeState.ok && isAllFrozen(facts))) return [];
  const { rollout } = relationOf(row);
  const movers = moversOf({ rolloutState, stageRuns, rollout, isGoing: deletion !== undefined });
  const [oldest] = slots;
  const [used, bound] = [changingOf(rolloutState), boundOf(rollout, membersOfAll(rolloutState))];
  return turnsOf(rolloutState, movers, rollout).flatMap(({ mover, slots: given }): readonly Wait[] => {
    if (given > 0) return [];
    const { stageRun } = mover;
    const own =
      stageRun === undefined || mover.maxConcurrent === undefined
        ? undefined
        : ownBound(mover.maxConcurrent, stageRun.size);
    const name = stageRun === undefined ? undefined : stageRun.stage;
    const stage = rolloutState.stages.find((stage) => stage.name === name);
    const changing = stage === undefined ? 0 : changingIn(stage);
    const isOwn = own !== undefined && changing >= own && used < bound;
    const held = isOwn
      ? `${changing} of ${own} slots of ${name} are in use`
      : `${used} of ${bound} slots are in use${used < bound ? " (one is reserved for the first stage)" : ""}`;
    const who =
      oldest === undefined ? "" : `; oldest: ${oldest.cluster}, ${slotState(oldest, syncs.get(oldest.cluster) ?? [])}`;
    const count = stageRun === undefined ? rolloutState.catchUps.waiting : waitingOf(stageRun);
    return [
      {
        reason: "slots",
        ...defined({
          stage: name,
          rollout: stageRun?.rollout,
          blocker: oldest?.cluster,
          since: oldest?.since,
          until: rolloutState.deadline,
        }),
        clusters: { count, names: [] },
        message: `${waitingText(count)}${stageRun === undefined ? " to catch up" : ""}: ${held}${who}`,
        // Documents of an owner that is being deleted are refused: its pace stays.
        clear: deletion === undefined ? [{ verb: "pace", field: "maxConcurrent" }] : [{ verb: "orphan" }],
      },
    ];
  });
}

function isAllFrozen({ freezeState, now }: WaitFacts): boolean {
  return (
    freezeState.ok &&
    freezeState.freezeState.freezes.some((freeze) => freeze.clusters === undefined && isInForce(freeze, now))
  );
}

/** Assignments whose workers have not begun for a while: that counts against no budget, and ends when they begin. */
export function workerWaits({ slots, syncs, leases, now, row }: WaitFacts): readonly Wait[] {
  if (row.operations.suspended !== undefined) return [];
  const late = slots.slice(0, checkedSlots).filter((slot) => {
    const given = assignedIn(slot, syncs.get(slot.cluster) ?? []);
    if (slot.releasing !== undefined || given.length === 0 || given.some((sync) => holdOf(sync) !== undefined))
      return false;
    const at = worksAt(leases.get(slot.cluster), now);
    if (given.some((sync) => at?.sync === `${sync.namespace}/${sync.name}` && at.desired === desiredKey(sync)))
      return false;
    const starts = [slot.since, ...given.flatMap(({ desired }) => desired.startAt ?? [])].sort().at(-1) ?? slot.since;
    return slotState(slot, given) === "Assigned" && later(starts, lateSeconds) <= now.toISOString();
  });
  const [first] = late;
  if (first === undefined) return [];
  const busy = late.find(({ cluster }) => worksAt(leases.get(cluster), now) !== undefined);
  const sync = busy === undefined ? undefined : worksAt(leases.get(busy.cluster), now)?.sync;
  const clusters = { count: late.length, names: late.slice(0, namesShown).map(({ cluster }) => cluster) };
  const why = busy === undefined ? namesText(clusters) : `: the worker of ${busy.cluster} is busy with ${sync}`;
  const count = `${late.length}${slots.length > checkedSlots ? " or more" : ""}`;
  const message = `${count} assigned and not begun${why}`;
  return [{ reason: "worker", clusters, ...defined({ blocker: sync }), message, since: first.since, clear: [] }];
}

/** The last Sync that a cluster's worker has begun, possibly without a report yet. */
function worksAt(lease: LeaseRow | undefined, now: Date): Begun | undefined {
  return lease?.owner !== undefined && (lease.leaseUntil ?? "") > now.toISOString() ? lease.begun : undefined;
}
