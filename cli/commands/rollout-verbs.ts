/** The verbs below `starling rollout` that change what stages start, and when they end. */

import { effectsText } from "#cli/format/rollback-text.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { ownerPath } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { untilTime } from "#cli/session/until-time.ts";
import { defined } from "#shared/base/defined.ts";
import type { OverviewStage, OverviewStageRun, RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import type { ObjectEffects } from "#shared/fleet/forecast/rollback-effects.ts";
import type { RollbackPlan } from "#shared/fleet/rollout/rollback.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";

interface VerbAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly operations: Operations;
  /** Functions of a version before say nothing of templates or objects. */
  readonly rollback?: Omit<RollbackPlan, "stay" | "deletes" | "createdAgain"> &
    Partial<RollbackPlan> & { readonly objects?: ObjectEffects };
}

export interface HoldOptions {
  readonly until?: string;
}

export async function rolloutHold(session: Session, group: string, { until }: HoldOptions): Promise<ExitReason> {
  requireReason(session, `starling rollout hold ${group}${session.where()} --reason "why"`);
  const end = until === undefined ? undefined : untilTime(until, session.io.now());
  await post(session, { group, verb: "hold", body: defined({ until: end }) });
  const lasts = end === undefined ? "until a release" : `until ${end}, or a release`;
  session.io.out(`${group} held: no stage starts a newer rollout ${lasts}\n`);
  session.note(`  next: starling rollout release ${group}${session.where()}   (ends the hold)`);
  return "done";
}

export interface ExemptOptions extends HoldOptions {
  readonly window?: readonly string[];
}

export async function rolloutExempt(
  session: Session,
  group: string,
  { until, window: windows }: ExemptOptions,
): Promise<ExitReason> {
  const example = `starling rollout exempt ${group}${session.where()} --until 2h --reason "why"`;
  requireReason(session, example);
  if (until === undefined) throw usageFailure("--until is required: an exemption has an end", example);
  const end = untilTime(until, session.io.now());
  await post(session, { group, verb: "exempt", body: { until: end, ...defined({ windows }) } });
  const which =
    windows === undefined ? "every window" : `${windows.length === 1 ? "window" : "windows"} ${windows.join(", ")}`;
  session.io.out(`${group} exempt from ${which} until ${end}: its changes may start\n`);
  session.note(`  next: starling rollout unexempt ${group}${session.where()}   (ends the exemption)`);
  return "done";
}

export async function rolloutUnexempt(session: Session, group: string): Promise<ExitReason> {
  const { outcome } = await post(session, { group, verb: "unexempt", body: {} });
  const ended = "not exempt any more: its changes wait for their windows";
  session.io.out(`${group} ${outcome === "unchanged" ? "unchanged: it is not exempt" : ended}\n`);
  return "done";
}

export interface ReleaseOptions {
  readonly to?: number;
}

export async function rolloutRelease(session: Session, group: string, { to }: ReleaseOptions): Promise<ExitReason> {
  const { outcome } = await post(session, { group, verb: "release", body: defined({ to }) });
  const released = to === undefined ? "released: the newest rollout may start" : `held, except for rollout ${to}`;
  session.io.out(`${group} ${outcome === "unchanged" ? "unchanged: it is not held" : released}\n`);
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}

export interface ApprovalOptions {
  readonly stage?: string;
  readonly plan?: string;
}

/** Approves the plan with this hash in the stage, and no other. */
export async function rolloutApprove(session: Session, group: string, options: ApprovalOptions): Promise<ExitReason> {
  const { stage, plan } = options;
  const example = `starling rollout approve ${group}${session.where()} --stage production --plan HASH --reason "why"`;
  requireReason(session, example);
  if (stage === undefined || plan === undefined)
    throw usageFailure("--stage and --plan are required: starling rollout status names the plan that waits", example);
  const { outcome } = await post(session, { group, verb: "approve", body: { stage, plan } });
  const said = outcome === "unchanged" ? "unchanged: you have approved" : "approved:";
  session.io.out(`${group} ${said} plan ${plan} in stage ${stage}\n`);
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}

export interface PromoteOptions {
  readonly stage?: string;
  readonly number?: number;
}

