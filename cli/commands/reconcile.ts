import { requireReadable } from "#cli/format/require-readable.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { isHeard } from "#cli/session/heard.ts";
import { hasNamespace, type NamedObject, parseNamed, pathOfObject, shortName } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { untilTime } from "#cli/session/until-time.ts";
import { defined } from "#shared/base/defined.ts";
import type { AnyObject } from "#shared/fleet/api/objects.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import type { Operations, OwnerState } from "#shared/fleet/rows/object-rows.ts";
import { actText, objectState, planOf } from "#shared/words/object-state.ts";
import { isUnderWay } from "#shared/words/state-words.ts";

const pollMs = 1000;
/** States that end a wait without success. */
const endWords = new Set([
  "Failed",
  "Halted",
  "Stalled",
  "NotReady",
  "Degraded",
  "Waiting",
  "Suspended",
  "Frozen",
  "Deleting",
  "NoClusters",
  "ClusterNotFound",
  "Unreachable",
  "Retrying",
  "OutOfSync",
  "Drifted",
  "Reconciling",
  "Held",
  "Guarded",
  "Rejected",
]);
/** States of a group that has no rollout in progress, so that its clusters were counted. */
const countedWords: ReadonlySet<OwnerState> = new Set([
  "Degraded",
  "Drifted",
  "Complete",
  "Reconciling",
  "Held",
  "Guarded",
]);
const goodWords = new Set(["Complete", "Ready"]);

interface OperateAnswer {
  readonly outcome: string;
  readonly operations: Operations;
  readonly warnings: readonly string[];
}

export interface SuspendOptions {
  readonly until?: string;
}

export async function suspendOrResume(
  session: Session,
  verb: "suspend" | "resume",
  args: readonly string[],
  options: SuspendOptions,
): Promise<ExitReason> {
  session.announce();
  const body = options.until === undefined ? {} : { until: untilTime(options.until, session.io.now()) };
  for (const object of operable(args, verb)) {
    const { outcome, operations } = await post(session, object, { verb, body });
    session.io.out(
      `${shortName(object)} ${verb === "suspend" ? suspendText(outcome, operations) : resumeText(outcome)}\n`,
    );
    if (verb === "suspend" && session.options.reason === undefined && outcome !== "unchanged") {
      session.note("no reason is recorded; --reason TEXT records one");
    }
  }
  return "done";
}

function suspendText(outcome: string, { suspended }: Operations): string {
  if (suspended === undefined) return "is not suspended";
  if (outcome === "unchanged") return `is already suspended${endText(suspended)}`;
  if (suspended.again === undefined) return `suspended${endText(suspended)}`;
  return `is already suspended (${actText(suspended)}); this suspension is recorded too`;
}

function resumeText(outcome: string): string {
  return outcome === "unchanged" ? "is not suspended" : "resumed";
}

export interface ReconcileOptions {
  readonly withSource?: boolean;
  readonly wait?: boolean;
}

export async function reconcile(
  session: Session,
  args: readonly string[],
  options: ReconcileOptions,
): Promise<ExitReason> {
  session.announce();
  const body = options.withSource === true ? { withSource: true } : {};
  const asked: Asked[] = [];
  for (const object of operable(args, "reconcile")) {
    const answer = await post(session, object, { verb: "reconcile", body });
    for (const warning of answer.warnings) session.note(`warning: ${warning}`);
    session.io.out(`${shortName(object)} reconcile requested\n`);
    asked.push({ object, number: numberOf(answer) });
  }
  if (options.wait !== true) return "done";
  let worst: ExitReason = "done";
  for (const { object, number } of asked) {
    const sources = options.withSource === true ? await waitForSources(session, object) : "none";
    if (sources === "failed") {
      worst = "no";
      continue;
    }
    // A second request, because the planner may have handled the first one before the Sources found a new revision.
    const since = sources === "none" ? number : numberOf(await post(session, object, { verb: "reconcile", body: {} }));
    if ((await waitAnswered(session, { object, number: since })) === "no") worst = "no";
  }
  return worst;
}

function numberOf(answer: OperateAnswer): number {
  return answer.operations.reconcile?.number ?? 0;
}

