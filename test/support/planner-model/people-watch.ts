import { expect } from "vitest";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { OwnerRow, RolloutRejection } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, RolloutStateRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, type Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { approvers } from "#test/support/planner-model/model-people.ts";
import type { Change } from "#test/support/planner-model/stage-watch.ts";

interface Watched {
  readonly now: Date;
  readonly group: OwnerRow | undefined;
  rowsOf<R extends Row>(type: R["type"]): R[];
  /** An id of the stage that stays when its name changes. */
  idOf(stage: string): string;
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
}

/**
 * Holds, rejections, bakes and approvals, counted by the assignments of Syncs, the reports of workers, and the words of
 * people.
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
      if (before === undefined && after?.type === "Rollout") this.#numbered(after as RolloutRow);
      if (before === undefined && after?.type === "StageRun") this.#noteTerms(after as StageRunRow, watched);
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
    for (const earlier of before) this.#checkBake(what, `${rollout} ${earlier}`, watched.now);
    this.#checkApproval(what, stageRun, sync);
  }

  /** What people have said. */
  #hear(before: OwnerRow | undefined, { operations }: OwnerRow, watched: Watched): void {
    const { hold } = operations;
    if (hold !== undefined && hold.number !== before?.operations.hold?.number && !isHeld(before, watched.now))
      this.#begun = new Set(watched.rowsOf<StageRunRow>("StageRun").map((one) => placeOf(one, watched)));
    for (const rejection of operations.rejections ?? []) this.#rejections.set(rejection.number, rejection);
    for (const act of operations.gates ?? []) if (act.verb === "promote") this.#promoted.add(placeOf(act, watched));
    for (const { stage, plan, by } of operations.approvals ?? []) {
      const key = `${stage} ${plan}`;
      this.#approvals.set(key, (this.#approvals.get(key) ?? new Set()).add(by));
    }
  }

  /** The planner has seen rejections; from now on it may not assign what they name. */
  #handle({ handledRejection = 0 }: RolloutStateRow, watched: Watched): void {
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

  /** A rollout with the plan of a rejected one is rejected as well. */
  #numbered({ number, plan }: RolloutRow): void {
    for (const [like, { planHash }] of this.#rejected)
      if (planHash === plan.planHash) this.#rejected.set(number, { planHash: undefined, like });
  }

  #noteTerms(stageRun: StageRunRow, watched: Watched): void {
    const { group } = watched;
    const stage = group && relationOf(group).rollout.stages.find(({ name }) => name === stageRun.stage);
    const bake = stage?.after?.flatMap((gate) => ("bake" in gate ? gate.bake : []))[0];
    const terms = {
      bakeSeconds: bake === undefined || group?.operations.deletion !== undefined ? 0 : secondsOf(bake),
      approvals: group?.operations.deletion === undefined ? (stage?.before?.[0]?.approval.count ?? 0) : 0,
    };
    const place = placeOf(stageRun, watched);
    this.#bakes.set(place, Math.min(terms.bakeSeconds, this.#bakes.get(place) ?? Number.POSITIVE_INFINITY));
    this.#terms.set(stageRunKey(stageRun), terms);
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
    if (group?.operations.hold?.except?.includes(rollout) === true) return;
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

function isHeld(group: OwnerRow | undefined, now: Date): boolean {
  const { hold, deletion } = group?.operations ?? {};
  if (hold === undefined || deletion !== undefined) return false;
  return hold.until === undefined || hold.until > now.toISOString();
}

function placeOf({ rollout, stage }: { readonly rollout: number; readonly stage: string }, { idOf }: Watched): string {
  return `${rollout} ${idOf(stage)}`;
}