/** Passes the stage run that is shown now: the request names it, so that no later one is passed. */
export async function rolloutPromote(session: Session, group: string, options: PromoteOptions): Promise<ExitReason> {
  const example = `starling rollout promote ${group}${session.where()} --stage canary --reason "why"`;
  requireReason(session, example);
  if (options.stage === undefined) throw usageFailure("--stage is required: the stage to pass", example);
  const path = `${ownerPath(session, group)}/rollout`;
  const { status } = await session.api.call<RolloutOverview>({ method: "GET", path });
  const next = `starling rollout status ${group}${session.where()}`;
  const stageRun = stageRunToPromote(status.stages, options, next);
  const { rollout, snapshot, message } = stageRun;
  const body = { stage: options.stage, rollout, snapshot };
  const { outcome } = await post(session, { group, verb: "promote", body });
  const said = outcome === "unchanged" ? "unchanged: rollout" : "promoted: rollout";
  session.io.out(`${group} ${said} ${rollout} passes stage ${options.stage} (${message})\n`);
  session.note(`  next: ${next} -w`);
  return "done";
}

export interface RetryOptions {
  readonly cluster?: string;
  readonly selector?: string;
  readonly state?: string;
}

export async function rolloutRetry(session: Session, group: string, options: RetryOptions): Promise<ExitReason> {
  const { cluster, selector: clusters, state = "failed" } = options;
  requireReason(session, `starling rollout retry ${group}${session.where()} --cluster NAME --reason "why"`);
  if (state !== "failed")
    throw usageFailure(`--state is "${state}"; only failed clusters are tried again`, "--state failed");
  await post(session, { group, verb: "retry", body: defined({ cluster, clusters }) });
  const which = cluster ?? (clusters === undefined ? "every failed cluster" : `failed clusters ${clusters}`);
  session.io.out(`${group}: another turn for ${which}\n`);
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}

export type SkipOptions = Pick<RetryOptions, "cluster" | "selector">;

export async function rolloutSkip(session: Session, group: string, options: SkipOptions): Promise<ExitReason> {
  const { cluster, selector: clusters } = options;
  const example = `starling rollout skip ${group}${session.where()} --cluster NAME --reason "why"`;
  requireReason(session, example);
  if ((cluster === undefined) === (clusters === undefined))
    throw usageFailure("name the clusters to skip: --cluster NAME, or -l LABELS", example);
  const { outcome } = await post(session, { group, verb: "skip", body: defined({ cluster, clusters }) });
  const which = cluster ?? `clusters ${clusters}`;
  const skipped = `${which} skipped: the rollouts in progress go on without`;
  session.io.out(`${group} ${outcome === "unchanged" ? `unchanged: ${which} is skipped already` : skipped}\n`);
  const named = cluster === undefined ? `-l '${clusters}'` : `--cluster ${cluster}`;
  session.note(`  next: starling rollout retry ${group}${session.where()} ${named} --reason …   (takes them in again)`);
  return "done";
}

/** @throws CliFailure when the stage has no stage run, or one of another rollout. */
function stageRunToPromote(
  stages: readonly OverviewStage[],
  { stage: name, number }: PromoteOptions,
  next: string,
): OverviewStageRun {
  const stage = stages.find((one) => one.name === name);
  if (stage === undefined) {
    const names = stages.map((one) => one.name).join(", ");
    throw new CliFailure(`there is no stage ${name}; the stages are ${names === "" ? "none yet" : names}`, {
      exit: "wrongInput",
      next,
    });
  }
  const { updatingTo } = stage;
  if (updatingTo === undefined)
    throw new CliFailure(`no rollout is in progress in stage ${name}`, { exit: "no", next });
  if (number !== undefined && updatingTo.rollout !== number)
    throw new CliFailure(`stage ${name} updates to rollout ${updatingTo.rollout}, and not to ${number}`, {
      exit: "no",
      next,
    });
  return updatingTo;
}

export interface RollbackOptions {
  /** A number, or a revision. */
  readonly to?: string;
  readonly dryRun?: boolean;
  readonly deleteAdded?: boolean;
}

