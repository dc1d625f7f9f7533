/** Verbs of people about the rollouts of a SyncGroup or Sync: each writes the operations half of the object. */

import { type RollbackFacts, readRollbackEffects } from "#functions/api/read/read-rollback-effects.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { type ObjectReference, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { decideApprove } from "#functions/api/write/approve-plan.ts";
import {
  decideRejection,
  isOrWillBeRejected,
  keptNumbers,
  unknownRollout,
} from "#functions/api/write/decide-rejection.ts";
import { decideRollback, plannedRollback } from "#functions/api/write/decide-rollback.ts";
import { decideExempt, decideUnexempt } from "#functions/api/write/exempt-windows.ts";
import { decidePromote, decideRetry } from "#functions/api/write/gate-verbs.ts";
import { type ObjectChange, operationsChange, unchanged } from "#functions/api/write/object-change.ts";
import { requireLater } from "#functions/api/write/require-later.ts";
import type { Decide, Facts, RolloutAnswer, RolloutRequest, RolloutVerb } from "#functions/api/write/rollout-verb.ts";
import { decideSkip, namedTargets } from "#functions/api/write/skip-targets.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import { approverOf } from "#shared/fleet/rollout/approval.ts";
import { keptGateActs } from "#shared/fleet/rollout/gate-acts.ts";
import type { RollbackPlan } from "#shared/fleet/rollout/rollback.ts";
import { holdInForce } from "#shared/fleet/rollout/rollout-hold.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { type Act, nextAct, type Operations, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, RolloutStateRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText, type Row } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";

const decisions: { readonly [Verb in RolloutVerb]: Decide<Verb> } = {
  hold: decideHold,
  release: decideRelease,
  promote: decidePromote,
  reject: ({ body: { rollout }, ...facts }) => decideRejection("reject", { ...facts, rollout }),
  rollback: decideRollback(false),
  "rollback-deleting": decideRollback(true),
  unreject: ({ body: { rollout }, ...facts }) => decideRejection("unreject", { ...facts, rollout }),
  retry: decideRetry,
  skip: decideSkip,
  approve: decideApprove,
  exempt: decideExempt,
  unexempt: decideUnexempt,
};

/** Verbs about single stage runs. The others work although only a newer version can read a stage run. */
const ofStageRuns: ReadonlySet<RolloutVerb> = new Set<RolloutVerb>(["promote", "approve", "skip"]);

/**
 * Carries out a verb and sends a message to the planner.
 * @throws StarlingError `NotFound`, `Deleting`, `NewerRow`, and what the verb refuses: `BadRequest`, `NotHeld`,
 * `NotStalled`, `NotFailed`, `NotATarget`, `NotGated`, `StageRunChanged`, `RolloutRejected`, `NothingToRollBack`,
 * `Forbidden`.
 */
export async function operateRollout(ports: ApiPorts, request: RolloutRequest): Promise<RolloutAnswer> {
  const { owner, verb, caller } = request;
  const reference: ObjectReference = owner;
  const rolloutState = await readRow(ports.table, keys.rolloutState(owner));
  if (rolloutState !== undefined && isNewer(rolloutState)) throw refusal("NewerRow", newerRowText(rolloutState));
  const stageRuns = await readStageRuns(ports, owner, ofStageRuns.has(verb) ? rolloutState : undefined);
  const rows = await readNamedRows(ports, request, rolloutState);
  const named = request.verb === "skip" ? await namedTargets(ports, stageRuns, request.body) : new Map();
  const now = ports.clock.now();
  let rollback: RollbackPlan | undefined;
  const change = await writeObject(ports, {
    reference,
    verb: `rollout ${verb}`,
    caller,
    decide(row) {
      const object = objectText(reference);
      if (row === undefined) throw refusal("NotFound", `${object} does not exist`);
      if (row.type !== "SyncGroup" && row.type !== "Sync") throw new Error(`${object} has no rollouts`);
      if (row.operations.deletion !== undefined) throw refusal("Deleting", `${object} is being deleted`);
      if (request.verb === "rollback" || request.verb === "rollback-deleting") {
        const facts = { row, rows, rolloutState: ofObject(rolloutState, row), body: request.body, object };
        rollback = plannedRollback(facts, request.verb === "rollback-deleting");
      }
      return decided(row, {
        request,
        rolloutState: ofObject(rolloutState, row),
        stageRuns,
        rows,
        named,
        approver: approverOf(caller.principal, ports.personalRoles),
        now,
        object,
      });
    },
  });
  await sendAfter(ports, [change]);
  return {
    outcome: change.outcome === "unchanged" ? "unchanged" : "configured",
    operations: change.after.operations,
    ...(rollback === undefined || rolloutState === undefined
      ? {}
      : {
          rollback: await withObjects(ports, { owner, rolloutState, plan: rollback, rollouts: rows.filter(isRollout) }),
        }),
  };
}

