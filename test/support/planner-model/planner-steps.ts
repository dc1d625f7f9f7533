import fc from "fast-check";
import { defined } from "#shared/base/defined.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { Disturbance } from "#test/support/planner-model/disturbed-ports.ts";
import { longWindow } from "#test/support/planner-model/guard-watch.ts";
import type { GroupAct, ModelGroup, Paths } from "#test/support/planner-model/model-group.ts";
import { alarms, approvalBy, type PeopleAct, robot } from "#test/support/planner-model/model-people.ts";
import type { ModelTime } from "#test/support/planner-model/model-windows.ts";
import type { Outcome } from "#test/support/planner-model/model-workers.ts";
import {
  type Ahead,
  brokenRollout,
  callSeconds,
  type Delivery,
  isBroken,
  type PlannerModel,
} from "#test/support/planner-model/planner-model.ts";

/** An action of people or clusters. */
export type Act =
  | { readonly do: "revise"; readonly rollout: number }
  | { readonly do: "suspend" }
  | { readonly do: "resume" }
  | { readonly do: "reconcile" }
  | { readonly do: "refresh" }
  | { readonly do: "delete" }
  | { readonly do: "orphan" }
  /** Gives all stages other names. */
  | { readonly do: "rename" }
  | { readonly do: "strategy"; readonly strategy: Partial<RolloutStrategy> }
  | { readonly do: "templates"; readonly count: number }
  /** Freezes a ring or all clusters, with or without an end. */
  | { readonly do: "freeze"; readonly ring: number | undefined; readonly seconds: number | undefined }
  | { readonly do: "thaw"; readonly ring: number | undefined }
  | GroupAct
  | PeopleAct
  /** Sets the guard of the spec, or removes it. */
  | { readonly do: "guard"; readonly guard: object | undefined }
  /** `anew`: the cluster is registered again before the planner runs. `accept`: another cluster is accepted under its name. */
  | {
      readonly do: "join" | "leave" | "anew" | "accept" | "deselect" | "move" | "flavour" | "away" | "back" | "busy";
      readonly cluster: number;
    };

/** A run of the planner that is cut short, or during which somebody acts. */
export interface Run {
  readonly crash?: NonNullable<Disturbance["crash"]>;
  /** The time is over before this call, so the run ends with its current step and asks for another run. */
  readonly overAt?: number;
  readonly midst?: { readonly at: number; readonly act: Act };
}

/** After three renamings these are more than one transaction takes. Larger fleets would take too long to play. */
const manyTemplates = 20;
const mostOutgrowing = 3;

/** The properties of a cluster that change for a moment. */
const momentary = ["ring", "fleet", "flavour"] as const;

type ScriptedDelivery = Omit<Delivery, "planner"> & { readonly planner: Run };

/** One step of a scenario. */
export type Step =
  | { readonly do: "plan"; readonly planner: Run }
  | { readonly do: "two planners"; readonly jitter: readonly [number, number] }
  | { readonly do: "deliver"; readonly deliveries: readonly ScriptedDelivery[] }
  | { readonly do: "lose" | "duplicate" | "land" | "crash"; readonly pick: number }
  /** A cluster changes. While the planner handles that, a property of it is different during some calls. */
  | {
      readonly do: "there and back";
      readonly cluster: number;
      readonly first: "join" | "move" | "flavour" | "anew" | undefined;
      readonly what: (typeof momentary)[number];
      readonly at: number;
      readonly calls: number;
    }
  | { readonly do: "purge" }
  | { readonly do: "remember" }
  | { readonly do: "tick"; readonly index: "current" | "old" }
  | { readonly do: "wait"; readonly seconds: number }
  /** A revision that is resolved and rendered at once. */
  | { readonly do: "push"; readonly rollout: number }
  /** A template is removed, and restored with a revision that passes no stage. */
  | {
      readonly do: "put back";
      readonly dropped: readonly ScriptedDelivery[];
      readonly meanwhile: readonly Meanwhile[];
      readonly returned: readonly ScriptedDelivery[];
      /** Whether the template is removed again. */
      readonly again: boolean;
    }
  /** A stage is removed while several rollouts are in progress, and may be restored. */
  | {
      readonly do: "merge midway";
      readonly at: number;
      readonly pushed: readonly (readonly ScriptedDelivery[])[];
      readonly newer: boolean;
      readonly back: boolean;
    }
  /** Many templates get other names several times, while the worker of a cluster begins nothing. */
  | {
      readonly do: "outgrow";
      readonly cluster: number;
      readonly renames: number;
      readonly deliveries: readonly ScriptedDelivery[];
    }
  /** The group is suspended for this time and then resumed. */
  | { readonly do: "intermission"; readonly seconds: number }
  | Act;

