import {
  formatOverview,
  formatOverviewProgress,
  isStanding,
  memberCount,
  shownStageRun,
} from "#cli/format/overview-text.ts";
import { formatProgress, formatRolloutStatus } from "#cli/format/rollout-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import type { TargetLines } from "#cli/format/target-lines.ts";
import { manyClusters } from "#cli/format/target-lines.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { isAwaited, isHeard } from "#cli/session/heard.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { isNotFound, ownerPath, requireObject } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { plainText } from "#shared/base/plain-text.ts";
import type { RolloutObject, TargetItem } from "#shared/fleet/api/objects.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import { reachesNobody } from "#shared/fleet/rows/object-rows.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { formatTime } from "#shared/words/age.ts";
import { hindered, hindranceLines } from "#shared/words/hindered.ts";
import { objectState } from "#shared/words/object-state.ts";
import { clearCommand, waitText } from "#shared/words/rollout-words.ts";
import { isUnderWay } from "#shared/words/state-words.ts";
import { timeLeft } from "#shared/words/time-left.ts";

const pollMs = 1000;
const allOfThem = Number.MAX_SAFE_INTEGER;
/** At most this many targets are read for the reasons of a large rollout; its stages have the counts. */
const troubledRead = 1000;
const troubledStates = "Failed,Unreachable";
/** At most this many clusters that are being changed are read, to find their problems. */
const changingRead = 100;
const changingStates = "Assigned,Applying,Verifying";

export interface RolloutStatusOptions {
  readonly number?: string;
  readonly stage?: string;
  readonly state?: string;
  readonly all?: boolean;
  readonly watch?: boolean;
}

/**
 * Shows all stages of a group, or one rollout with `--number`. Without `-w` it fails when a stage run is halted, or when no
 * cluster is selected. With `-w` it waits until the newest rollout ends, and fails unless that rollout completes.
 */
export async function rolloutStatus(
  session: Session,
  group: string,
  options: RolloutStatusOptions,
): Promise<ExitReason> {
  checkState(options);
  const owner = ownerPath(session, group);
  return options.number === undefined
    ? show(session, { owner, source: overviewSource(owner, options), options })
    : show(session, { owner, source: rolloutSource(owner, options), options });
}

async function show<Shown extends object>(
  session: Session,
  {
    owner,
    source,
    options,
  }: { readonly owner: string; readonly source: Source<Shown>; readonly options: RolloutStatusOptions },
): Promise<ExitReason> {
  const read = options.watch === true ? watch : readNow;
  const shown = await read(session, owner, source);
  const { output } = session.options;
  const view = await source.view(session, shown);
  if (isData(output)) session.io.out(serialise({ ...source.data(shown), targets: view.targets }, output));
  else if (output === "name") for (const target of view.targets) session.io.out(`cluster/${target.cluster}\n`);
  else session.io.out(view.text);
  const { exit, note } = source.verdict(shown);
  if (note !== undefined) session.note(note);
  return exit;
}

function terminalOf(session: Session): Pick<TargetLines, "columns" | "now"> {
  return { columns: tableStyle(session).columns, now: session.io.now() };
}

/** A line that is printed when its cause first appears. */
interface Notice {
  readonly cause: string;
  readonly line: string;
}

/** A view that is read once, or repeatedly with `-w`. */
interface Source<Shown> {
  readonly path: string;
  /** Whether `-w` waits for a view that does not exist yet. */
  readonly mayCome: boolean;
  /** Whether the planner has handled every request; called before each reading. */
  readonly isHeard: (session: Session) => Promise<boolean>;
  readonly isEnd: (shown: Shown) => boolean;
  readonly progress: (shown: Shown, now: Date) => string;
  /** The estimated time that is left, if known. */
  readonly left: (shown: Shown, now: Date) => string | undefined;
  /** For programs: what is read, with the commands that people type. */
  readonly data: (shown: Shown) => object;
  /** One line for each wait that people can end, with the command that ends it. */
  readonly waits: (shown: Shown, now: Date) => readonly Notice[];
  /** Clusters that are being changed and make no progress. */
  readonly hindered: (session: Session, shown: Shown) => Promise<readonly TargetItem[]>;
  readonly view: (
    session: Session,
    shown: Shown,
  ) => Promise<{ readonly text: string; readonly targets: readonly TargetItem[] }>;
  readonly verdict: (shown: Shown) => { readonly exit: ExitReason; readonly note?: string };
}

