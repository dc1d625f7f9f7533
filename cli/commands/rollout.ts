import { getTable } from "#cli/format/get-table.ts";
import { objectState } from "#cli/format/object-state.ts";
import { formatProgress, formatRolloutStatus, manyClusters } from "#cli/format/rollout-status.ts";
import { serialise } from "#cli/format/serialise.ts";
import { paintState } from "#cli/format/state-words.ts";
import { formatTable } from "#cli/format/table.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { findKind, listPath, objectPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { AnyObject, RolloutObject, TargetItem } from "#shared/fleet/api/objects.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";

const pollMs = 1000;
const allOfThem = Number.MAX_SAFE_INTEGER;
/** Targets read for the reasons of a large rollout; the counts stand in its stages. */
const troubledRead = 1000;

export interface RolloutListOptions {
  readonly limit: number;
}

export async function rolloutList(
  session: Session,
  group: string | undefined,
  options: RolloutListOptions,
): Promise<ExitReason> {
  const subject = group === undefined ? undefined : subjectPath(session, group);
  const path = subject === undefined ? listPath("Rollout", session.scope()) : `${subject}/rollouts`;
  const list = await readList<RolloutObject>(session, { path, limit: options.limit });
  if (subject !== undefined && list.items.length === 0) await requireSubject(session, subject);
  const { output, headers, allNamespaces } = session.options;
  if (output === "json" || output === "yaml") {
    session.io.out(serialise(list, output));
    return "done";
  }
  if (output === "name") {
    for (const rollout of list.items) session.io.out(`rollout/${rollout.metadata.name}\n`);
    return "done";
  }
  if (list.items.length === 0) {
    const next = `starling get sources${session.where()}   (a rollout starts when a Source has a revision)`;
    session.note(`no rollout yet\n  next: ${next}`);
    return "done";
  }
  const table = getTable("Rollout", list.items as readonly AnyObject[], {
    now: session.io.now(),
    width: output === "wide" ? "wide" : "normal",
    namespaces: allNamespaces === true ? "all" : "one",
  });
  session.io.out(
    formatTable(table, {
      headers: headers === false ? "hide" : "show",
      ...(paints(session) ? { paint: paintState } : {}),
    }),
  );
  if (list.metadata.continue !== undefined) session.note(`… and more: --limit ${options.limit * 2}`);
  return "done";
}

export interface RolloutStatusOptions {
  readonly number?: string;
  readonly stage?: string;
  readonly state?: string;
  readonly all?: boolean;
  readonly watch?: boolean;
}

/** Once: fails when the rollout is Halted, or is about no cluster. With `-w`: until it ends, fails unless it completes. */
export async function rolloutStatus(
  session: Session,
  group: string,
  options: RolloutStatusOptions,
): Promise<ExitReason> {
  checkState(options);
  const subject = subjectPath(session, group);
  const rollout =
    options.watch === true ? await watch(session, subject, options) : await readNow(session, subject, options);
  await print(session, rollout, options);
  const { word, remark } = objectState(rollout);
  if (word === "NoClusters") session.note(`${rollout.metadata.name}: ${remark}`);
  return word === "Halted" || word === "NoClusters" ? "no" : "done";
}

async function print(session: Session, rollout: RolloutObject, options: RolloutStatusOptions): Promise<void> {
  const { output } = session.options;
  const targets = await readTargets(session, rollout, options);
  if (output === "json" || output === "yaml") session.io.out(serialise({ ...rollout, targets }, output));
  else if (output === "name") for (const target of targets) session.io.out(`cluster/${target.cluster}\n`);
  else session.io.out(statusText(session, { rollout, targets, options }));
}

function statusText(
  session: Session,
  view: {
    readonly rollout: RolloutObject;
    readonly targets: readonly TargetItem[];
    readonly options: RolloutStatusOptions;
  },
): string {
  const lines = view.options.all === true || view.options.state !== undefined ? "all" : "some";
  return formatRolloutStatus({ rollout: view.rollout, targets: view.targets, lines, now: session.io.now() });
}

/** All targets of a small rollout or with `--all`; else those that did not go well. */
async function readTargets(
  session: Session,
  rollout: RolloutObject,
  options: RolloutStatusOptions,
): Promise<readonly TargetItem[]> {
  const { subject, number } = rollout.spec;
  const everything = options.all === true || rollout.status.size <= manyClusters;
  const path = `${objectPath({ kind: subject.kind, name: subject.name }, subject.namespace)}/rollouts/${number}/targets`;
  const state = options.state ?? (everything ? undefined : "Failed,Unreachable");
  const list = await readList<TargetItem>(session, {
    path,
    query: { state, stage: options.stage },
    limit: everything || options.state !== undefined ? allOfThem : troubledRead,
  });
  return list.items;
}

