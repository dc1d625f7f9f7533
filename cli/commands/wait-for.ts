import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { hasNamespace, type NamedObject, parseNamed, pathOfObject, shortName } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { isUnreadable, type ListedObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Condition } from "#shared/fleet/rows/object-rows.ts";
import { isUnseen, objectState, planOf } from "#shared/words/object-state.ts";
import { findState, hasDesired, stateWords } from "#shared/words/state-words.ts";

const pollMs = 1000;
/** The default of `--timeout`, the same as kubectl's. */
const defaultTimeoutMs = 30_000;

export interface WaitOptions {
  readonly for: string;
  readonly cluster?: string;
}

/** The goal of a wait. The object is absent if it does not exist. */
interface Goal {
  readonly text: string;
  readonly isMet: (object: ListedObject | undefined) => boolean;
  /** The object may not exist yet. */
  readonly mayLack?: true;
}

/** Waits until each object meets the goal of `--for`. Only `--for=create` waits for an object that does not exist. */
export async function waitFor(session: Session, args: readonly string[], options: WaitOptions): Promise<ExitReason> {
  const goal = parseGoal(options.for);
  const objects = parseNamed(args, "wait");
  const { timeout } = session.options;
  const until = timeout === undefined ? session.io.now().getTime() + defaultTimeoutMs : undefined;
  for (const object of objects) {
    let reported = "";
    for (;;) {
      const found = await read(session, object, options.cluster);
      if (goal.isMet(found)) break;
      if (found === undefined && goal.mayLack === undefined) throw notThere(session, object);
      const now = `${shortName(object)} ${found === undefined ? "does not exist yet" : stateText(found)}`;
      if (now !== reported) session.note(now);
      reported = now;
      if (until !== undefined && session.io.now().getTime() >= until) throw timedOut(session, object);
      await session.pause(pollMs);
    }
    session.io.out(`${shortName(object)} ${goal.text}\n`);
  }
  return "done";
}

/** @throws CliFailure for a goal that no object can meet. */
function parseGoal(text: string): Goal {
  const [what = "", ...rest] = text.split("=");
  const value = rest.join("=");
  if (what === "delete" && value === "") {
    return { text: "deleted", isMet: (object) => object === undefined };
  }
  if (what === "create" && value === "") {
    return { text: "created", isMet: (object) => object !== undefined, mayLack: true };
  }
  if (what === "state" && findState(value) !== undefined) {
    const state = findState(value);
    return { text: "condition met", isMet: (object) => object !== undefined && objectState(object).word === state };
  }
  if (what === "revision" && value !== "") {
    return { text: "condition met", isMet: (object) => object !== undefined && runs(object, value) };
  }
  const [type = "", status = "True"] = rest;
  if (what === "condition" && type !== "" && rest.length <= 2) {
    return { text: "condition met", isMet: (object) => object !== undefined && hasCondition(object, type, status) };
  }
  throw usageFailure(
    `--for is "${text}"; expected condition=TYPE, condition=TYPE=False, state=WORD, revision=REVISION, create or delete`,
    what === "state" ? `a state is one of ${stateWords().join(", ")}` : "--for condition=Ready",
  );
}

/**
 * Compares conditions as kubectl does. Conditions of an object that was not checked since its last change do not count.
 * Drift that stays does not prevent Ready: the rollout is complete and works, and only a person ends the drift.
 */
function hasCondition(object: ListedObject, type: string, status: string): boolean {
  if (isUnseen(object)) return false;
  const found = conditionsOf(object).find((condition) => condition.type.toLowerCase() === type.toLowerCase());
  if (found?.status.toLowerCase() !== status.toLowerCase()) return false;
  return found.type !== "Ready" || found.status !== "True" || hasDesired(objectState(object).word);
}

function conditionsOf(object: ListedObject): readonly Pick<Condition, "type" | "status">[] {
  if (isUnreadable(object)) return object.status.conditions;
  return "conditions" in object.status ? object.status.conditions : (planOf(object)?.conditions ?? []);
}

/** Whether the object is ready at this revision: its whole text, the name before the `@`, or the beginning of the commit. */
function runs(object: ListedObject, desired: string): boolean {
  if (isUnreadable(object) || !hasDesired(objectState(object).word)) return false;
  const noted = object.kind === "SyncGroup" ? object.status.noted : undefined;
  const revision =
    object.kind === "Sync"
      ? object.status.observed?.applied?.revision
      : object.kind === "SyncGroup"
        ? object.status.revision
        : object.kind === "Source"
          ? object.status.artifact?.revision
          : undefined;
  return isNamed(revision, desired) || isNamed(noted, desired);
}

function isNamed(revision: string | undefined, desired: string): boolean {
  if (revision === undefined) return false;
  const [name, commit = revision] = revision.split("@");
  const id = commit.replace(/^sha1:/, "");
  return (
    revision === desired || name === desired || (desired.length >= 7 && id.startsWith(desired.replace(/^sha1:/, "")))
  );
}

async function read(
  session: Session,
  object: NamedObject,
  cluster: string | undefined,
): Promise<ListedObject | undefined> {
  const path = pathOfObject(object, hasNamespace(object.kind) ? session.namespace() : "");
  try {
    return await session.api.call<ListedObject>({ method: "GET", path, query: { cluster } });
  } catch (error) {
    if (error instanceof ApiFailure && error.code === "NotFound") return undefined;
    throw error;
  }
}

function stateText(object: ListedObject): string {
  const { word, remark } = objectState(object);
  return remark === "" ? word : `${word}: ${remark}`;
}

function notThere(session: Session, object: NamedObject): CliFailure {
  const next = `starling get ${object.kind.toLowerCase()}${session.where()}   (--for=create waits until it exists)`;
  return new CliFailure(`${shortName(object)} does not exist`, { exit: "no", next });
}

function timedOut(session: Session, object: NamedObject): CliFailure {
  const next = `starling describe ${shortName(object)}${session.where()}   (or wait longer: --timeout 5m)`;
  return new CliFailure(`${shortName(object)} has not met the goal of --for within 30s`, { exit: "timeout", next });
}