interface Asked {
  readonly object: NamedObject;
  /** The number of the `reconcile` that is waited for. */
  readonly number: number;
}

/** Waits until every Source of the object was polled after the request. */
async function waitForSources(session: Session, object: NamedObject): Promise<"none" | "found" | "failed"> {
  const current = await readObject(session, object);
  if (current.kind !== "SyncGroup" && current.kind !== "Sync") return "none";
  const templates = current.kind === "Sync" ? [current.spec] : current.spec.templates;
  let outcome: "found" | "failed" = "found";
  for (const name of new Set(templates.flatMap(templateSources))) {
    const source: NamedObject = { kind: "Source", name };
    const { operations } = await readObject(session, source);
    const number = operations?.reconcile?.number ?? 0;
    if ((await waitAnswered(session, { object: source, number })) === "no") outcome = "failed";
  }
  return outcome;
}

/** @throws CliFailure when the object's row cannot be read by this version. */
async function readObject(session: Session, object: NamedObject): Promise<AnyObject> {
  return requireReadable(await session.api.call<AnyObject>({ method: "GET", path: pathOf(session, object) }));
}

/** Waits until the request is done or cannot be done. Compares numbers of requests, not clocks. */
/** Prints the state in which the wait ends. */
export async function waitAnswered(session: Session, asked: Asked): Promise<ExitReason> {
  const { object } = asked;
  const hasPlan = object.kind === "SyncGroup" || object.kind === "Sync";
  for (;;) {
    const heard = !hasPlan || (await isHeard(session, pathOf(session, object)));
    const current = await readObject(session, object);
    const { word, remark } = objectState(current);
    const good = goodWords.has(word);
    if (good ? isAnswered(current, asked.number) : heard && endWords.has(word) && isEnd(current, asked.number)) {
      session.io.out(`${shortName(object)} ${word}${remark === "" ? "" : ` ${remark}`}\n`);
      if (good) return "done";
      session.note(`  next: starling describe ${shortName(object)} -n ${session.namespace()}`);
      return "no";
    }
    await session.pause(pollMs);
  }
}

/** Whether every cluster was checked, or the repository was polled, after the request. */
function isAnswered(object: AnyObject, number: number): boolean {
  if (object.kind === "Source") return (object.status.handledReconcile ?? 0) >= number;
  return (planOf(object)?.reconciled ?? 0) >= number;
}

/**
 * Whether the wait ends without success. A problem counts only if the planner saw it after the request. If not all clusters
 * are ready, all of them must have been checked. A planner that has just begun may not have counted the clusters yet.
 */
function isEnd(object: AnyObject, number: number): boolean {
  const plan = planOf(object);
  if (plan === undefined) return isAnswered(object, number);
  if (plan.state === undefined || isUnderWay(plan.state)) return false;
  const isBegun = plan.state === "Waiting" && plan.conditions.some(({ reason }) => reason === "NothingRolledOut");
  const settled = isBegun || countedWords.has(plan.state);
  return settled ? isAnswered(object, number) : (plan.observedOperation ?? 0) >= number;
}

function operable(args: readonly string[], verb: string): readonly NamedObject[] {
  const objects = parseNamed(args, verb);
  const wrong = objects.find((object) => !hasNamespace(object.kind) || object.kind === "Rollout");
  if (wrong === undefined) return objects;
  throw usageFailure(
    `\`${verb}\` does not work on a ${wrong.kind}`,
    `starling ${verb} syncgroup/NAME, sync/NAME or source/NAME`,
  );
}

function post(
  session: Session,
  object: NamedObject,
  { verb, body }: { readonly verb: string; readonly body: Readonly<Record<string, unknown>> },
): Promise<OperateAnswer> {
  const { reason } = session.options;
  return session.api.call<OperateAnswer>({
    method: "POST",
    path: `${pathOf(session, object)}/${verb}`,
    body: { ...body, ...defined({ reason }) },
  });
}

function pathOf(session: Session, object: NamedObject): string {
  return pathOfObject(object, hasNamespace(object.kind) ? session.namespace() : "");
}
