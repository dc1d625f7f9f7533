/**
 * Around a push of the chaos story people stop it, or parts of it, and let it go. Meanwhile no cluster that is spared may
 * get anything of it: the requests that reach the API servers are counted.
 */
import assert from "node:assert/strict";
import { ApiAnswer } from "#local/machine/api-session.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { Clearing, WaitReason } from "#shared/fleet/waits/wait.ts";
import { insist } from "#test/support/busy-people.ts";
import { fewClusters, storyGroup } from "#test/support/chaos-story.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { handUserAgent } from "#test/support/kube-call.ts";

/** A push of the story, in which one object appears and another one goes. */
export interface Push {
  readonly push: () => Promise<string>;
  readonly appears: string;
  readonly goes: string;
  readonly patienceSeconds?: number | undefined;
}

/** The clusters of the story with `fewClusters`. */
const canary = "canary-1";
const [one, other] = ["broad-1", "broad-2"];
const everybody = [canary, one, other];

type Verb = Clearing["verb"];

class People {
  readonly #world: World;
  readonly #push: Push;
  #spared: readonly string[] = [];
  /** Requests that gave something of the push to a spared cluster. */
  readonly #broken: string[] = [];
  readonly stopWatching: () => void;

  constructor(world: World, push: Push) {
    this.#world = world;
    this.#push = push;
    this.stopWatching = world.fleet.onRequest(({ cluster, method, path, result, dryRun, userAgent }) => {
      if (dryRun || userAgent === handUserAgent || result >= 300 || !this.#spared.includes(cluster)) return;
      const isNew =
        (method === "PATCH" && path.endsWith(`/configmaps/${push.appears}`)) ||
        (method === "DELETE" && path.endsWith(`/configmaps/${push.goes}`));
      if (isNew) this.#broken.push(`${cluster} ${method} ${path}`);
    });
  }

  /** From now on only these clusters are spared. */
  spare(...clusters: readonly string[]): void {
    this.seeNothingBroken();
    this.#spared = clusters;
  }

  seeNothingBroken(): void {
    assert.deepEqual(this.#broken, [], "a cluster got what people had stopped");
  }

  push(): Promise<string> {
    return this.#push.push();
  }

  apply(document: unknown): Promise<void> {
    return insist(this.#world, () => this.#world.apply(document));
  }

  /** Stops something; `reason` is that of the wait that names it then. */
  async stop(verb: string, body: object, reason: WaitReason): Promise<void> {
    await this.say(verb, body, async () => (await this.#overview()).waits.some((wait) => wait.reason === reason));
  }

  /** Clears a wait as its line says, when it is there. */
  async clear<Its extends Verb>(
    verb: Its,
    saying: (clearing: Extract<Clearing, { verb: Its }>) => { readonly path: string; readonly body?: object },
  ): Promise<void> {
    const clearing = await this.#waitFor(`a wait is cleared by ${verb}`, () => this.#clearing(verb));
    const { path, body = {} } = saying(clearing);
    await this.say(path, body, async () => (await this.#clearing(verb)) === undefined);
  }

  /** Waits until the planner has done everything that people have not stopped. */
  async untilHeld(): Promise<void> {
    await this.untilOverview(
      "the group is Held",
      ({ newest, state, waits }) => newest === 2 && state === "Held" && waits.every(({ reason }) => reason !== "asked"),
    );
  }

  /** Waits long enough for an attempt to begin that nothing has stopped. */
  async forAWhile(): Promise<void> {
    const end = this.#world.clock.now().getTime() + whileSeconds * 1000;
    await this.#waitFor("time passes", async () => this.#world.clock.now().getTime() >= end);
  }

  async untilOverview(what: string, holds: (overview: RolloutOverview["status"]) => boolean): Promise<void> {
    await this.#waitFor(what, async () => holds(await this.#overview()));
  }

  async untilInSync(commit: string): Promise<void> {
    await this.#world.untilInSync("web", commit, this.#push.patienceSeconds);
  }

  async #clearing<Its extends Verb>(verb: Its): Promise<Extract<Clearing, { verb: Its }> | undefined> {
    const clears = (await this.#overview()).waits.flatMap(({ clear }) => clear);
    return clears.find((clearing): clearing is Extract<Clearing, { verb: Its }> => clearing.verb === verb);
  }

  async #overview(): Promise<RolloutOverview["status"]> {
    const { status } = await this.#world.session.call<RolloutOverview>("GET", `${group}/rollout`);
    return status;
  }

  /** Says it until it is acknowledged, or until its effect is there: the answer to what was said may be lost. */
  async say(path: string, body: object = {}, isDone = async () => false): Promise<void> {
    const url = path.startsWith("/") ? path : `${group}/${path}`;
    const said = { reason: "somebody looks into it", ...body };
    await this.#waitFor(`${path} is acknowledged`, async () => {
      try {
        await this.#world.session.call("POST", url, said);
        return true;
      } catch (error) {
        if (!(error instanceof ApiAnswer) || error.status !== 409) throw error;
        return isDone();
      }
    });
  }

  #waitFor<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    const watched = () => {
      this.seeNothingBroken();
      return probe();
    };
    return this.#world.waitFor(what, watched, this.#push.patienceSeconds);
  }
}

/** In seconds of the functions' clock. */
const whileSeconds = 60;

const group = `/v1/namespaces/${namespace}/syncgroups/web`;

/** People push, and say something before or after it. @returns the commit that the clusters have in the end. */
type Way = (people: People) => Promise<string>;

/** Nobody does anything, in some of the worlds. */
const ways = {
  "no verb": (people) => people.push(),

  async "cordon the canary"(people) {
    await people.stop(`/v1/clusters/${canary}/cordon`, {}, "cordoned");
    people.spare(...everybody);
    const commit = await people.push();
    await people.untilHeld();
    people.spare();
    await people.clear("uncordon", ({ cluster }) => ({ path: `/v1/clusters/${cluster}/uncordon` }));
    return commit;
  },

  async "cordon another"(people) {
    await people.stop(`/v1/clusters/${one}/cordon`, {}, "cordoned");
    people.spare(one);
    const commit = await people.push();
    await people.untilHeld();
    people.spare();
    await people.clear("uncordon", ({ cluster }) => ({ path: `/v1/clusters/${cluster}/uncordon` }));
    return commit;
  },

  async "reject and unreject"(people) {
    await people.stop("hold", {}, "held");
    people.spare(...everybody);
    const commit = await people.push();
    await people.untilOverview("the push has a number", ({ newest }) => newest === 2);
    await people.stop("reject", { rollout: 2 }, "rejected");
    await people.clear("release", () => ({ path: "release" }));
    await people.forAWhile();
    people.spare();
    await people.say("unreject", { rollout: 2 });
    return commit;
  },

  /** Cordons keep the stage open meanwhile. */
  async "skip and retry"(people) {
    for (const name of [one, other]) await people.stop(`/v1/clusters/${name}/cordon`, {}, "cordoned");
    people.spare(one, other);
    const commit = await people.push();
    await people.untilOverview("the last stage has it", ({ stages }) => stages.at(-1)?.updatingTo?.rollout === 2);
    await people.stop("skip", { cluster: other }, "skipped");
    people.spare(other);
    for (const name of [one, other]) await people.say(`/v1/clusters/${name}/uncordon`);
    await people.untilOverview("the last stage has passed it", ({ stages }) => stages.at(-1)?.current === 2);
    await people.untilHeld();
    people.spare();
    await people.clear("retry", () => ({ path: "retry", body: { cluster: other } }));
    return commit;
  },

  async approve(people) {
    await people.apply(storyGroup({ rings: fewClusters }, "broad"));
    people.spare(one, other);
    const commit = await people.push();
    // People may approve it earlier, too.
    await people.untilOverview("the last stage asks", ({ stages }) => stages.at(-1)?.updatingTo?.phase === "Gated");
    people.spare();
    await people.clear("approve", ({ stage, plan }) => ({ path: "approve", body: { stage, plan } }));
    return commit;
  },

  async "hold and release"(people) {
    await people.stop("hold", {}, "held");
    people.spare(...everybody);
    const commit = await people.push();
    await people.untilHeld();
    people.spare();
    await people.clear("release", () => ({ path: "release" }));
    return commit;
  },

  async "roll back"(people) {
    const commit = await people.push();
    await people.untilInSync(commit);
    await people.stop("rollback", {}, "held");
    await people.untilOverview("every stage has gone back", ({ newest, stages }) =>
      stages.every(({ current, updatingTo }) => updatingTo === undefined && current === newest),
    );
    people.spare(...everybody);
    await people.clear("release", () => ({ path: "release" }));
    await people.forAWhile();
    people.spare();
    await people.say("unreject", { rollout: 2 });
    return commit;
  },
} satisfies Readonly<Record<string, Way>>;

export type WayName = keyof typeof ways;
const names = Object.keys(ways) as WayName[];

/** Seeds in a row go all ways. */
export function wayOf(seed: number): WayName {
  return names[seed % names.length] ?? "no verb";
}

/** @throws AssertionError when a cluster got what people had stopped. */
export async function pushTheWay(world: World, name: WayName, push: Push): Promise<string> {
  const people = new People(world, push);
  try {
    const commit = await ways[name](people);
    people.seeNothingBroken();
    return commit;
  } finally {
    people.stopWatching();
  }
}
