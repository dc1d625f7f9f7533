import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { untilTime } from "#cli/session/until-time.ts";
import { defined } from "#shared/base/defined.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import type { Cordoning } from "#shared/fleet/rows/object-rows.ts";

export interface CordonOptions {
  readonly until?: string;
}

interface CordonAnswer {
  readonly outcome: "configured" | "unchanged";
  readonly cordoned?: Cordoning;
}

/** Keeps everything new from a cluster, until it is uncordoned or the time is over. */
export async function cordonByName(session: Session, name: string, options: CordonOptions): Promise<ExitReason> {
  const { reason } = session.options;
  if (reason === undefined)
    throw usageFailure("a cordon needs a reason: --reason TEXT", `starling cordon ${name} --reason "why"`);
  session.announce();
  const until = options.until === undefined ? undefined : untilTime(options.until, session.io.now());
  const { outcome, cordoned } = await post(session, { name, verb: "cordon", body: { reason, ...defined({ until }) } });
  const said = outcome === "unchanged" ? "unchanged" : "cordoned";
  const end = endText({ until: cordoned?.until });
  session.io.out(`cluster/${name} ${said}: nothing new is assigned to it${end}\n`);
  session.note(`  next: starling uncordon ${name}   (ends the cordon)`);
  return "done";
}

export async function uncordonByName(session: Session, name: string): Promise<ExitReason> {
  session.announce();
  const { reason } = session.options;
  const { outcome } = await post(session, { name, verb: "uncordon", body: defined({ reason }) });
  const said = outcome === "unchanged" ? "unchanged: it is not cordoned" : "uncordoned: it gets what it waited for";
  session.io.out(`cluster/${name} ${said}\n`);
  return "done";
}

function post(
  session: Session,
  { name, verb, body }: { readonly name: string; readonly verb: "cordon" | "uncordon"; readonly body: object },
): Promise<CordonAnswer> {
  const path = `${pathOfObject({ kind: "Cluster", name }, "")}/${verb}`;
  return session.api.call<CordonAnswer>({ method: "POST", path, body });
}
