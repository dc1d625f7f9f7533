/** The verbs below `starling rollout` that change what stages start. */
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { ownerPath } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { untilTime } from "#cli/session/until-time.ts";
import { defined } from "#shared/base/defined.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";

interface VerbAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly operations: Operations;
}

export interface HoldOptions {
  readonly until?: string;
}

export async function rolloutHold(session: Session, group: string, { until }: HoldOptions): Promise<ExitReason> {
  requireReason(session, `starling rollout hold ${group} --reason "why"`);
  const end = until === undefined ? undefined : untilTime(until, session.io.now());
  await post(session, { group, verb: "hold", body: defined({ until: end }) });
  const lasts = end === undefined ? "until a release" : `until ${end}, or a release`;
  session.io.out(`${group} held: no stage starts a newer rollout ${lasts}\n`);
  session.note(`  next: starling rollout release ${group}${session.where()}   (ends the hold)`);
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
