import { setTimeout as sleep } from "node:timers/promises";
import type { ApiSession } from "#local/machine/api-session.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type {
  ApiList,
  RolloutObject,
  RolloutStatus,
  SourceObject,
  SyncGroupObject,
  SyncObject,
  TargetItem,
} from "#shared/fleet/api/objects.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { Wait, WaitReason } from "#shared/fleet/waits/wait.ts";
import { hindered, hindranceLines } from "#shared/words/hindered.ts";
import { waitText } from "#shared/words/rollout-words.ts";
import { timeLeft } from "#shared/words/time-left.ts";

/** The state of a group's clusters in the API. */
export interface FleetView {
  /** The state of the SyncGroup, or the reason why it has none. */
  readonly state: string;
  /** The reason of a bad state, unless the story has printed it. */
  readonly message: string;
  readonly revision: string;
  /** The number of clusters with a Sync of the group. */
  readonly clusters: number;
  /** The number of these clusters that have all their current renderings, each of them ready. */
  readonly ready: number;
}

export interface StoryOptions {
  readonly session: ApiSession;
  readonly namespace: string;
  readonly group: string;
  readonly source: string;
  /** Prints a line. */
  readonly say: (line?: string) => void;
  /** The width of the terminal in columns. */
  readonly columns: number;
  /** Ends the story; pending calls reject. */
  readonly signal: AbortSignal;
}

const pollEveryMs = 150;
const unsettled: ReadonlySet<string> = new Set(["RollingBack", "Rolling", "Reconciling"]);
/** The longest time without any visible change. A slow machine still makes progress. */
const longestSilenceMs = 120_000;
const syncsPerPage = 500;
/** The width of a time such as ` 12.3s `. */
const indent = " ".repeat(9);
const maxReasonLines = 3;
const hindrancesEveryMs = 1000;

/** Reports a rollout while it runs, with one line per change in the API. */
export class RolloutStory {
  readonly #options: StoryOptions;
  readonly #started = performance.now();
  #chapter = 0;
  #rollout = 0;
  #shown = "";
  #askedAt = 0;
  readonly #printed = new Set<string>();

  constructor(options: StoryOptions) {
    this.#options = options;
  }

  chapter(title: string): void {
    this.#chapter++;
    this.#options.say();
    this.#options.say(`${this.#chapter}. ${title}`);
  }

  /** Prints a line below the chapter, with the seconds since the start. */
  note(text: string): void {
    this.#options.say(`${this.#elapsed()}${text}`);
  }

  /** Prints what belongs to the note before, in lines of the terminal's width. */
  explain(text: string): void {
    for (const line of wrapped(text, this.#width())) this.#options.say(`${indent}${line}`);
  }

  /**
   * Follows the next rollout to its end, or until its Source cannot be read. @param commit - the commit of the rollout.
   * By default any next rollout counts.
   */
  async follow(commit?: string): Promise<FleetView> {
    const view = await this.#poll(async () => {
      const group = await this.#group();
      const number = group.status.rollout ?? 0;
      const isNext = number > this.#rollout && (commit === undefined || group.status.revision?.includes(commit));
      if (isNext !== true) return this.#sourceFailure();
      const status = await this.#printStages(number);
      await this.#printHindrances(number, status);
      const isStanding = status.phase === "Halted" || status.phase === "Stalled";
      const isOver = status.phase === "Complete" || status.phase === "RolledBack";
      if (!isOver && !isStanding) return undefined;
      const fleet = await this.#fleet();
      // The rollout is over, but the group's status does not yet include the clusters' results.
      if (isOver && unsettled.has(fleet.state)) return undefined;
      this.#rollout = number;
      if (isStanding) this.#explain(status);
      return fleet;
    });
    if (view !== undefined) return view;
    const given = await this.#fleet();
    return { ...given, message: `nothing has changed for ${longestSilenceMs / 1000} s; ${given.message}` };
  }

