import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { type ObjectReference, objectKey, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import {
  type ObjectChange,
  operationsChange,
  sourcesOf,
  unchanged,
  type WrittenRow,
} from "#functions/api/write/object-change.ts";
import { requireLater } from "#functions/api/write/require-later.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import type { pathChoices } from "#shared/fleet/api/api-routes.ts";
import { deletionFailed } from "#shared/fleet/rollout/owner-status.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import { type Act, nextAct, type Operations, type Suspension } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, newerRowText } from "#shared/fleet/rows/row.ts";
import { laterEnd, stoodAfter } from "#shared/fleet/rows/suspension.ts";

/** Number of later suspends that are kept besides the first; a row is not a log. */
const keptSuspends = 10;

export interface OperateRequest {
  readonly reference: ObjectReference;
  readonly verb: (typeof pathChoices)["verb"][number];
  /** For `reconcile`: poll its Sources as well. */
  readonly sources?: "include";
  /** A suspend ends by itself then. */
  readonly until?: string | undefined;
  readonly caller: Caller;
}

export interface OperateAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly operations: Operations;
  readonly warnings: readonly string[];
}

/**
 * Suspends, resumes, reconciles or refreshes an object. Only the operations half is written, so that applying a
 * document from git does not undo it. Suspending a suspended object keeps the first person, adds the next, and lasts as
 * long as the longest of them.
 * @throws StarlingError `NotFound`, `Suspended` (a reconcile or refresh would do nothing), `Deleting`,
 *   `MethodNotAllowed`, `BadRequest` (an end that has passed, or an end of something else).
 */
export async function operate(ports: ApiPorts, request: OperateRequest): Promise<OperateAnswer> {
  const { reference, caller, verb } = request;
  const at = ports.clock.now();
  requireLater(request.until, at, "to suspend until a resume");
  if (request.until !== undefined && verb !== "suspend")
    throw refusal("BadRequest", `until: a ${verb} has no end; leave it out`);
  const act: Omit<Act, "number"> = {
    by: caller.principal,
    at: at.toISOString(),
    ...defined({ reason: caller.reason }),
  };
  const change = await writeObject(ports, {
    reference,
    verb,
    caller,
    decide: (before) => decide(before, { request, act, at }),
  });
  const changes: ObjectChange[] = [change];
  const warnings: string[] = [];
  try {
    if (request.sources === "include" && (change.after.type === "SyncGroup" || change.after.type === "Sync")) {
      for (const name of sourcesOf(change.after)) {
        const source: ObjectReference = { kind: "Source", namespace: change.after.namespace, name };
        const outcome = await reconcileSource(ports, { source, caller, act, at });
        if (typeof outcome === "string") warnings.push(outcome);
        else changes.push(outcome);
      }
    }
  } finally {
    await sendAfter(ports, changes);
  }
  return {
    outcome: change.outcome === "unchanged" ? "unchanged" : "configured",
    operations: change.after.operations,
    warnings,
  };
}

interface Decision {
  readonly request: Pick<OperateRequest, "reference" | "verb" | "until">;
  readonly act: Omit<Act, "number">;
  readonly at: Date;
}

function decide(before: WrittenRow | undefined, { request, act: said, at }: Decision): ObjectChange {
  const object = objectText(request.reference);
  if (before === undefined) throw refusal("NotFound", `${object} does not exist`);
  const { suspended, resumed, ...operations } = before.operations;
  const act: Act = { ...said, number: nextAct(before.operations) };
  if (request.verb === "suspend") {
    const asked: Suspension = { ...act, ...defined({ until: request.until }) };
    const next =
      suspended === undefined ? { ...asked, ...defined({ stood: resumed?.stood }) } : suspendedAgain(suspended, asked);
    return next === suspended ? unchanged(before) : operationsChange(before, { ...operations, suspended: next }, at);
  }
  if (request.verb === "resume") {
    if (suspended === undefined) return unchanged(before);
    return operationsChange(before, { ...operations, resumed: { ...act, ...stoodAfter(suspended, at) } }, at);
  }
  if (suspended !== undefined) {
    const why = suspended.reason === undefined ? "" : `: ${suspended.reason}`;
    const message = `${object} is suspended (by ${suspended.by} at ${suspended.at}${why}${endText(suspended)}); resume it first`;
    throw refusal("Suspended", message);
  }
  const hasFailed = before.status.conditions.some(({ reason }) => reason === deletionFailed);
  if (operations.deletion !== undefined && !hasFailed) throw refusal("Deleting", `${object} is being deleted`);
  if (before.type === "Receiver") {
    const { namespace, name } = before;
    const remedy = `run \`starling receiver trigger ${name} -n ${namespace}\` to poll its Sources`;
    throw refusal(
      "MethodNotAllowed",
      `${object} waits for senders, and is not ${request.verb === "refresh" ? "refreshed" : "reconciled"}; ${remedy}`,
    );
  }
  const held = resumed === undefined ? operations : { ...operations, resumed };
  if (request.verb === "reconcile") return operationsChange(before, { ...held, reconcile: act }, at);
  if (before.type === "SyncGroup" || before.type === "Sync")
    return operationsChange(before, { ...held, refresh: act }, at);
  throw refusal("MethodNotAllowed", `${object} has no rollouts; refresh a SyncGroup or a Sync`);
}

/** Keeps the first person and the later end; adds another person, or another reason, once. */
function suspendedAgain(suspended: Suspension, { until: asked, ...act }: Suspension): Suspension {
  const { until: end, ...first } = suspended;
  const until = laterEnd(end, asked);
  const reported = [suspended, ...(suspended.again ?? [])];
  const isKnown = reported.some(
    ({ by, reason }) => by === act.by && (act.reason === undefined || reason === act.reason),
  );
  if (isKnown && until === end) return suspended;
  const again = isKnown ? {} : { again: [...reported.slice(1), act].slice(-keptSuspends) };
  return { ...first, ...defined({ until }), ...again };
}

/** @returns the change, or the reason why the Source was left alone. */
async function reconcileSource(
  ports: ApiPorts,
  { source, caller, act, at }: { source: ObjectReference; caller: Caller; act: Omit<Act, "number">; at: Date },
): Promise<ObjectChange | string> {
  const row = await readRow(ports.table, objectKey(source));
  if (row === undefined) return `${objectText(source)} does not exist and was not asked`;
  if (isNewer(row)) return `${objectText(source)} was not asked: ${newerRowText(row)}`;
  if (row.operations.suspended !== undefined) return `${objectText(source)} is suspended and was not asked`;
  const request = { reference: source, verb: "reconcile" } as const;
  return writeObject(ports, {
    ...request,
    caller,
    decide: (before) => decide(before, { request, act, at }),
  });
}