/** A rollback that people asked for goes on, whether or not what it does to objects can be read. */
async function withObjects(ports: ApiPorts, facts: RollbackFacts): Promise<NonNullable<RolloutAnswer["rollback"]>> {
  try {
    return { ...facts.plan, objects: await readRollbackEffects(ports, facts) };
  } catch (error) {
    ports.log.error("the effects of a rollback on objects cannot be read", {
      ...ownerFields(facts.owner),
      error: errorMessage(error),
    });
    return facts.plan;
  }
}

function isRollout(row: Row): row is RolloutRow {
  return isOfType(row, "Rollout");
}

/** By `stageRunKey`, those in progress. */
async function readStageRuns(
  { table }: ApiPorts,
  owner: Owner,
  rolloutState: RolloutStateRow | undefined,
): Promise<ReadonlyMap<string, StageRunRow>> {
  const refs = rolloutState?.stages.flatMap(({ updatingTo }) => updatingTo ?? []) ?? [];
  const rows = await table.getMany(refs.map((ref) => keys.stageRun(owner, ref)));
  return new Map(rows.map((row) => [stageRunKey(row), row]));
}

async function readNamedRows(
  { table }: ApiPorts,
  { owner, verb, body }: RolloutRequest,
  rolloutState: RolloutStateRow | undefined,
): Promise<readonly Row[]> {
  if (verb === "rollback" || verb === "rollback-deleting")
    return table.getMany(keptNumbers(rolloutState).map((number) => keys.rollout(owner, number)));
  if (verb === "exempt") return table.getMany([keys.windowState]);
  const cluster = "cluster" in body ? body.cluster : undefined;
  if (cluster === undefined) return [];
  const refs = rolloutState?.stages.flatMap(({ updatingTo, passed }) => updatingTo ?? passed ?? []) ?? [];
  return table.getMany(
    [
      keys.fleet(cluster),
      keys.catchUp(owner, "failed", cluster),
      ...refs.map((ref) => keys.target(owner, ref, cluster)),
    ],
    { newer: "kept" },
  );
}

/** The rollout state of an earlier object of the same name tells nothing about this one. */
function ofObject(rolloutState: RolloutStateRow | undefined, { uid }: OwnerRow): RolloutStateRow | undefined {
  return rolloutState?.uid === uid ? rolloutState : undefined;
}

function decided(
  row: OwnerRow,
  about: Pick<Facts<RolloutVerb>, "rolloutState" | "stageRuns" | "rows" | "named" | "approver" | "now" | "object"> & {
    readonly request: RolloutRequest;
  },
): ObjectChange {
  const { request, ...given } = about;
  const act: Act = {
    by: request.caller.principal,
    at: about.now.toISOString(),
    ...defined({ reason: request.caller.reason }),
    number: nextAct(row.operations),
  };
  const decide = decisions[request.verb] as Decide<RolloutVerb>;
  const { gates: _past, ...others } = row.operations;
  const gates = keptGateActs(row.operations, about.rolloutState);
  const kept = { ...row, operations: { ...others, ...(gates.length === 0 ? {} : { gates }) } };
  const operations = decide({ ...given, row: kept, body: request.body, act });
  return operations === undefined ? unchanged(row) : operationsChange(row, operations, about.now);
}

/** Another hold replaces the one in force, and keeps the rollouts that were released from it. */
function decideHold({ row: { operations }, body: { until }, act, now }: Facts<"hold">): Operations {
  requireLater(until, now, "to hold until a release");
  const { except } = operations.hold ?? {};
  return { ...operations, hold: { ...act, ...defined({ until, except }) } };
}

/** Without `to` the hold ends; with it, the stages take this one rollout, and the hold keeps all others back. */
function decideRelease({
  row,
  rolloutState,
  body: { to },
  act,
  now,
  object,
}: Facts<"release">): Operations | undefined {
  const { hold, ...operations } = row.operations;
  if (holdInForce(row, now) === undefined || hold === undefined) {
    if (to === undefined) return hold === undefined ? undefined : { ...operations, released: act };
    throw refusal("NotHeld", `${object} is not held, so that rollout ${to} needs no release`);
  }
  if (to === undefined) return { ...operations, released: act };
  const known = keptNumbers(rolloutState);
  if (!known.includes(to)) throw unknownRollout("to", { object, rollout: to, known });
  if (isOrWillBeRejected({ row, rolloutState, rollout: to }))
    throw refusal("RolloutRejected", `to: rollout ${to} of ${object} is rejected; unreject it first`);
  const except = [...(hold.except ?? []).filter((number) => number !== to), to].slice(-keptExceptions);
  return { ...operations, released: act, hold: { ...hold, except } };
}

/** As many rollouts as an owner keeps. */
const keptExceptions = 10;