  /**
   * Follows the newest rollout until something with this reason is waited for. @param commit - the commit that the newest
   * rollout must have. @param isMeant - which of the waits with this reason. @throws Error when nothing changes for too
   * long.
   */
  async untilWaiting(
    reason: WaitReason,
    { commit, isMeant = () => true }: { readonly commit?: string; readonly isMeant?: (wait: Wait) => boolean } = {},
  ): Promise<Wait> {
    const wait = await this.#poll(async () => {
      const { rollout, revision } = (await this.#group()).status;
      if (rollout === undefined || (commit !== undefined && revision?.includes(commit) !== true)) return undefined;
      await this.#printStages(rollout);
      const { status } = await this.#overview();
      return status.waits.find((each) => each.reason === reason && isMeant(each));
    });
    if (wait === undefined) throw new Error(`nothing waited for ${reason} within ${longestSilenceMs / 1000} s`);
    for (const line of wrapped(`waits: ${waitText(wait, new Date())}`, this.#width())) this.note(line);
    return wait;
  }

  /** @param failure - the error message for this case. @throws Error when the condition does not become true in time. */
  async until(failure: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
    const came = await this.#poll(async () => ((await isTrue()) ? true : undefined));
    if (came === undefined) throw new Error(`${failure} within ${longestSilenceMs / 1000} s`);
  }

  /** Prints the stages of a rollout if they have changed. */
  async #printStages(number: number): Promise<RolloutStatus> {
    const { status } = await this.#call<RolloutObject>(`/syncgroups/${this.#options.group}/rollouts/${number}`);
    const line = stagesText(status);
    if (line !== this.#shown) {
      this.note(line);
      await this.#printTimeLeft(number, status);
    }
    this.#shown = line;
    return status;
  }

