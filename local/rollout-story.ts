import { setTimeout as sleep } from "node:timers/promises";
import type { ApiSession } from "#local/api-session.ts";

/** Where a group's clusters are, as the API says. */
export interface FleetView {
  readonly state: string;
  readonly message: string;
  readonly revision: string;
  readonly rollout: number;
  readonly ready: number;
}

interface GroupAnswer {
  readonly status?: {
    readonly state?: string;
    readonly revision?: string;
    readonly rollout?: number;
    readonly clusters?: { readonly ready: number; readonly changing: number };
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}

interface StageAnswer {
  readonly name: string;
  readonly size: number;
  readonly counts: Readonly<Record<string, number>>;
}

interface RolloutAnswer {
  readonly status: { readonly phase: string; readonly message: string; readonly stages: readonly StageAnswer[] };
}

export interface StoryOptions {
  readonly session: ApiSession;
  readonly namespace: string;
  readonly group: string;
  readonly say: (line?: string) => void;
}

const LOOK_EVERY_MS = 150;
const LONGEST_MS = 120_000;

/** Tells a rollout as it happens: one line for each change of what the API shows. */
export class RolloutStory {
  readonly #options: StoryOptions;
  readonly #started = performance.now();
  #chapter = 0;
  #rollout = 0;

  constructor(options: StoryOptions) {
    this.#options = options;
  }

  chapter(title: string): void {
    this.#chapter++;
    this.#options.say();
    this.#options.say(`${this.#chapter}. ${title}`);
  }

  /**
   * Follows the next rollout to its end.
   * @param commit - the commit it must be about; absent: whichever comes.
   */
  async follow(commit?: string): Promise<FleetView> {
    let last = "";
    const view = await this.#look(async () => {
      const group = await this.#group();
      const number = group.rollout;
      if (number <= this.#rollout || (commit !== undefined && !group.revision.includes(commit))) return undefined;
      const rollout = await this.#call<RolloutAnswer>(`/rollouts/${number}`);
      const line = rollout.status.stages.map(stageText).join("   ");
      if (line !== last) this.#options.say(`  ${this.#elapsed()}  ${line}`);
      last = line;
      if (rollout.status.phase !== "Complete" && rollout.status.phase !== "Halted") return undefined;
      this.#rollout = number;
      this.#options.say(`  ${this.#elapsed()}  ${rollout.status.phase.toLowerCase()}: ${rollout.status.message}`);
      return this.#group();
    });
    return view;
  }

  async until(isTrue: () => boolean): Promise<void> {
    await this.#look(async () => (isTrue() ? true : undefined));
  }

  async #look<T>(look: () => Promise<T | undefined>): Promise<T> {
    const deadline = performance.now() + LONGEST_MS;
    while (performance.now() < deadline) {
      const seen = await look();
      if (seen !== undefined) return seen;
      await sleep(LOOK_EVERY_MS);
    }
    const group = await this.#group();
    throw new Error(`nothing came of it in ${LONGEST_MS / 1000} s; the group is ${group.state}: ${group.message}`);
  }

  async #group(): Promise<FleetView> {
    const { status } = await this.#call<GroupAnswer>("");
    return {
      state: status?.state ?? "Waiting",
      message: status?.conditions?.find((condition) => condition.type === "Ready")?.message ?? "",
      revision: status?.revision ?? "",
      rollout: status?.rollout ?? 0,
      ready: status?.clusters?.ready ?? 0,
    };
  }

  #call<T>(path: string): Promise<T> {
    const { session, namespace, group } = this.#options;
    return session.call<T>("GET", `/v1/namespaces/${namespace}/syncgroups/${group}${path}`);
  }

  #elapsed(): string {
    return `${((performance.now() - this.#started) / 1000).toFixed(1).padStart(5)}s`;
  }
}

/** `early 2/4 (2 changing)` */
function stageText(stage: StageAnswer): string {
  const count = (...states: readonly string[]) => states.reduce((sum, state) => sum + (stage.counts[state] ?? 0), 0);
  const notes = [
    [count("Assigned", "Applying", "Verifying"), "changing"],
    [count("Unchanged"), "unchanged"],
    [count("Failed"), "failed"],
    [count("Unreachable"), "unreachable"],
  ] as const;
  const shown = notes.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`);
  const done = count("Succeeded", "Unchanged");
  return `${stage.name} ${done}/${stage.size}${shown.length === 0 ? "" : ` (${shown.join(", ")})`}`.padEnd(26);
}
