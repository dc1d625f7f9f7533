import { expect } from "vitest";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { FleetRow, OwnerRow, RolloutRejection } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, RolloutStateRow, StageGates, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { AlarmNeed, ModelAlarms } from "#test/support/planner-model/model-alarms.ts";
import { approvers, robot } from "#test/support/planner-model/model-people.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Watched {
  readonly now: Date;
  readonly group: OwnerRow | undefined;
  rowsOf<R extends Row>(type: R["type"]): R[];
  /** An id of the stage that stays when its name changes. */
  idOf(stage: string): string;
  readonly alarms: ModelAlarms;
}

/** A skip or a retry, as people said it. */
interface TargetAct {
  readonly number: number;
  readonly verb: "skip" | "retry";
  /** Of a skip: the rollout, and the id of the stage. */
  readonly place: string | undefined;
  readonly names: (cluster: FleetRow | undefined, name: string) => boolean;
}

/** An answer to a check. */
interface Answer {
  readonly number: number;
  readonly says: string;
  readonly by: string;
  readonly at: number;
}

/** One assignment of the planner. */
interface Assigned {
  readonly what: string;
  readonly sync: SyncRow;
  /** A deletion that is taken back: the cluster gets what it had, whatever that is. */
  readonly isTakenBack: boolean;
  /** The stage run that it belongs to; absent for a catch-up. */
  readonly stageRun: StageRunRow | undefined;
  /** Ids of the stages before the stage of its stage run, when that began. */
  readonly before: ReadonlySet<string>;
}

/** The gates that the spec had when a snapshot was taken. */
interface Terms {
  readonly bakeSeconds: number;
  readonly approvals: number;
  readonly alarms: readonly AlarmNeed[];
  readonly isChecked: boolean;
}

/**
 * Holds, rejections, rollbacks, skips, bakes, alarms, checks and approvals, counted by the assignments of Syncs, the
 * reports of workers, the readings of alarms, and the words of people.
 */
export class PeopleWatch {
  /** `<rollout> <stage>` of the stage runs that existed when the hold in force began. */
  #begun: ReadonlySet<string> = new Set();
  readonly #rejections = new Map<number, RolloutRejection>();
  /** The rejected rollouts that the planner knows, with the hash of the plan that each brought in. */
  readonly #rejected = new Map<number, { readonly planHash: string | undefined; readonly like?: number }>();
  #handled = 0;
  readonly #promoted = new Set<string>();
  /** The shortest bake by `<rollout> <stage>`, and the terms of each stage run by its key. */
  readonly #bakes = new Map<string, number>();
  /** The other gates after the targets that each stage run had, by `<rollout> <stage>`. */
  readonly #after = new Map<string, Pick<Terms, "alarms" | "isChecked">>();
  /** The hashes of plans by `<rollout> <stage>`, and the answers by stage and plan. */
  readonly #plans = new Map<string, Set<string>>();
  readonly #answers = new Map<string, Answer[]>();
  /** The rollouts that are rollbacks, with the older rollout of each. */
  readonly #rollbacks = new Map<number, number>();
  #targetActs: readonly TargetAct[] = [];
  #handledAct = 0;
  readonly #terms = new Map<string, Terms>();
  /** `<rollout> <stage>` by Sync and token, for assignments of stage runs. */
  readonly #assigned = new Map<string, string>();
  /** When a worker first reported Ready of a rollout in a stage. */
  readonly #readyAt = new Map<string, number>();
  /** The approvers by stage and plan. */
  readonly #approvals = new Map<string, Set<string>>();
  /** The contents that were assigned with a plan, by stage, plan, cluster and Sync. */
  readonly #contents = new Map<string, string>();

  written(changes: readonly Change[], watched: Watched): void {
    for (const { before, after } of changes) {
      if (after?.type === "SyncGroup") this.#hear(before as OwnerRow | undefined, after as OwnerRow, watched);
      if (after?.type === "RolloutState") this.#handle(after as RolloutStateRow, watched);
      if (before === undefined && after?.type === "Rollout") this.#numbered(after as RolloutRow, watched);
      if (before === undefined && after?.type === "StageRun") this.#noteTerms(after as StageRunRow, watched);
      if (after?.type === "StageRun") this.#notePlan(after as StageRunRow, watched);
      if (after?.type === "SyncOnCluster") this.#noteReady(after as SyncRow, watched);
    }
  }

