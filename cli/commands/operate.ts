import { type ExitReason, usageFailure } from "#cli/failure.ts";
import { objectState } from "#cli/format/object-state.ts";
import { type NamedObject, objectPath, parseNamed, shortName } from "#cli/kind-names.ts";
import type { Session } from "#cli/session.ts";
import type { AnyObject } from "#shared/domain/api/objects.ts";
import type { Operations } from "#shared/domain/rows/object-rows.ts";

const POLL_MS = 1000;
const settledWords = new Set(["Complete", "Ready", "Failed", "Halted", "Stalled", "NotReady", "Degraded", "Waiting"]);
const goodWords = new Set(["Complete", "Ready"]);

interface OperateAnswer {
  readonly outcome: string;
  readonly operations: Operations;
  readonly warnings: readonly string[];
}

export async function suspendOrResume(
  session: Session,
  verb: "suspend" | "resume",
  args: readonly string[],
): Promise<ExitReason> {
  session.announce();
  for (const object of operable(args, verb)) {
    const { outcome } = await post(session, object, { verb, body: {} });
    const done =
      outcome === "unchanged"
        ? `was ${verb === "suspend" ? "suspended" : "not suspended"} already`
        : `${verb}${verb === "resume" ? "d" : "ed"}`;
    session.io.out(`${shortName(object)} ${done}\n`);
    if (verb === "suspend" && session.options.reason === undefined && outcome !== "unchanged") {
      session.note("the next one who looks will want to know why: --reason TEXT");
    }
  }
  return "done";
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
  const asked: { object: NamedObject; at: string }[] = [];
  for (const object of operable(args, "reconcile")) {
    const answer = await post(session, object, { verb: "reconcile", body });
    for (const warning of answer.warnings) session.note(`warning: ${warning}`);
    session.io.out(`${shortName(object)} asked\n`);
    asked.push({ object, at: askedAt(answer) });
  }
  if (options.wait !== true) return "done";
  let worst: ExitReason = "done";
  for (const { object, at } of asked) {
    const sources = options.withSource === true ? await waitForSources(session, { object, at }) : "none";
    if (sources === "failed") {
      worst = "no";
      continue;
    }
    // Asked again: what the planner saw the first time may be older than what the Sources found since.
    const since = sources === "none" ? at : askedAt(await post(session, object, { verb: "reconcile", body: {} }));
    if ((await waitSettled(session, { object, at: since })) === "no") worst = "no";
  }
  return worst;
}

function askedAt(answer: OperateAnswer): string {
  return answer.operations.reconcile?.at ?? "";
}

interface Asked {
  readonly object: NamedObject;
  /** When: what the object says is about this time or a later one. */
  readonly at: string;
}

/** Until every Source the object comes from has been looked at since. */
async function waitForSources(session: Session, { object, at }: Asked): Promise<"none" | "found" | "failed"> {
  const current = await session.api.call<AnyObject>({ method: "GET", path: pathOf(session, object) });
  if (current.kind !== "SyncGroup" && current.kind !== "Sync") return "none";
  const templates = current.kind === "Sync" ? [current.spec] : current.spec.templates;
  let outcome: "found" | "failed" = "found";
  for (const name of new Set(templates.map((template) => template.source))) {
    if ((await waitSettled(session, { object: { kind: "Source", name }, at })) === "no") outcome = "failed";
  }
  return outcome;
}

/** Until the object says something about the time after `at`, and nothing is on its way any more. */
async function waitSettled(session: Session, { object, at }: Asked): Promise<ExitReason> {
  for (;;) {
    const current = await session.api.call<AnyObject>({ method: "GET", path: pathOf(session, object) });
    const { word, remark } = objectState(current);
    if (hasHandled(current, at) && settledWords.has(word)) {
      session.io.out(`${shortName(object)} ${word}${remark === "" ? "" : ` ${remark}`}\n`);
      if (goodWords.has(word)) return "done";
      session.note(`  next: starling describe ${shortName(object)} -n ${session.namespace()}`);
      return "no";
    }
    await session.pause(POLL_MS);
  }
}

function hasHandled(object: AnyObject, at: string): boolean {
  if (object.kind === "Source") return (object.status.handledReconcile ?? "") >= at;
  const plan = object.kind === "Sync" ? object.status.plan : object.kind === "SyncGroup" ? object.status : undefined;
  return (plan?.observedOperation ?? "") >= at;
}

function operable(args: readonly string[], verb: string): readonly NamedObject[] {
  const objects = parseNamed(args, verb);
  const wrong = objects.find((object) => object.kind === "Cluster" || object.kind === "Rollout");
  if (wrong === undefined) return objects;
  throw usageFailure(
    `a ${wrong.kind} cannot be told to ${verb}`,
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
    body: { ...body, ...(reason === undefined ? {} : { reason }) },
  });
}

function pathOf(session: Session, object: NamedObject): string {
  return objectPath(object, object.kind === "Cluster" ? "" : session.namespace());
}