function rolloutSource(owner: string, options: RolloutStatusOptions): Source<RolloutObject> {
  return {
    path: `${owner}/rollouts/${options.number}`,
    mayCome: false,
    isHeard: (session) => isHeard(session, owner),
    isEnd: ({ status }) => !isUnderWay(status.phase) && status.phase !== "Waiting",
    progress: formatProgress,
    left: () => undefined,
    data: (rollout) => rollout,
    waits: () => [],
    async hindered(session, { spec, status }) {
      const isChanging = status.stages.some(({ counts }) => counts.Assigned > 0);
      return isChanging ? readHindered(session, spec.owner, { rollout: spec.number }) : [];
    },
    async view(session, rollout) {
      const { number, owner: about } = rollout.spec;
      const everything = isEverything(options, rollout.status.size);
      const targets = await readTargets(session, `${syncOwner(about)}/rollouts/${number}/targets`, {
        state: options.state ?? (everything ? undefined : troubledStates),
        stage: options.stage,
        limit: everything || options.state !== undefined ? allOfThem : troubledRead,
      });
      return {
        targets,
        text: formatRolloutStatus({ rollout, targets, lines: linesOf(options), ...terminalOf(session) }),
      };
    },
    verdict(rollout) {
      const { word, remark } = objectState(rollout);
      const name = rollout.metadata.name;
      return {
        exit: word === "Halted" || word === "Stalled" || word === "NoClusters" ? "no" : "done",
        ...(word === "NoClusters" ? { note: `${name}: ${remark}` } : {}),
      };
    },
  };
}

function overviewSource(owner: string, options: RolloutStatusOptions): Source<RolloutOverview> {
  return {
    path: `${owner}/rollout`,
    mayCome: true,
    // The overview itself shows requests that the planner has not handled.
    isHeard: async () => true,
    isEnd: ({ status: { rollouts, newest, desired, state, waits } }) => {
      const phase = rollouts.find(({ number }) => number === newest)?.phase;
      if (isAwaited(waits)) return false;
      if (reachesNobody(state)) return true;
      // A desired revision that is not rolled out yet replaces a halted rollout.
      if (phase === "Halted" || phase === "Stalled") return desired === undefined || state === "Suspended";
      const isOver = phase === "Complete" || (phase === "RolledBack" && !isUnderWay(state ?? ""));
      return isOver && desired === undefined && !waits.some(({ reason }) => reason === "source");
    },
    progress: formatOverviewProgress,
    left: timeLeft,
    data: withCommands,
    waits: waitNotices,
    async hindered(session, { spec, status }) {
      const found: TargetItem[] = [];
      for (const { name: stage, updatingTo, changing } of status.stages) {
        if (updatingTo === undefined || changing === 0 || (options.stage ?? stage) !== stage) continue;
        found.push(...(await readHindered(session, spec.owner, { rollout: updatingTo.rollout, stage })));
      }
      return found;
    },
    async view(session, overview) {
      const everything = isEverything(options, memberCount(overview)) || options.state !== undefined;
      const slow = everything ? [] : await overviewSource(owner, options).hindered(session, overview);
      const targets = [...(await readOverviewTargets(session, overview, options)), ...slow];
      return { targets, text: formatOverview({ overview, targets, lines: linesOf(options), ...terminalOf(session) }) };
    },
    verdict(overview) {
      const { stages, state } = overview.status;
      const isForNobody = memberCount(overview) === 0 && state !== "Deleting";
      return {
        exit: isForNobody || stages.some(isStanding) ? "no" : "done",
        ...(isForNobody ? { note: `${overview.metadata.name} selects no registered cluster` } : {}),
      };
    },
  };
}

/** The targets of each stage: of the rollout in progress, or of the one that passed last. */
async function readOverviewTargets(
  session: Session,
  overview: RolloutOverview,
  options: RolloutStatusOptions,
): Promise<readonly TargetItem[]> {
  const { stages } = overview.status;
  if (options.stage !== undefined && !stages.some(({ name }) => name === options.stage)) {
    const names = stages.map(({ name }) => name).join(", ");
    throw usageFailure(`--stage is "${options.stage}"; expected one of ${names}`, "starling rollout status --help");
  }
  const everything = isEverything(options, memberCount(overview));
  const targets: TargetItem[] = [];
  for (const stage of stages) {
    const stageRun = shownStageRun(stage);
    if (stageRun === undefined || (options.stage ?? stage.name) !== stage.name) continue;
    const isTroubled = stageRun.counts.Failed + stageRun.counts.Unreachable > 0;
    if (!everything && options.state === undefined && !isTroubled) continue;
    const path = `${syncOwner(overview.spec.owner)}/rollouts/${stageRun.rollout}/targets`;
    const found = await readTargets(session, path, {
      state: options.state ?? (everything ? undefined : troubledStates),
      stage: stage.name,
      limit: everything || options.state !== undefined ? allOfThem : troubledRead,
    });
    targets.push(...found);
  }
  return targets;
}

