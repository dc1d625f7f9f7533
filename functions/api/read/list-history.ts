import { listRollouts } from "#functions/api/read/read-rollouts.ts";
import {
  collect,
  encodeCursor,
  firstRows,
  type ListPage,
  type PageRequest,
} from "#functions/api/request/page-request.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import {
  commitItem,
  type HistoryItem,
  type KnownSource,
  type ListedHistory,
  type RevisionItem,
  templateHistory,
} from "#shared/fleet/api/history-item.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable } from "#shared/fleet/api/unreadable-object.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { RevisionRow } from "#shared/fleet/rows/revision-row.ts";
import type { TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Rollouts of one answer; an owner keeps few more. */
const contentsPerAnswer = 50;
/** One answer reads at most so many revisions of a Source, and of so many Sources. */
const revisionsRead = 300;
const sourcesRead = 20;

export interface HistoryQuery {
  readonly namespace: string;
  /** The name of a SyncGroup or of a Sync; `GROUP.TEMPLATE` is what the group had for the template. */
  readonly kind: "SyncGroup" | "Sync";
  readonly name: string;
  /** Includes the result of each rollout on this cluster. */
  readonly cluster?: string;
  readonly page: PageRequest;
}

/** The rollouts of an owner, the newest first, with commits, authors and links to the git host. */
export async function listHistory(table: Table, query: HistoryQuery): Promise<ListPage<ListedHistory>> {
  const { owner, template } = aboutOf(query);
  const limit = Math.min(query.page.limit, contentsPerAnswer);
  // One more rollout is read: a rollout is compared with the one before it.
  const read = await listRollouts(table, { owner, page: { ...query.page, limit: limit + 1 } });
  const shown = read.items.slice(0, limit);
  const ways = read.items.flatMap((item) => (isUnreadable(item) ? [] : [item]));
  const [known, ended] = await Promise.all([
    knownSources(table, owner, ways),
    query.cluster === undefined ? new Map() : endedOn(table, { owner, ways, cluster: query.cluster }),
  ]);
  const items = shown.map((item): ListedHistory => {
    if (isUnreadable(item)) return item;
    const before = ways[ways.indexOf(item) + 1];
    const templates = item.spec.plan.templates.filter(({ name }) => template === undefined || name === template);
    return {
      ...headOf(item),
      templates: templates.map((planned) =>
        templateHistory(planned, templateOf(before, planned.name), known.get(planned.source)),
      ),
      ...defined({ onCluster: ended.get(item.spec.number) }),
    };
  });
  return { items, ...defined({ next: nextOf(read, shown, limit) }) };
}

/** Artifacts that a Source had, the newest first; they are kept for 30 days. */
export async function listRevisions(
  table: Table,
  source: { readonly namespace: string; readonly name: string },
  page: PageRequest,
): Promise<ListPage<RevisionItem>> {
  const row = await readRow(table, keys.object(source.namespace, "Source", source.name));
  const url = row === undefined || isNewer(row) ? undefined : row.spec.git?.url;
  return collect(page, {
    read: (part) => table.query({ ...ranges.revisions(source), newestFirst: true, newer: "kept", ...part }),
    keep: (one) => (isNewer(one) ? undefined : revisionItem(one, url)),
  });
}

function revisionItem({ artifact, at }: RevisionRow, url: string | undefined): RevisionItem {
  return { ...commitItem(artifact, url), at, digest: artifact.digest, ...defined({ verified: artifact.verified }) };
}

function aboutOf({ namespace, kind, name }: HistoryQuery): { readonly owner: Owner; readonly template?: string } {
  const dot = name.indexOf(".");
  if (kind === "SyncGroup" || dot === -1) return { owner: { namespace, kind, name } };
  return { owner: { namespace, kind: "SyncGroup", name: name.slice(0, dot) }, template: name.slice(dot + 1) };
}

function headOf({ spec, status, metadata }: RolloutObject): Omit<HistoryItem, "templates"> {
  const { number, revision, trigger, fromRevision, skipped, rollback, asked } = spec;
  const count = (state: "Succeeded" | "Unchanged" | "Failed") =>
    status.stages.reduce((sum, { counts }) => sum + counts[state], 0);
  return {
    number,
    at: metadata.creationTimestamp ?? "",
    revision,
    trigger,
    phase: status.phase,
    clusters: { done: count("Succeeded") + count("Unchanged"), failed: count("Failed"), size: status.size },
    ...defined({ fromRevision, skipped, rollback, asked, endedAt: status.endedAt }),
  };
}

function templateOf(way: RolloutObject | undefined, name: string) {
  return way?.spec.plan.templates.find((template) => template.name === name);
}

function nextOf(
  read: Awaited<ReturnType<typeof listRollouts>>,
  shown: Awaited<ReturnType<typeof listRollouts>>["items"],
  limit: number,
): string | undefined {
  const last = shown.at(-1);
  if (read.items.length <= limit || last === undefined) return read.next;
  const number = isUnreadable(last) ? Number(last.metadata.name.split("-").at(-1)) : last.spec.number;
  return encodeCursor({ number: String(number - 1) });
}

async function knownSources(
  table: Table,
  { namespace }: Owner,
  ways: readonly RolloutObject[],
): Promise<ReadonlyMap<string, KnownSource>> {
  const named = ways.flatMap(({ spec }) => spec.plan.templates.map(({ source }) => source));
  const names = [...new Set(named)].slice(0, sourcesRead);
  const rows = await table.getMany(
    names.map((name) => keys.object(namespace, "Source", name)),
    { newer: "kept" },
  );
  const known = await Promise.all(
    names.map(async (name): Promise<readonly [string, KnownSource]> => {
      const row = rows.find((one) => keyText(one) === keyText(keys.object(namespace, "Source", name)));
      const source = row === undefined || isNewer(row) ? undefined : row;
      const url = source?.spec.git?.url;
      const query = { ...ranges.revisions({ namespace, name }), newestFirst: true, newer: "kept" } as const;
      const found = (await firstRows(table, { ...query, limit: revisionsRead })).filter((one) => !isNewer(one));
      const revisions = found.map((one) => revisionItem(one, url));
      // The present artifact is known for longer than its row is kept.
      const now = source?.status.artifact;
      const isListed = now === undefined || revisions.some(({ revision }) => revision === now.revision);
      const missing = isListed ? [] : [{ ...commitItem(now, url), at: now.storedAt, digest: now.digest }];
      return [name, { revisions: [...missing, ...revisions], ...defined({ url }) }];
    }),
  );
  return new Map(known);
}

/** For each rollout, the row of the last stage that has one for the cluster. */
async function endedOn(
  table: Table,
  about: { readonly owner: Owner; readonly ways: readonly RolloutObject[]; readonly cluster: string },
): Promise<ReadonlyMap<number, NonNullable<HistoryItem["onCluster"]>>> {
  const { owner, ways, cluster } = about;
  const desired = ways.flatMap(({ spec: { number }, status }) =>
    status.stages.flatMap(({ name: stage, snapshot }) =>
      snapshot === undefined ? [] : [keys.target(owner, { rollout: number, stage, snapshot }, cluster)],
    ),
  );
  const found = await table.getMany(desired, { newer: "kept" });
  const rows = found.filter((row): row is TargetRow => !isNewer(row));
  return new Map(
    rows.map(({ stageRun, state, reason, endedAt }) => [
      stageRun.rollout,
      { stage: stageRun.stage, state, reason, endedAt },
    ]),
  );
}