/** Redraws on a terminal; elsewhere one line for each change. @returns the rollout as it ended. */
async function watch(session: Session, subject: string, options: RolloutStatusOptions): Promise<RolloutObject> {
  let shown = "";
  let drawnLines = 0;
  for (;;) {
    const rollout = await readUnlessNone(session, subject, options);
    if (rollout === undefined) {
      if (shown === "") session.note("waiting for the first rollout");
      shown = "none";
    } else {
      const { phase } = rollout.status;
      const ended =
        phase === "Complete" || phase === "Halted" || (phase === "Superseded" && options.number !== undefined);
      if (session.io.outIsTerminal && session.options.output === undefined) {
        const erase = drawnLines === 0 ? "" : `\u001b[${drawnLines}A\u001b[0J`;
        if (ended) {
          session.io.out(erase);
          return rollout;
        }
        const text = statusText(session, { rollout, targets: await readTargets(session, rollout, options), options });
        session.io.out(erase + text);
        drawnLines = rowsOf(text, session.io.columns);
      } else {
        const progress = formatProgress(rollout, session.io.now());
        const changed = progress.slice(progress.indexOf(" "));
        if (changed !== shown) session.note(progress);
        shown = changed;
        if (ended) return rollout;
      }
    }
    await session.pause(pollMs);
  }
}

/** @returns undefined when there is none yet. @throws ApiFailure `NotFound` when there will be none. */
async function readUnlessNone(
  session: Session,
  subject: string,
  { number }: RolloutStatusOptions,
): Promise<RolloutObject | undefined> {
  try {
    return await session.api.call<RolloutObject>({ method: "GET", path: rolloutPath(subject, number) });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await requireSubject(session, subject);
    if (number !== undefined) throw error;
    return undefined;
  }
}

async function readNow(session: Session, subject: string, { number }: RolloutStatusOptions): Promise<RolloutObject> {
  const path = rolloutPath(subject, number);
  const call = session.api.call<RolloutObject>({ method: "GET", path });
  return call.catch(async (error: unknown) => {
    if (isNotFound(error)) await requireSubject(session, subject);
    throw error;
  });
}

function rolloutPath(subject: string, number = "newest"): string {
  return `${subject}/rollouts/${number}`;
}

/** Of a name or namespace with a slip in it there will never be a rollout. @throws ApiFailure `NotFound` of the subject. */
async function requireSubject(session: Session, subject: string): Promise<void> {
  try {
    await session.api.call({ method: "GET", path: subject });
  } catch (error) {
    // Anything else says that there is one, such as a group's Sync on several clusters.
    if (isNotFound(error)) throw error;
  }
}

function isNotFound(error: unknown): error is ApiFailure {
  return error instanceof ApiFailure && error.code === "NotFound";
}

function rowsOf(text: string, columns: number): number {
  let rows = 0;
  for (const line of text.split("\n").slice(0, -1)) rows += Math.max(1, Math.ceil([...line].length / columns));
  return rows;
}

function checkState(options: RolloutStatusOptions): void {
  if (options.number !== undefined && !/^[1-9]\d{0,7}$/.test(options.number)) {
    throw usageFailure(`--number is "${options.number}"; expected a whole number`, "starling rollout list GROUP");
  }
  const known = new Set(targetStates.map((state) => state.toLowerCase()));
  const wrong = (options.state ?? "").split(",").find((word) => word !== "" && !known.has(word.toLowerCase()));
  if (wrong === undefined) return;
  throw usageFailure(`--state is "${wrong}"; expected one of ${targetStates.join(", ")}`, "--state failed");
}

/** `GROUP`, `syncgroup/GROUP` or `sync/NAME`. */
function subjectPath(session: Session, text: string): string {
  const [first = "", name, ...more] = text.split("/");
  if (name === undefined) return objectPath({ kind: "SyncGroup", name: first }, session.namespace());
  const kind = findKind(first);
  if (more.length === 0 && (kind === "SyncGroup" || kind === "Sync"))
    return objectPath({ kind, name }, session.namespace());
  throw new CliFailure(`"${text}" has no rollouts; expected GROUP, syncgroup/GROUP or sync/NAME`, {
    exit: "wrongInput",
    next: `starling get syncgroups${session.where()}`,
  });
}

function paints(session: Session): boolean {
  return session.io.outIsTerminal && session.options.color !== false && session.io.env.NO_COLOR === undefined;
}