type Meanwhile =
  | { readonly do: "refresh" | "rename" | "suspend" | "reconcile" }
  | { readonly do: "freeze"; readonly ring: number; readonly seconds: undefined }
  | { readonly do: "disable"; readonly at: number; readonly ring: number }
  | { readonly do: "away" | "move"; readonly cluster: number };

export interface Scenario {
  readonly rings: readonly number[];
  readonly strategy: Partial<RolloutStrategy>;
  readonly guard?: object | undefined;
  readonly templates: number;
  readonly paths: Paths;
  /** Whether a first rollout is over before the steps begin. */
  readonly begins: "new" | "rolled out";
  readonly steps: readonly Step[];
  /** How the clocks differ until the disturbances end. */
  readonly ahead?: Ahead | undefined;
  /** A ring that is frozen when the disturbances end, until all other clusters are idle. */
  readonly frozen: number | undefined;
}

const count = (most: number) =>
  fc.oneof(
    fc.integer({ min: 0, max: most }),
    fc.constantFrom("0%" as const, "10%" as const, "25%" as const, "50%" as const, "100%" as const),
  );

/** One in a number of cases, and otherwise nothing. */
const rarely = <Value>(arbitrary: fc.Arbitrary<Value>, oneIn: number): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const before = rarely(
  fc
    .record({ count: fc.integer({ min: 1, max: 2 }), expires: fc.constantFrom("10m", "24h") })
    .map((terms) => [{ approval: { by: approvalBy, ...terms } }]),
  6,
);
const bake = fc.constantFrom("1m", "5m", "10m").map((time) => ({ bake: time }));
const alarm = fc
  .record({ arn: fc.constantFrom(...alarms), missing: fc.constantFrom("fail" as const, "pass" as const) })
  .map((terms) => ({ alarm: terms }));
const check = fc.constantFrom("5m", "24h").map((expires) => ({ check: { principal: robot, expires } }));
const after = rarely(
  fc.oneof(
    { weight: 2, arbitrary: fc.tuple(bake) },
    { weight: 2, arbitrary: fc.tuple(bake, alarm) },
    { weight: 1, arbitrary: fc.tuple(check) },
    { weight: 1, arbitrary: fc.tuple(bake, alarm, check) },
  ),
  3,
);
const guard = fc.record({
  additions: fc.constantFrom(0, 1, 2, "10%", "25%", "50%"),
  deletions: fc.constantFrom(0, 0, 1, "25%"),
  objects: fc.constantFrom(0, 1, "20%", "50%", "100%"),
  per: fc.constant(longWindow),
});

const strategy: fc.Arbitrary<Partial<RolloutStrategy>> = fc
  .record({
    maxConcurrent: fc.oneof(
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom("10%" as const, "25%" as const, "100%" as const),
    ),
    maxFailures: count(2),
    maxUnreachable: count(3),
    supersede: fc.constantFrom("pipeline" as const, "pipeline" as const, "finish" as const),
    onFailure: fc.constantFrom("halt" as const, "halt" as const, "rollback" as const),
    stages: fc.array(fc.record({ maxConcurrent: fc.option(count(3), { nil: undefined }), before, after }), {
      minLength: 1,
      maxLength: 3,
    }),
  })
  .map(({ stages, ...rest }) => ({
    ...rest,
    progressDeadline: "5m",
    stages: stages.map((own, index) => ({
      name: `s${index}`,
      ...(index === stages.length - 1 ? {} : { clusters: { selector: { matchLabels: { ring: `r${index}` } } } }),
      ...defined(own),
    })),
  }));