  assigned({ what, sync, stageRun, before, isTakenBack }: Assigned, watched: Watched): void {
    const { rollout } = sync.desired;
    this.#checkHold(what, { sync, stageRun }, watched);
    expect(this.#rejected.has(rollout) && !isTakenBack, `${what}: its rollout is rejected`).toBe(false);
    if (stageRun === undefined) return;
    const stage = watched.idOf(stageRun.stage);
    this.#assigned.set(`${keyText(sync)} ${sync.desired.token}`, `${rollout} ${stage}`);
    if (!isTakenBack) this.#checkSkip(what, { sync, place: `${rollout} ${stage}` }, watched);
    if (this.isRollback(rollout)) return;
    for (const earlier of before) {
      this.#checkBake(what, `${rollout} ${earlier}`, watched.now);
      this.#checkAfter(what, `${rollout} ${earlier}`, watched);
    }
    this.#checkApproval(what, stageRun, sync);
  }

  isRollback(rollout: number): boolean {
    return this.#rollbacks.has(rollout);
  }

  /** What people have said. */
  #hear(before: OwnerRow | undefined, { operations }: OwnerRow, watched: Watched): void {
    const { hold } = operations;
    if (hold !== undefined && hold.number !== before?.operations.hold?.number && !isHeld(before, watched.now))
      this.#begun = new Set(watched.rowsOf<StageRunRow>("StageRun").map((one) => placeOf(one, watched)));
    for (const rejection of operations.rejections ?? []) this.#rejections.set(rejection.number, rejection);
    for (const act of operations.gates ?? []) if (act.verb === "promote") this.#promoted.add(placeOf(act, watched));
    this.#hearTargetActs(operations, watched);
    for (const { stage, plan, by, check, number } of operations.approvals ?? []) {
      const key = `${stage} ${plan}`;
      if (check !== undefined) {
        const asked = `${watched.idOf(stage)} ${plan}`;
        const known = this.#answers.get(asked) ?? [];
        const isKnown = known.some((one) => one.number === number);
        if (!isKnown)
          this.#answers.set(asked, [...known, { number, says: check.answer, by, at: watched.now.getTime() }]);
        continue;
      }
      this.#approvals.set(key, (this.#approvals.get(key) ?? new Set()).add(by));
    }
  }