  /** @returns undefined when nothing has changed for too long. */
  async #poll<T>(poll: () => Promise<T | undefined>): Promise<T | undefined> {
    let shown = this.#shown;
    let silentSince = performance.now();
    while (performance.now() - silentSince < longestSilenceMs) {
      this.#options.signal.throwIfAborted();
      const seen = await poll();
      if (seen !== undefined) return seen;
      if (shown !== this.#shown) silentSince = performance.now();
      shown = this.#shown;
      await sleep(pollEveryMs, undefined, { signal: this.#options.signal });
    }
    return undefined;
  }

  async #sourceFailure(): Promise<FleetView | undefined> {
    const { status } = await this.#call<SourceObject>(`/sources/${this.#options.source}`);
    const ready = status.conditions.find(({ type }) => type === "Ready");
    if (ready?.status !== "False" || status.failures === undefined) return undefined;
    for (const line of wrapped(`the repository cannot be read: ${ready.message}`, this.#width())) this.note(line);
    return { state: ready.reason, message: "", revision: "", clusters: 0, ready: 0 };
  }

  /** Prints the causes of delays, each once per rollout. It asks at most once a second. */
  async #printHindrances(number: number, { stages }: RolloutStatus): Promise<void> {
    if (performance.now() - this.#askedAt < hindrancesEveryMs || stages.every(({ counts }) => counts.Assigned === 0))
      return;
    this.#askedAt = performance.now();
    const path = `/syncgroups/${this.#options.group}/rollouts/${number}/targets?state=Assigned,Applying,Verifying&limit=100`;
    const { items } = await this.#call<ApiList<TargetItem>>(path);
    for (const { cause, line } of hindranceLines(hindered(items, new Date()))) {
      const key = `${number} ${cause}`;
      if (this.#printed.has(key)) continue;
      this.#printed.add(key);
      const [first = "", ...rest] = wrapped(line, this.#width());
      this.note(first);
      for (const more of rest.slice(0, maxReasonLines)) this.#options.say(`${indent}${more}`);
    }
  }

  /**
   * Prints the remaining time once enough clusters are done for an estimate, and again each time their number doubles.
   */
  async #printTimeLeft(number: number, { stages }: RolloutStatus): Promise<void> {
    const stage = stages.find(({ size, counts }) => counts.Assigned > 0 && doneOf(counts) > 0 && doneOf(counts) < size);
    if (stage === undefined) return;
    const key = `${number} ${stage.name} ${Math.floor(Math.log2(doneOf(stage.counts)))} left`;
    if (this.#printed.has(key)) return;
    const left = timeLeft(await this.#overview(), new Date());
    if (left === undefined) return;
    this.#printed.add(key);
    this.note(left);
  }

  #explain({ phase, message }: RolloutStatus): void {
    const [first = "", ...rest] = wrapped(`${phase.toLowerCase()}: ${message}`, this.#width());
    this.note(first);
    for (const line of rest.slice(0, maxReasonLines)) this.#options.say(`${indent}${line}`);
    if (rest.length > maxReasonLines) this.#options.say(`${indent}…`);
  }

  async #fleet(): Promise<FleetView> {
    const { status } = await this.#group();
    const state = status.state ?? "Waiting";
    const ready = status.conditions.find(({ type }) => type === "Ready");
    return {
      state,
      message: ready === undefined || state === "Halted" || state === "Stalled" ? "" : ready.message,
      revision: status.revision ?? "",
      ...(await this.#inSync()),
    };
  }

  /** Counts from the last observation of each cluster's worker, not from the rollout. */
  async #inSync(): Promise<Pick<FleetView, "clusters" | "ready">> {
    const all = new Set<string>();
    const behind = new Set<string>();
    const path = `/syncgroups/${this.#options.group}/syncs?limit=${syncsPerPage}`;
    const syncs = allItems(async ({ after }) => {
      const from = after === undefined ? "" : `&continue=${after}`;
      const { items, metadata } = await this.#call<ApiList<SyncObject>>(`${path}${from}`);
      return { items, next: metadata.continue };
    });
    for await (const { spec, status } of syncs) {
      const { state, desired, observed } = status;
      const digest = desired?.renderDigest;
      const isInSync = state === "Ready" && digest !== undefined && observed?.applied?.renderDigest === digest;
      all.add(spec.cluster);
      if (!isInSync) behind.add(spec.cluster);
    }
    return { clusters: all.size, ready: all.size - behind.size };
  }

  #group(): Promise<SyncGroupObject> {
    return this.#call<SyncGroupObject>(`/syncgroups/${this.#options.group}`);
  }

  #overview(): Promise<RolloutOverview> {
    return this.#call<RolloutOverview>(`/syncgroups/${this.#options.group}/rollout`);
  }

  #call<T>(path: string): Promise<T> {
    const { session, namespace } = this.#options;
    return session.call<T>("GET", `/v1/namespaces/${namespace}${path}`);
  }

  #width(): number {
    return this.#options.columns - indent.length;
  }

  #elapsed(): string {
    return `${((performance.now() - this.#started) / 1000).toFixed(1).padStart(6)}s  `;
  }
}

/** For example `canary 2/2 early 0/4, 4 changing broad 0/6`, in columns. */
function stagesText(rollout: RolloutStatus): string {
  const stages = rollout.stages.filter(({ size }) => size > 0);
  const widest = Math.max(...stages.map(({ size }) => String(size).length));
  const cell = "canary 0/0, 0 changing".length + 3 * (widest - 1);
  return stages
    .map((stage) => stageText(stage).padEnd(cell))
    .join("  ")
    .trimEnd();
}

function doneOf({ Succeeded, Unchanged }: RolloutStatus["stages"][number]["counts"]): number {
  return Succeeded + Unchanged;
}

function stageText(stage: RolloutStatus["stages"][number]): string {
  const count = (...states: readonly TargetState[]) => {
    let sum = 0;
    for (const state of states) sum += stage.counts[state];
    return sum;
  };
  const notes = [
    [count("Assigned"), "changing"],
    [count("Unchanged"), "unchanged"],
    [count("Failed"), "failed"],
    [count("Unreachable"), "unreachable"],
  ] as const;
  const shown = notes.filter(([number]) => number > 0).map(([number, word]) => `, ${number} ${word}`);
  return `${stage.name} ${count("Succeeded", "Unchanged")}/${stage.size}${shown.join("")}`;
}

/** Splits text into lines. A word longer than a line stays whole, so that images and paths can be copied. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