const pick = fc.nat({ max: 1000 });
const cluster = fc.nat({ max: 1000 });
const ring = fc.constantFrom(undefined, 0, 1, 2);
const ringNumber = fc.nat({ max: 2 });
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 25, arbitrary: fc.constant("Ready" as const) },
  { weight: 6, arbitrary: fc.constant("Verifying" as const) },
  { weight: 4, arbitrary: fc.constant("Applying" as const) },
  { weight: 2, arbitrary: fc.constant("Retrying" as const) },
  { weight: 1, arbitrary: fc.constant("Failed" as const) },
);
const crash = fc.record({
  at: fc.integer({ min: 1, max: 25 }),
  when: fc.constantFrom("before" as const, "after" as const),
});
const read = fc.constantFrom("now" as const, "now" as const, "before" as const);
const seconds = (...some: readonly number[]) => fc.constantFrom(...some);
const time: fc.Arbitrary<ModelTime> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constantFrom("allow" as const, "deny" as const),
      in: seconds(0, 0, 60, 600),
      for: seconds(30, 400, 2000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ is: fc.constant("allow" as const), each: fc.constant("half an hour" as const) }),
  },
);
/** People say something about rollouts. */
const people: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("hold" as const),
      seconds: fc.constantFrom(undefined, undefined, 100, 700),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("release" as const),
      to: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("reject" as const), at: fc.nat({ max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("unreject" as const), at: fc.nat({ max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("promote" as const), at: fc.nat({ max: 2 }), read }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("retry" as const), of: fc.option(fc.nat({ max: 40 }), { nil: undefined }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("rollback" as const),
      to: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("skip" as const), of: fc.nat({ max: 40 }), ring: rarely(ringNumber, 4) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("cordon" as const),
      of: fc.nat({ max: 40 }),
      seconds: fc.constantFrom(undefined, undefined, 100, 700),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("uncordon" as const), of: fc.nat({ max: 40 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("alarm" as const),
      at: fc.nat({ max: 1 }),
      says: fc.constantFrom(
        "OK" as const,
        "OK" as const,
        "ALARM" as const,
        "INSUFFICIENT_DATA" as const,
        "unreadable" as const,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      at: fc.nat({ max: 2 }),
      by: fc.constantFrom("robot" as const, "robot" as const, "robot" as const, "stranger" as const),
      says: fc.constantFrom("approved" as const, "approved" as const, "rejected" as const),
      read,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("approve" as const), at: fc.nat({ max: 2 }), by: fc.nat({ max: 3 }), read }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("approve guard" as const), at: fc.nat({ max: 2 }), read }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("guard" as const), guard: fc.option(guard, { nil: undefined }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("window" as const),
      at: fc.nat({ max: 1 }),
      ring: fc.constantFrom(undefined, 0, 1, 2),
      times: fc.array(time, { minLength: 1, maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("no window" as const), at: fc.nat({ max: 1 }) }) },
);
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: people },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("revise" as const), rollout: fc.nat({ max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("suspend" as const, "resume" as const, "reconcile" as const, "refresh" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("strategy" as const), strategy }) },
  { weight: 1, arbitrary: fc.constant({ do: "rename" as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("templates" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("template" as const),
      what: fc.constantFrom("drop" as const, "drop" as const, "rename" as const),
      at: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("disable" as const), at: fc.nat({ max: 2 }), ring: fc.nat({ max: 2 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("stage" as const),
      what: fc.constantFrom("merge" as const, "merge" as const, "rename" as const),
      at: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "join" as const,
        "leave" as const,
        "anew" as const,
        "accept" as const,
        "deselect" as const,
        "move" as const,
        "flavour" as const,
      ),
      cluster,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("away" as const, "away" as const, "back" as const, "busy" as const),
      cluster,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("freeze" as const),
      ring,
      seconds: fc.constantFrom(undefined, undefined, 30, 400),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("thaw" as const), ring }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("delete" as const, "orphan" as const) }) },
);

const midst = fc.record({
  at: fc.integer({ min: 1, max: 20 }),
  act: fc.oneof({ weight: 1, arbitrary: fc.constant({ do: "suspend" as const }) }, { weight: 2, arbitrary: act }),
});
const planner: fc.Arbitrary<Run> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: crash.map((at) => ({ crash: at })) },
  { weight: 1, arbitrary: midst.map((during) => ({ midst: during })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 25 }).map((overAt) => ({ overAt })) },
);
const delivery: fc.Arbitrary<ScriptedDelivery> = fc.record({
  pick,
  outcome,
  lands: fc.oneof(
    { weight: 6, arbitrary: fc.constant("now" as const) },
    { weight: 2, arbitrary: fc.constant("later" as const) },
    { weight: 1, arbitrary: fc.constant("never" as const) },
  ),
  rendering: fc.oneof(
    { weight: 40, arbitrary: fc.constant("done" as const) },
    { weight: 1, arbitrary: fc.constant("failed" as const) },
    { weight: 1, arbitrary: fc.constant("never" as const) },
  ),
  planner,
});