async function readHindered(
  session: Session,
  owner: Owner,
  { rollout, stage }: { readonly rollout: number; readonly stage?: string },
): Promise<readonly TargetItem[]> {
  const path = `${syncOwner(owner)}/rollouts/${rollout}/targets`;
  const found = await readTargets(session, path, { state: changingStates, stage, limit: changingRead });
  return hindered(found, session.io.now());
}

function linesOf(options: RolloutStatusOptions): "all" | "some" {
  return options.all === true || options.state !== undefined ? "all" : "some";
}

/** Whether all targets are shown: with `--all`, or if there are few clusters. Otherwise only those with problems. */
function isEverything(options: RolloutStatusOptions, size: number): boolean {
  return options.all === true || size <= manyClusters;
}

function syncOwner({ kind, name, namespace }: Owner): string {
  return pathOfObject({ kind, name }, namespace);
}

async function readTargets(
  session: Session,
  path: string,
  {
    state,
    stage,
    limit,
  }: { readonly state: string | undefined; readonly stage: string | undefined; readonly limit: number },
): Promise<readonly TargetItem[]> {
  return (await readList<TargetItem>(session, { path, query: { state, stage }, limit })).items;
}

/** Redraws on a terminal; elsewhere prints one line for each change. @returns the last view. */
async function watch<Shown>(session: Session, owner: string, source: Source<Shown>): Promise<Shown> {
  let line = "";
  let drawnLines = 0;
  const reported = new Set<string>();
  for (;;) {
    const heard = await source.isHeard(session);
    const shown = await readUnlessNone(session, owner, source);
    if (shown === undefined) {
      if (line === "") session.note("waiting for the first rollout");
      line = "none";
    } else {
      const ended = heard && source.isEnd(shown);
      if (session.io.outIsTerminal && session.options.output === undefined) {
        const erase = drawnLines === 0 ? "" : `\u001b[${drawnLines}A\u001b[0J`;
        if (ended) {
          session.io.outWithSequences(erase);
          return shown;
        }
        const text = plainText((await source.view(session, shown)).text);
        session.io.outWithSequences(erase + text);
        drawnLines = rowsOf(text, session.io.columns);
      } else {
        const progress = source.progress(shown, session.io.now());
        const changed = progress.slice(progress.indexOf(" "));
        const left = source.left(shown, session.io.now());
        if (changed !== line) session.note(left === undefined ? progress : `${progress}, ${left}`);
        line = changed;
        if (ended) return shown;
        noteOnce(session, source.waits(shown, session.io.now()), reported);
        noteOnce(session, hindranceLines(await source.hindered(session, shown)), reported);
      }
    }
    await session.pause(pollMs);
  }
}

/** Each action that ends a wait also has its whole command, or what to change in the object. */
function withCommands(overview: RolloutOverview): object {
  const { spec, status } = overview;
  const waits = status.waits.map((wait) => ({
    ...wait,
    clear: wait.clear.map((one) => ({ ...one, command: clearCommand(one, spec.owner) })),
  }));
  return { ...overview, status: { ...status, waits } };
}

function waitNotices({ spec, status }: RolloutOverview, now: Date): readonly Notice[] {
  return status.waits.flatMap((wait) => {
    const [first] = wait.clear;
    if (first === undefined || wait.reason === "slots") return [];
    const command = clearCommand(first, spec.owner);
    return [
      { cause: `${wait.reason} ${wait.stage} ${wait.rollout} ${command}`, line: `${waitText(wait, now)}: ${command}` },
    ];
  });
}

/** Prints one line for each cause when it first appears. */
function noteOnce(session: Session, notices: readonly Notice[], reported: Set<string>): void {
  const now = session.io.now();
  for (const { cause, line } of notices) {
    if (!reported.has(cause)) session.note(`${formatTime(now.toISOString(), now)}   ${line}`);
    reported.add(cause);
  }
}

/** @returns undefined when there is none yet. @throws ApiFailure `NotFound` when there never will be. */
async function readUnlessNone<Shown>(
  session: Session,
  owner: string,
  source: Source<Shown>,
): Promise<Shown | undefined> {
  try {
    return await session.api.call<Shown>({ method: "GET", path: source.path });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await requireObject(session, owner);
    if (!source.mayCome) throw error;
    return undefined;
  }
}

async function readNow<Shown>(session: Session, owner: string, { path }: Source<Shown>): Promise<Shown> {
  return session.api.call<Shown>({ method: "GET", path }).catch(async (error: unknown) => {
    if (isNotFound(error)) await requireObject(session, owner);
    throw error;
  });
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
