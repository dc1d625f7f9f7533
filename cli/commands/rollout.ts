import { getTable } from "#cli/format/get-table.ts";
import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import { listPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { ownerPath, requireObject } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import type { AnyObject, RolloutObject } from "#shared/fleet/api/objects.ts";

export interface RolloutListOptions {
  readonly limit: number;
}

export async function rolloutList(
  session: Session,
  group: string | undefined,
  options: RolloutListOptions,
): Promise<ExitReason> {
  const owner = group === undefined ? undefined : ownerPath(session, group);
  const path = owner === undefined ? listPath("Rollout", session.scope()) : `${owner}/rollouts`;
  const list = await readList<RolloutObject>(session, { path, limit: options.limit });
  if (owner !== undefined && list.items.length === 0) await requireObject(session, owner);
  const { output, allNamespaces } = session.options;
  if (isData(output)) {
    session.io.out(serialise(list, output));
    return "done";
  }
  if (output === "name") {
    for (const rollout of list.items) session.io.out(`rollout/${rollout.metadata.name}\n`);
    return "done";
  }
  if (list.items.length === 0) {
    const next = `starling get sources${session.where()}   (a rollout starts when a Source has a revision)`;
    session.note(`there is no rollout yet\n  next: ${next}`);
    return "done";
  }
  const table = getTable("Rollout", list.items as readonly AnyObject[], {
    now: session.io.now(),
    width: output === "wide" ? "wide" : "normal",
    namespaces: allNamespaces === true ? "all" : "one",
  });
  printTable(session, table);
  if (list.metadata.continue !== undefined) session.note(`the list is longer; --limit ${options.limit * 2} shows more`);
  return "done";
}

/** The rollouts in progress take a new snapshot of members, inputs and terms; stages that have passed keep theirs. */
export async function rolloutRefresh(session: Session, group: string): Promise<ExitReason> {
  session.announce();
  const owner = ownerPath(session, group);
  const { reason } = session.options;
  await session.api.call({ method: "POST", path: `${owner}/refresh`, body: defined({ reason }) });
  session.io.out(`${group}: the rollouts in progress take a new snapshot\n`);
  if (reason === undefined) session.note("no reason is recorded; --reason TEXT records one");
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}