/** A delivery in which many clusters fail. */
const rough: fc.Arbitrary<ScriptedDelivery> = fc
  .tuple(delivery, fc.constantFrom(undefined, "Failed" as const))
  .map(([made, worse]) => ({ ...made, outcome: worse ?? made.outcome }));

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 18,
    arbitrary: fc.record({
      do: fc.constant("deliver" as const),
      deliveries: fc.array(delivery, { minLength: 1, maxLength: 12 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("plan" as const), planner }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("push" as const), rollout: fc.nat({ max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("put back" as const),
      dropped: fc.array(delivery, { maxLength: 8 }),
      meanwhile: fc.array(
        fc.oneof(
          fc.record({
            do: fc.constantFrom("refresh" as const, "rename" as const, "suspend" as const, "reconcile" as const),
          }),
          fc.record({ do: fc.constant("freeze" as const), ring: fc.nat({ max: 2 }), seconds: fc.constant(undefined) }),
          fc.record({ do: fc.constant("disable" as const), at: fc.nat({ max: 2 }), ring: fc.nat({ max: 2 }) }),
          fc.record({ do: fc.constantFrom("away" as const, "move" as const), cluster }),
        ),
        { maxLength: 3 },
      ),
      returned: fc.array(rough, { maxLength: 8 }),
      again: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("merge midway" as const),
      at: fc.nat({ max: 1 }),
      pushed: fc.array(fc.array(delivery, { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
      newer: fc.boolean(),
      back: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("there and back" as const),
      cluster,
      first: fc.constantFrom(undefined, "join" as const, "move" as const, "flavour" as const, "anew" as const),
      what: fc.constantFrom(...momentary),
      at: fc.integer({ min: 1, max: 30 }),
      calls: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("outgrow" as const),
      cluster,
      renames: fc.integer({ min: 2, max: 5 }),
      deliveries: fc.array(delivery, { maxLength: 8 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("intermission" as const), seconds: fc.constantFrom(10, 100, 310, 1000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("two planners" as const), jitter: fc.tuple(pick, pick) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("lose" as const, "duplicate" as const, "land" as const, "crash" as const),
      pick,
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom({ do: "purge" as const }, { do: "remember" as const }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("tick" as const),
      index: fc.constantFrom("current" as const, "old" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(1, 5, 31, 70, 200, 400, 1000) }),
  },
  { weight: 8, arbitrary: act },
  { weight: 6, arbitrary: people },
);

/** Seconds by which clocks are ahead. */
const off = [-300, -60, -3, 0, 0, 3, 60, 300] as const;

const rings = (least: number, most: number) => fc.array(fc.nat({ max: 2 }), { minLength: least, maxLength: most });

function scenarioOf(fleet: Scenario["rings"] | fc.Arbitrary<Scenario["rings"]>): fc.Arbitrary<Scenario> {
  return fc.record({
    rings: fleet instanceof fc.Arbitrary ? fleet : fc.constant(fleet),
    strategy,
    guard: rarely(guard, 6),
    templates: fc.integer({ min: 1, max: 3 }),
    paths: fc.constantFrom("one" as const, "ring" as const, "flavour" as const, "cluster" as const),
    begins: fc.constantFrom("new" as const, "rolled out" as const),
    steps: fc.array(step, { minLength: 5, maxLength: 50, size: "max" }),
    ahead: rarely(fc.record({ people: fc.constantFrom(...off), workers: fc.constantFrom(...off) }), 3),
    frozen: ring,
  });
}

export const scenario = scenarioOf(
  fc.oneof({ weight: 3, arbitrary: rings(1, 8) }, { weight: 1, arbitrary: rings(9, 40) }),
);

/** A scenario with this number of clusters, the same for the same seed. */
export function largeScenario(clusters: number, seed: number): Scenario {
  const [made] = fc.sample(scenarioOf(Array.from({ length: clusters }, (_, index) => index % 3)), { seed, numRuns: 1 });
  if (made === undefined) throw new Error("no scenario was made");
  return made;
}

interface ModelCluster {
  readonly ring: string;
  readonly fleet: string;
  readonly flavour: string;
  readonly uid: string;
}

/** A scenario while it is played, with everything that people have asked for so far. */
export class Play {
  readonly model: PlannerModel;
  readonly #rings: readonly number[];
  readonly group: ModelGroup;
  readonly fleet = new Map<string, ModelCluster>();
  commits = 0;
  #lives = 0;
  #isMade = false;

  constructor(
    model: PlannerModel,
    { rings, group }: { readonly rings: readonly number[]; readonly group: ModelGroup },
  ) {
    this.model = model;
    this.#rings = rings;
    this.group = group;
  }

  async begin(as: Scenario["begins"]): Promise<void> {
    for (const index of this.#rings.keys()) await this.act({ do: "join", cluster: index });
    await this.act({ do: "revise", rollout: 0 });
    await this.setGroup();
    if (as === "rolled out") await this.model.calm();
  }

  async step(step: Step): Promise<void> {
    const { model } = this;
    if (step.do === "plan") return model.plan(this.#disturbed(step.planner));
    if (step.do === "push") {
      await this.act({ do: "revise", rollout: step.rollout });
      return this.#render();
    }
    if (step.do === "put back") return this.#putBack(step);
    if (step.do === "there and back") return this.#thereAndBack(step);
    if (step.do === "merge midway") return this.#mergeMidway(step);
    if (step.do === "outgrow") return this.#outgrow(step);
    if (step.do === "intermission") {
      await this.act({ do: "suspend" });
      await model.plan({});
      model.world.advanceClock(step.seconds);
      await model.tick("current");
      await model.plan({});
      await this.act({ do: "resume" });
      return model.plan({});
    }
    if (step.do === "two planners") {
      await Promise.all(step.jitter.map((jitter) => model.plan({ jitter })));
      return;
    }
    if (step.do === "deliver") {
      for (const delivery of step.deliveries) {
        await model.deliver({ ...delivery, planner: this.#disturbed(delivery.planner) });
      }
      return;
    }
    if ("pick" in step) return this.#disturb(step.do, step.pick);
    if (step.do === "purge") model.queue = [];
    else if (step.do === "remember") await model.remember();
    else if (step.do === "tick") await model.tick(step.index);
    else if (step.do === "wait") model.world.advanceClock(step.seconds);
    else await this.act(step);
  }

  async #putBack({ dropped, meanwhile, returned, again }: Extract<Step, { do: "put back" }>): Promise<void> {
    const [at = 0, ...others] = this.group.present().toReversed();
    if (others.length === 0) return;
    await this.act({ do: "template", what: "drop", at });
    await this.#render();
    await this.step({ do: "deliver", deliveries: dropped });
    for (const act of meanwhile) await this.act(act);
    await this.model.plan({});
    await this.model.revise(`commit${++this.commits}`, brokenRollout);
    if (!this.group.present().includes(at)) await this.act({ do: "template", what: "drop", at });
    await this.#render();
    await this.step({ do: "deliver", deliveries: returned });
    if (again) await this.act({ do: "template", what: "drop", at });
  }

  async #mergeMidway({ at, pushed, newer, back }: Extract<Step, { do: "merge midway" }>): Promise<void> {
    for (const [index, deliveries] of pushed.entries()) {
      await this.step({ do: "push", rollout: 4 + (index % 2) });
      await this.step({ do: "deliver", deliveries });
    }
    await this.act({ do: "stage", what: "merge", at });
    await this.model.plan({});
    if (newer) await this.step({ do: "push", rollout: 6 });
    for (const deliveries of pushed) await this.step({ do: "deliver", deliveries });
    if (back) await this.act({ do: "stage", what: "merge", at });
    await this.model.plan({});
  }

  async #outgrow({ cluster, renames, deliveries }: Extract<Step, { do: "outgrow" }>): Promise<void> {
    const { model, group } = this;
    const before = group.count();
    if (this.#rings.length > mostOutgrowing || model.isGone()) return;
    await this.act({ do: "busy", cluster });
    await this.act({ do: "templates", count: manyTemplates });
    await this.#render();
    for (let time = 0; time < renames; time++) {
      group.renameTemplates();
      await this.setGroup();
      await this.#render();
      model.world.advanceClock(400);
      await model.plan({});
    }
    await this.act({ do: "back", cluster });
    await this.step({ do: "deliver", deliveries });
    await this.act({ do: "templates", count: before });
  }

  async #thereAndBack({ cluster, first, what, at, calls }: Extract<Step, { do: "there and back" }>): Promise<void> {
    const { model } = this;
    if (first !== undefined) await this.act({ do: first, cluster });
    const [name, before] = [...this.fleet][cluster % Math.max(1, this.fleet.size)] ?? [];
    if (name === undefined || before === undefined) return;
    const others = { ring: before.ring === "r0" ? "r1" : "r0", fleet: "none", flavour: otherFlavour(before) };
    const there = () => model.setCluster(name, { ...before, [what]: others[what] });
    const back = () => model.setCluster(name, before);
    await model.plan({
      midst: [
        { at, act: there },
        { at: at + calls, act: back },
      ],
    });
    await back();
  }

  /** Lets the planner see the desired state, and renders it at once. */
  async #render(): Promise<void> {
    const { model } = this;
    await model.plan({});
    await model.world.renderAll("no kind", isBroken);
    await model.world.renderAll();
    return model.plan({});
  }

  #disturbed({ crash, midst, overAt }: Run): Disturbance {
    const { world } = this.model;
    const over = { at: overAt ?? 0, act: async () => world.advanceClock(callSeconds + 1) };
    return {
      ...defined({ crash }),
      midst: midst === undefined ? [over] : [{ at: midst.at, act: () => this.act(midst.act) }],
    };
  }

  async #disturb(what: Extract<Step, { pick: number }>["do"], pick: number): Promise<void> {
    const { workers } = this.model;
    if (what === "land") return workers.land(pick);
    if (what === "crash") return workers.crash(pick);
    const message = this.model.take(pick);
    if (what === "duplicate" && message !== undefined) this.model.send([message, message]);
  }

  async act(act: Act): Promise<void> {
    const { model } = this;
    if (act.do === "revise") return this.revise(this.commits + 1, act.rollout);
    if (isOfGroup(act)) {
      if (act.do === "strategy") this.group.setStrategy(act.strategy);
      else if (act.do === "rename") this.group.renameAll();
      else if (act.do === "templates") this.group.setCount(act.count);
      else if (act.do === "guard") this.group.setGuard(act.guard);
      else this.group.act(act);
      return this.setGroup();
    }
    if (act.do === "freeze" || act.do === "thaw") {
      const name = `freeze-${act.ring ?? "all"}`;
      const labels = act.ring === undefined ? undefined : { ring: `r${act.ring}` };
      return act.do === "thaw" ? model.thaw(name) : model.freeze({ name, labels, seconds: act.seconds });
    }
    if ("cluster" in act) return this.#actOnCluster(act.do, act.cluster);
    if (act.do === "suspend" || act.do === "resume" || act.do === "reconcile" || act.do === "refresh")
      return model.isGone() ? undefined : model.people.operate(act.do);
    if (act.do === "delete" || act.do === "orphan") return model.isGone() ? undefined : model.people.delete(act.do);
    return model.people.say(act);
  }

  async revise(commit: number, rollout: number): Promise<void> {
    this.commits = commit;
    await this.model.revise(`commit${commit}`, `content${rollout}`);
  }

  async #actOnCluster(what: Extract<Act, { cluster: number }>["do"], number: number): Promise<void> {
    const { model, fleet } = this;
    const among = what === "join" ? this.#rings.length + 3 : this.#rings.length;
    const name = `c${String(number % Math.max(1, among)).padStart(2, "0")}`;
    const known = fleet.get(name);
    if (what === "away") model.workers.away.add(name);
    if (what === "back") model.workers.away.delete(name);
    if (what === "back") model.workers.busy.delete(name);
    if (what === "busy") model.workers.busy.add(name);
    if (what === "move" && known !== undefined) {
      const ring = `r${this.#rings[(number + 1) % this.#rings.length] ?? 0}`;
      await this.#setCluster(name, { ...known, ring });
    }
    if (what === "flavour" && known !== undefined)
      await this.#setCluster(name, { ...known, flavour: otherFlavour(known) });
    if (what === "join" && known?.fleet !== "web") {
      const ring = `r${this.#rings[number % this.#rings.length] ?? 0}`;
      const { uid = `life${++this.#lives}`, flavour = number % 2 === 0 ? "mild" : "sharp" } = known ?? {};
      await this.#setCluster(name, { ring, fleet: "web", flavour, uid });
    }
    if (what === "deselect" && known !== undefined) await this.#setCluster(name, { ...known, fleet: "none" });
    if (what === "leave" && known !== undefined) {
      fleet.delete(name);
      await model.unregister(name);
    }
    if (what === "accept" && known !== undefined) {
      const accepted = { ...known, uid: `life${++this.#lives}` };
      fleet.set(name, accepted);
      await model.accept(name, accepted);
    }
    if (what === "anew" && known !== undefined) {
      await model.unregister(name);
      await this.#setCluster(name, { ...known, uid: `life${++this.#lives}` });
    }
  }

  async #setCluster(name: string, cluster: ModelCluster): Promise<void> {
    this.fleet.set(name, cluster);
    await this.model.setCluster(name, cluster);
  }

  async setGroup(): Promise<void> {
    if (this.#isMade && this.model.isGone()) return;
    this.#isMade = true;
    await this.model.setGroup(this.group.strategy(), this.group.templates(), this.group.guard());
  }
}

type OfGroup = Extract<Act, { do: "strategy" | "rename" | "templates" | "guard" | GroupAct["do"] }>;
const ofGroup: readonly string[] = [
  "strategy",
  "rename",
  "templates",
  "guard",
  "template",
  "disable",
  "stage",
] satisfies readonly OfGroup["do"][];

function isOfGroup(act: Act): act is OfGroup {
  return ofGroup.includes(act.do);
}

function otherFlavour({ flavour }: ModelCluster): string {
  return flavour === "mild" ? "sharp" : "mild";
}