  #hearTargetActs({ gates = [] }: OwnerRow["operations"], watched: Watched): void {
    const newest = this.#targetActs.at(-1)?.number ?? 0;
    const heard = gates.flatMap((act): readonly TargetAct[] => {
      if (act.verb === "promote" || act.number <= newest) return [];
      const { verb, number, cluster, clusters } = act;
      const place = verb === "skip" ? placeOf(act, watched) : undefined;
      const names = (entry: FleetRow | undefined, name: string) =>
        cluster === name || (clusters !== undefined && matchesSelector(clusters.selector, entry?.labels ?? {}));
      return [{ number, verb, place, names }];
    });
    this.#targetActs = [...this.#targetActs, ...heard.sort((a, b) => a.number - b.number)];
  }

  /** The planner has seen rejections; from now on it may not assign what they name. */
  #handle({ handledRejection = 0, handledAct = 0, stages }: RolloutStateRow, watched: Watched): void {
    this.#handledAct = handledAct;
    // A skip ends with its stage run.
    const passed = new Set(stages.map((stage) => placeOf({ rollout: stage.current ?? 0, stage: stage.name }, watched)));
    if (this.#targetActs.some(({ place }) => place !== undefined && passed.has(place)))
      this.#targetActs = this.#targetActs.filter(({ place }) => place === undefined || !passed.has(place));
    if (handledRejection === this.#handled) return;
    const rollouts = new Map(watched.rowsOf<RolloutRow>("Rollout").map((row) => [row.number, row]));
    const acts = [...this.#rejections.values()].filter(
      ({ number }) => number > this.#handled && number <= handledRejection,
    );
    for (const { rollout: number, do: verb } of acts.sort((a, b) => a.number - b.number)) {
      const { trigger, plan } = rollouts.get(number) ?? {};
      if (verb === "reject") this.#rejected.set(number, { planHash: trigger === "plan" ? plan?.planHash : undefined });
      else
        for (const [other, { like }] of this.#rejected)
          if (other === number || like === number) this.#rejected.delete(other);
    }
    this.#handled = handledRejection;
  }

  /**
   * A rollout with the plan of a rejected one is rejected as well. A rollback rejects everything newer than the older
   * rollout that a stage had taken.
   */
  #numbered({ number, plan, rollback, takesBack }: RolloutRow, watched: Watched): void {
    if (rollback !== undefined) {
      this.#rollbacks.set(number, rollback);
      if (takesBack !== undefined) {
        this.#tookBack(takesBack.rollout, plan.planHash, watched);
        return;
      }
      const taken = new Set(watched.rowsOf<StageRunRow>("StageRun").map((stageRun) => stageRun.rollout));
      for (const bad of watched.rowsOf<RolloutRow>("Rollout")) {
        if (bad.number <= rollback || !taken.has(bad.number) || this.isRollback(bad.number)) continue;
        if (this.#rejected.has(bad.number)) continue;
        const isOwn = bad.trigger === "plan" && bad.plan.planHash !== plan.planHash;
        this.#rejected.set(bad.number, { planHash: isOwn ? bad.plan.planHash : undefined });
      }
      return;
    }
    for (const [like, { planHash }] of this.#rejected)
      if (planHash === plan.planHash) this.#rejected.set(number, { planHash: undefined, like });
  }

  /** A rollout that failed is rejected alone. */
  #tookBack(failed: number, planHash: string, { rowsOf }: Watched): void {
    const bad = rowsOf<RolloutRow>("Rollout").find(({ number }) => number === failed);
    const isOwn = bad?.trigger === "plan" && bad.plan.planHash !== planHash;
    this.#rejected.set(failed, { planHash: isOwn ? bad.plan.planHash : undefined });
  }

  #noteTerms(stageRun: StageRunRow, watched: Watched): void {
    const { group } = watched;
    const stage = group && relationOf(group).rollout.stages.find(({ name }) => name === stageRun.stage);
    const bake = stage?.after?.flatMap((gate) => ("bake" in gate ? gate.bake : []))[0];
    const terms = {
      bakeSeconds: bake === undefined || group?.operations.deletion !== undefined ? 0 : secondsOf(bake),
      approvals: group?.operations.deletion === undefined ? (stage?.before?.[0]?.approval.count ?? 0) : 0,
      ...(group?.operations.deletion === undefined ? gatesOf(stage?.after) : { alarms: [], isChecked: false }),
    };
    const others = this.#after.get(placeOf(stageRun, watched)) ?? terms;
    this.#after.set(placeOf(stageRun, watched), {
      alarms: others.alarms.filter(({ arn }) => terms.alarms.some((one) => one.arn === arn)),
      isChecked: others.isChecked && terms.isChecked,
    });
    const place = placeOf(stageRun, watched);
    this.#bakes.set(place, Math.min(terms.bakeSeconds, this.#bakes.get(place) ?? Number.POSITIVE_INFINITY));
    this.#terms.set(stageRunKey(stageRun), terms);
  }

  #notePlan(stageRun: StageRunRow, watched: Watched): void {
    const place = placeOf(stageRun, watched);
    if (stageRun.planHash !== undefined)
      this.#plans.set(place, (this.#plans.get(place) ?? new Set()).add(stageRun.planHash));
  }

  #noteReady(sync: SyncRow, { now }: Watched): void {
    const { observed, desired } = sync;
    const place = this.#assigned.get(`${keyText(sync)} ${desired.token}`);
    if (place === undefined || observed?.attempt !== desired.attempt || observed.phase !== "Ready") return;
    if (!this.#readyAt.has(place)) this.#readyAt.set(place, now.getTime());
  }

  /** Under a hold, nothing is assigned of what had not begun, but for what was released from it. */
  #checkHold(what: string, { sync, stageRun }: Pick<Assigned, "sync" | "stageRun">, watched: Watched): void {
    const { group, now } = watched;
    if (!isHeld(group, now)) return;
    const { rollout } = sync.desired;
    if (group?.operations.hold?.except?.includes(rollout) === true || this.isRollback(rollout)) return;
    const hasBegun =
      stageRun === undefined
        ? [...this.#begun].some((place) => place.startsWith(`${rollout} `))
        : this.#begun.has(placeOf(stageRun, watched));
    expect(hasBegun, `${what}: although the group is held`).toBe(true);
  }

  /** A stage begins a rollout no earlier than the bake of the stage before takes, from the first cluster that was ready there. */
  #checkBake(what: string, place: string, now: Date): void {
    const readyAt = this.#readyAt.get(place);
    if (readyAt === undefined || this.#promoted.has(place)) return;
    const seconds = (now.getTime() - readyAt) / 1000;
    expect(seconds, `${what}: seconds of the bake of ${place}`).toBeGreaterThanOrEqual(this.#bakes.get(place) ?? 0);
  }

  /**
   * A stage begins a rollout only after the alarms of the stage before let it pass for a whole bake, and its program has
   * approved the plan.
   */
  #checkAfter(what: string, place: string, { alarms }: Watched): void {
    const from = this.#readyAt.get(place);
    if (from === undefined || this.#promoted.has(place)) return;
    const terms = this.#after.get(place);
    for (const need of terms?.alarms ?? [])
      expect(
        alarms.hasLetPass(need, { from, seconds: this.#bakes.get(place) ?? 0 }),
        `${what}: ${need.arn} let ${place} pass`,
      ).toBe(true);
    if (terms?.isChecked !== true) return;
    const stage = place.slice(place.indexOf(" ") + 1);
    const answers = [...(this.#plans.get(place) ?? [])].flatMap((plan) => this.#answers.get(`${stage} ${plan}`) ?? []);
    const isApproved = answers.some(({ says, by, at }) => says === "approved" && by === robot && at >= from);
    expect(isApproved, `${what}: the program approved ${place}`).toBe(true);
  }

  /** The newest act that names a cluster counts: a skipped one gets nothing of this rollout in this stage. */
  #checkSkip(
    what: string,
    { sync, place }: { readonly sync: SyncRow; readonly place: string },
    { rowsOf }: Watched,
  ): void {
    const cluster = rowsOf<FleetRow>("Fleet").find(({ name }) => name === sync.cluster);
    const newest = this.#targetActs
      .filter(({ number }) => number <= this.#handledAct)
      .filter((act) => act.verb === "retry" || act.place === place)
      .findLast((act) => act.names(cluster, sync.cluster));
    expect(newest?.verb, `${what}: its cluster is skipped`).not.toBe("skip");
  }

  /** As many people as the stage asks for have approved exactly this plan, and a plan is always the same content. */
  #checkApproval(what: string, stageRun: StageRunRow, { cluster, name, desired }: SyncRow): void {
    const { stage, planHash = "" } = stageRun;
    const needed = this.#terms.get(stageRunKey(stageRun))?.approvals ?? 0;
    if (needed === 0) return;
    const by = this.#approvals.get(`${stage} ${planHash}`) ?? new Set();
    const allowed = [...by].filter((one) => approvers.includes(one));
    expect(allowed.length, `${what}: approvals of plan ${planHash} in ${stage}`).toBeGreaterThanOrEqual(needed);
    const key = [stage, planHash, cluster, name].join(" ");
    const content = `${desired.action} ${desired.renderDigest ?? ""}`;
    expect(this.#contents.get(key) ?? content, `${what}: content of plan ${planHash}`).toBe(content);
    this.#contents.set(key, content);
  }
}

function gatesOf(after: StageGates["after"]): Pick<Terms, "alarms" | "isChecked"> {
  return {
    alarms: after?.flatMap(({ alarm }) => alarm ?? []) ?? [],
    isChecked: after?.some(({ check }) => check !== undefined) === true,
  };
}

function isHeld(group: OwnerRow | undefined, now: Date): boolean {
  const { hold, deletion } = group?.operations ?? {};
  if (hold === undefined || deletion !== undefined) return false;
  return hold.until === undefined || hold.until > now.toISOString();
}

function placeOf({ rollout, stage }: { readonly rollout: number; readonly stage: string }, { idOf }: Watched): string {
  return `${rollout} ${idOf(stage)}`;
}
