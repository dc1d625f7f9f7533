import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import type { TextTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { OwnerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { formatAge } from "#shared/words/age.ts";
import { ownerState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

export interface VersionsOptions {
  readonly group?: string;
  readonly limit: number;
  readonly cluster?: string;
  readonly selector?: string;
  readonly state?: string;
  readonly continue?: string;
  readonly watch?: boolean;
}

/** Flags of other lists. They have no effect here, so they are refused. */
const others = ["cluster", "selector", "state", "continue", "watch"] as const;

type Listed = OwnerInFleet | UnreadableObject<"SyncGroup" | "Sync">;

/** Lists the versions that run, by the stages that each rollout has passed, and the clusters that are behind. */
export async function getVersions(session: Session, options: VersionsOptions): Promise<ExitReason> {
  const { group, limit } = options;
  const idle = others.find((flag) => options[flag] !== undefined);
  if (idle !== undefined)
    throw usageFailure(`--${idle} does not go with versions`, "starling get versions --group NAME");
  const namespace = session.scope();
  const desired = group === undefined ? limit : Number.MAX_SAFE_INTEGER;
  const list = await readList<Listed>(session, { path: "/v1/fleet", query: { namespace }, limit: desired });
  const items = list.items.filter(({ metadata }) => group === undefined || metadata.name === group);
  if (items.length === 0 && group !== undefined) {
    throw usageFailure(`there is no SyncGroup or Sync ${group}`, `starling get versions${session.where()}`);
  }
  const { output, allNamespaces } = session.options;
  if (isData(output)) session.io.out(serialise({ ...list, items }, output));
  else if (output === "name")
    for (const { kind, metadata } of items) session.io.out(`${kind.toLowerCase()}/${metadata.name}\n`);
  else if (items.length === 0) session.note("there is no rollout yet");
  else {
    printTable(session, versionsTable(items, session.io.now(), allNamespaces === true ? "all" : "one"));
    session.note(behindText(items));
  }
  if (list.metadata.continue !== undefined && group === undefined)
    session.note(`the list is longer; --limit ${limit * 2} shows more`);
  return "done";
}

/** One line for each version that clusters have. The lines of a group count all clusters that it selects. */
function versionsTable(items: readonly Listed[], now: Date, namespaces: "all" | "one"): TextTable {
  const rows = items.flatMap((item) => {
    const { word, remark } = ownerState(item);
    const place = [...(namespaces === "all" ? [item.metadata.namespace ?? ""] : []), item.metadata.name];
    if (isUnreadable(item)) return [[...place, "-", "-", "-", "-", "-", word, remark]];
    const [newest] = item.versions;
    const lines = item.versions.map(({ number, revision, at, clusters, stages }) => {
      const behind = number !== newest?.number && clusters > 0;
      const age = formatAge(at, now);
      return [
        ...place,
        String(number),
        revisionText(revision),
        age,
        String(clusters),
        stages.join(",") || "-",
        behind ? "Behind" : word,
        "",
      ];
    });
    if (item.bare > 0 || lines.length === 0) {
      lines.push([
        ...place,
        "-",
        "-",
        "-",
        String(item.bare),
        "-",
        word,
        item.bare > 0 ? "no rollout has reached these clusters yet" : remark,
      ]);
    }
    return lines;
  });
  const columns = ["NAME", "ROLLOUT", "REVISION", "AGE", "CLUSTERS", "STAGES", "STATE", ""];
  return { columns: [...(namespaces === "all" ? ["NAMESPACE"] : []), ...columns], rows };
}

function behindText(items: readonly Listed[]): string {
  let behind = 0;
  let total = 0;
  for (const item of items) {
    if (isUnreadable(item)) continue;
    const [newest] = item.versions;
    for (const { number, clusters } of item.versions) {
      total += clusters;
      if (number !== newest?.number) behind += clusters;
    }
    total += item.bare;
    behind += item.bare;
  }
  return `${behind} of ${total} clusters are behind the newest version`;
}
