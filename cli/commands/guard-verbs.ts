/** `starling guard`: the changes that guards of groups withhold, and their approval. */

import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { listPath, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { SyncGroupObject } from "#shared/fleet/api/objects.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { withheldText } from "#shared/fleet/rollout/guard.ts";
import type { WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { formatAge } from "#shared/words/age.ts";

interface WithheldOf extends WithheldChange {
  readonly namespace: string;
  readonly group: string;
}

/** Lists what the guard of one group withholds, or of every group of the namespace, or of all with -A. */
export async function guardList(session: Session, group: string | undefined): Promise<ExitReason> {
  const paths =
    group === undefined
      ? await guardedGroups(session)
      : [pathOfObject({ kind: "SyncGroup", name: group }, session.namespace())];
  const items: WithheldOf[] = [];
  for (const path of paths) {
    const { metadata, status } = await session.api.call<RolloutOverview>({ method: "GET", path: `${path}/rollout` });
    const { namespace, name: group } = metadata;
    items.push(...(status.withheld ?? []).map((one) => ({ namespace, group, ...one })));
  }
  if (isData(session.options.output)) {
    session.io.out(serialise({ kind: "WithheldList", metadata: {}, items }, session.options.output));
    return "done";
  }
  if (items.length === 0) {
    const namespace = group === undefined ? session.scope() : undefined;
    session.note(
      namespace === undefined
        ? "no guard withholds anything"
        : `no guard withholds anything in namespace ${namespace}; add -A for all namespaces`,
    );
    return "done";
  }
  const now = session.io.now();
  const rows = items.map((one) => [one.namespace, one.group, one.hash, formatAge(one.since, now), withheldText(one)]);
  const columns = ["NAMESPACE", "GROUP", "HASH", "SINCE", "WITHHELD"];
  printTable(session, { columns, rows }, { ...tableStyle(session), last: "whole" });
  session.note(`  next: starling guard approve GROUP -n NAMESPACE --hash HASH --reason TEXT`);
  return "done";
}

async function guardedGroups(session: Session): Promise<readonly string[]> {
  const { items } = await readList<SyncGroupObject>(session, {
    path: listPath("SyncGroup", session.scope()),
    limit: Number.MAX_SAFE_INTEGER,
  });
  // A prune that a check met is known only to its cluster, which has failed.
  const asking = items.filter(({ status }) => status.withheld !== undefined || (status.clusters?.failed ?? 0) > 0);
  return asking.map(({ metadata: { name, namespace } }) =>
    pathOfObject({ kind: "SyncGroup", name }, namespace ?? session.namespace()),
  );
}

export interface ApproveOptions {
  readonly hash: string;
}

export async function guardApprove(session: Session, group: string, { hash }: ApproveOptions): Promise<ExitReason> {
  const { reason } = session.options;
  if (reason === undefined)
    throw usageFailure(
      "an approval is recorded with its reason: --reason TEXT",
      `starling guard approve ${group}${session.where()} --hash ${hash} --reason "why"`,
    );
  session.announce();
  const path = `${pathOfObject({ kind: "SyncGroup", name: group }, session.namespace())}/approve-guard`;
  const { approved } = await session.api.call<{ readonly approved: WithheldChange }>({
    method: "POST",
    path,
    body: { hash, reason },
  });
  session.io.out(`${group}: approved: ${withheldText(approved)}\n`);
  session.note(`  next: starling rollout status ${group}${session.where()} -w`);
  return "done";
}
