import { foldLines } from "#cli/format/fold-lines.ts";
import { formatHistory, revisionsTable } from "#cli/format/history-text.ts";
import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { isData } from "#cli/output/output.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { type NamedObject, parseOneOrGroup, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { requireObject } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import type { HistoryItem, RevisionItem } from "#shared/fleet/api/history-item.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";

export interface HistoryOptions {
  readonly cluster?: string;
  readonly limit: number;
}

/** Lists the rollouts of a SyncGroup or Sync, with commits and authors, or the revisions of a Source. */
export async function history(session: Session, args: readonly string[], options: HistoryOptions): Promise<ExitReason> {
  const object = parseOneOrGroup(args, "history");
  const path = pathOfObject(object, session.namespace());
  if (object.kind === "Source") return sourceHistory(session, path, options);
  if (object.kind !== "SyncGroup" && object.kind !== "Sync") {
    throw usageFailure(`a ${object.kind} has no history`, "starling history GROUP   (or sync/NAME, source/NAME)");
  }
  const query = { cluster: options.cluster };
  const list = await readList<HistoryItem | UnreadableObject<"Rollout">>(session, {
    path: `${path}/history`,
    query,
    limit: options.limit,
  });
  if (list.items.length === 0) await requireObject(session, path);
  else requireTemplate(session, object, list.items);
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise(list, output));
    return "done";
  }
  if (list.items.length === 0) {
    session.note(`${object.name} has no rollout yet\n  next: starling get sources${session.where()}`);
    return "done";
  }
  const about = { name: object.name, now: session.io.now(), links: output === "wide" ? "shown" : "hidden" } as const;
  session.io.out(foldLines(formatHistory(list.items, about), tableStyle(session).columns));
  if (list.metadata.continue !== undefined)
    session.note(`there are older ones; --limit ${options.limit * 2} shows more`);
  else if (output !== "wide" && list.items.some(hasLinks)) session.note("-o wide prints the links to the commits");
  return "done";
}

function hasLinks(item: HistoryItem | UnreadableObject<"Rollout">): boolean {
  if (!("templates" in item)) return false;
  return item.templates.some(({ commit, compare }) => (commit?.link ?? compare) !== undefined);
}

/** For `GROUP.TEMPLATE` the API answers with all rollouts of the group. @throws CliFailure when none has the template. */
function requireTemplate(
  session: Session,
  { name }: NamedObject,
  items: readonly (HistoryItem | UnreadableObject<"Rollout">)[],
): void {
  if (items.some((item) => !("templates" in item) || item.templates.length > 0)) return;
  const [group = "", ...template] = name.split(".");
  throw new CliFailure(
    `none of the newest ${items.length} rollouts of SyncGroup ${group} has a template ${template.join(".")}`,
    { exit: "no", next: `starling describe syncgroup/${group}${session.where()}   (shows its templates)` },
  );
}

async function sourceHistory(session: Session, path: string, { limit }: HistoryOptions): Promise<ExitReason> {
  const list = await readList<RevisionItem>(session, { path: `${path}/revisions`, limit });
  if (list.items.length === 0) await session.api.call({ method: "GET", path });
  const { output } = session.options;
  if (isData(output)) session.io.out(serialise(list, output));
  else if (list.items.length === 0) session.note("the Source had no revision in the last 30 days");
  else printTable(session, revisionsTable(list.items, session.io.now(), output));
  return "done";
}