export async function rolloutRollback(
  session: Session,
  group: string,
  { to, dryRun = false, deleteAdded = false }: RollbackOptions,
): Promise<ExitReason> {
  requireReason(session, `starling rollout rollback ${group}${session.where()} --reason "why"`);
  // An abbreviated commit may consist of digits, but has at least seven of them.
  const named = to !== undefined && /^\d{1,6}$/.test(to) ? rolloutNumber(session, group, to) : to;
  const verb = deleteAdded ? "rollback-deleting" : "rollback";
  const { rollback } = await post(session, { group, verb, body: { dryRun, ...defined({ to: named }) } });
  if (rollback === undefined) throw new Error("the API says nothing of the rollback");
  const stages = rollback.stages.map(({ name, members }) => `${name} (${members})`).join(", ");
  const goes = dryRun ? "would go" : "goes";
  session.io.out(`${group} ${goes} back to rollout ${rollback.to}, ${rollback.revision}, in stages ${stages}\n`);
  const rejects = rollback.rejects.join(", ");
  session.io.out(`  rejected: ${rejects}; held until: starling rollout release ${group}${session.where()}\n`);
  const { stay = [], deletes = [], createdAgain = [] } = rollback;
  if (stay.length > 0)
    session.io.out(`  stays: ${templates(stay)}, which a later rollout added: the group still has it\n`);
  if (deletes.length > 0)
    session.io.out(`  deleted: ${templates(deletes)}, which a later rollout added, with all objects\n`);
  if (createdAgain.length > 0)
    session.io.out(
      `  created again: ${templates(createdAgain)}, which a later rollout dropped: deleted data does not return\n`,
    );
  session.io.out(rollback.objects === undefined ? `  ${nothingKnown}\n` : effectsText(rollback.objects));
  if (!dryRun) session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}

const nothingKnown = "not taken back: what hooks did, versions of CRDs, and the data of objects that were created anew";

function templates(names: readonly string[]): string {
  return `${names.length === 1 ? "template" : "templates"} ${names.join(", ")}`;
}

/** Rejects a rollout by its number, or as the principal of a check, the plan that is checked. */
export async function rolloutReject(
  session: Session,
  [group = "", number = ""]: readonly string[],
  { stage, plan }: ApprovalOptions,
): Promise<ExitReason> {
  if ((stage ?? plan) !== undefined) {
    const example = `starling rollout reject ${group}${session.where()} --stage production --plan HASH --reason "why"`;
    requireReason(session, example);
    if (stage === undefined || plan === undefined || number !== "")
      throw usageFailure("--stage and --plan go together, and without a number of a rollout", example);
    await post(session, { group, verb: "approve", body: { stage, plan, answer: "rejected" } });
    session.io.out(`${group} rejected: plan ${plan} does not pass stage ${stage}\n`);
    session.note(`  next: starling rollout status ${group}${session.where()}`);
    return "done";
  }
  const rollout = rolloutNumber(session, group, number);
  requireReason(session, `starling rollout reject ${group} ${number}${session.where()} --reason "why"`);
  const { outcome } = await post(session, { group, verb: "reject", body: { rollout } });
  const rejected = `rollout ${rollout} rejected: no further cluster gets it`;
  session.io.out(
    `${group} ${outcome === "unchanged" ? `unchanged: rollout ${rollout} is rejected already` : rejected}\n`,
  );
  session.note(`  next: starling rollout status ${group}${session.where()}`);
  return "done";
}

export async function rolloutUnreject(session: Session, group: string, number: string): Promise<ExitReason> {
  const rollout = rolloutNumber(session, group, number);
  requireReason(session, `starling rollout unreject ${group} ${number}${session.where()} --reason "why"`);
  const { outcome } = await post(session, { group, verb: "unreject", body: { rollout } });
  const admitted = `rollout ${rollout} is rejected no more`;
  session.io.out(`${group} ${outcome === "unchanged" ? `unchanged: rollout ${rollout} is not rejected` : admitted}\n`);
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}

/** @throws CliFailure for a text that is not the number of a rollout. */
function rolloutNumber(session: Session, group: string, text: string): number {
  const number = Number(text);
  if (/^\d{1,8}$/.test(text) && number > 0) return number;
  const said = text === "" ? "name the rollout by its number" : `"${text}" is not the number of a rollout`;
  throw usageFailure(said, `starling rollout list ${group}${session.where()}   (shows the numbers)`);
}

/** @throws CliFailure without `--reason`. @param example - the command with a reason. */
function requireReason(session: Session, example: string): void {
  if (session.options.reason !== undefined) return;
  throw usageFailure("people who find the rollout standing still need a reason: --reason TEXT", example);
}

interface Verb {
  readonly group: string;
  readonly verb: string;
  readonly body: Readonly<Record<string, unknown>>;
}

async function post(session: Session, { group, verb, body }: Verb): Promise<VerbAnswer> {
  session.announce();
  const { reason } = session.options;
  const path = `${ownerPath(session, group)}/${verb}`;
  return session.api.call<VerbAnswer>({ method: "POST", path, body: { ...body, ...defined({ reason }) } });
}
