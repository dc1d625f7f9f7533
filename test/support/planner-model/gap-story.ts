import type { Write } from "#shared/ports.ts";
import { Crash, type Disturbance } from "#test/support/planner-model/disturbed-ports.ts";
import { ModelGroup } from "#test/support/planner-model/model-group.ts";
import { type Delivery, fewClusters, PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { type Act, Play } from "#test/support/planner-model/planner-steps.ts";
import { owner } from "#test/support/planner-world.ts";

/** The fate of a call of the planner: it dies with an effect, or stops before one and continues after others have run. */
export const fates = ["dies", "goes on after the next one", "goes on at the end"] as const;
type Fate = (typeof fates)[number];

/** The acts of people. Each follows after a number of deliveries since the act before. */
export type Story = readonly (readonly [deliveries: number, act: Act])[];

interface StoryEnd {
  /** The renderings that each API server got, by cluster and Sync, in their order. */
  readonly given: ReturnType<PlannerModel["servers"]["given"]>;
  readonly excesses: readonly string[];
  readonly isGone: boolean;
  /** The number of the planner's writes and sends during the story, and the kinds of their rows. */
  readonly effects: number;
  readonly kinds: ReadonlySet<string>;
}

const strategy = {
  maxConcurrent: 2,
  stages: [{ name: "canary", clusters: { selector: { matchLabels: { ring: "r0" } } } }, { name: "rest" }],
};
const most = 300;

/**
 * Plays a story of a group, in which the n-th effect (from 1) of the planner meets this fate; 0 means none. @throws Error
 * when the model does not become idle.
 */
export async function playWithGap(story: Story, at: number, fate: Fate): Promise<StoryEnd> {
  const model = new PlannerModel(fewClusters + 1);
  const play = new Play(model, { rings: [0, 1], group: new ModelGroup(strategy, 2, "one") });
  await play.begin("rolled out");
  const gap = new Gap(at, fate);
  for (const [deliveries, act] of story) {
    await deliver(model, gap, deliveries);
    await play.act(act);
  }
  await deliver(model, gap, most);
  const { effects, kinds } = gap;
  await gap.end();
  if (!(await model.calm())) throw new Error(`effect ${at} ${fate}: does not become idle`);
  return {
    given: model.servers.given(),
    excesses: model.servers.excesses(),
    isGone: model.isGone(),
    effects,
    kinds,
  };
}

async function deliver(model: PlannerModel, gap: Gap, count: number): Promise<void> {
  for (let left = count; left > 0; left--) {
    const isMore = await gap.run((planner) => {
      const delivery: Delivery = { pick: 0, outcome: "Ready", lands: "now", rendering: "done", planner };
      return model.deliver(delivery);
    });
    if (isMore === "hangs") model.send([{ to: "rollout", owner }]);
    else if (!isMore) return;
  }
}

class Gap {
  readonly #at: number;
  readonly #fate: Fate;
  effects = 0;
  readonly kinds = new Set<string>();
  #sleeper: { readonly wake: () => void; readonly run: Promise<unknown> } | undefined;

  constructor(at: number, fate: Fate) {
    this.#at = at;
    this.#fate = fate;
  }

  async run(work: (planner: Disturbance) => Promise<boolean>): Promise<boolean | "hangs"> {
    const { promise: isAsleep, resolve: sleep } = Promise.withResolvers<"hangs">();
    const { promise: isAwake, resolve: wake } = Promise.withResolvers<void>();
    const before = this.#sleeper;
    let isDead = false;
    const seen = this.effects;
    const around = async <T>(effect: () => Promise<T>, writes: readonly Write[]): Promise<T> => {
      if (isDead) throw new Crash();
      const isIt = ++this.effects === this.#at;
      for (const write of writes.length === 0 ? [undefined] : writes) this.kinds.add(kindOf(write));
      if (isIt && this.#fate.startsWith("goes on")) {
        sleep("hangs");
        await isAwake;
      }
      isDead = isIt && this.#fate === "dies";
      const result = await effect();
      if (isDead) throw new Crash();
      return result;
    };
    const run = work({ around });
    const ended = await Promise.race([run, isAsleep]);
    if (ended === "hangs") this.#sleeper = { wake, run };
    else if (before !== undefined && this.effects > seen && this.#fate === "goes on after the next one")
      await this.end();
    return ended;
  }

  /** Continues the call that has stopped. */
  async end(): Promise<void> {
    const { wake, run } = this.#sleeper ?? {};
    this.#sleeper = undefined;
    wake?.();
    await run;
  }
}

function kindOf(write: Write | undefined): string {
  if (write === undefined) return "message";
  if ("put" in write) return write.put.type;
  if ("delete" in write) return `delete ${write.delete.sk.split("#")[0]}`;
  return "check" in write ? "check" : "update";
}
