import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { refusal } from "#functions/api/refusal.ts";
import { groupSyncObject, type SyncObject, userSyncObject } from "#shared/domain/api/objects.ts";
import { keys, type Subject, statePartition } from "#shared/domain/rows/keys.ts";
import type { SubjectRow, UserSyncRow } from "#shared/domain/rows/object-rows.ts";
import { keyText, type RowKey } from "#shared/domain/rows/row.ts";
import type { SyncRow } from "#shared/domain/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** Subjects looked at for one answer; more is the next page's work. */
const SUBJECTS_PER_ANSWER = 50;

export interface SyncFilter {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  /** Only Syncs of this subject. */
  readonly subject?: Subject;
  /** One word, as in `status.state`. */
  readonly state?: string;
  readonly page: PageRequest;
}

/** Syncs on clusters, subject by subject, by state within one. The state index may be a moment behind. */
export async function listSyncs(table: Table, filter: SyncFilter): Promise<ListPage<SyncObject>> {
  const items: SyncObject[] = [];
  let cursor = filter.page.after === undefined ? undefined : decodeCursor(filter.page.after);
  for (let looked = 0; looked < SUBJECTS_PER_ANSWER; looked++) {
    const subject = await subjectFrom(table, { filter, from: cursor?.subject });
    if (subject === undefined) return { items };
    const limit = filter.page.limit - items.length;
    const after = cursor?.after;
    const part = await syncsOf(table, {
      subject,
      limit,
      ...(after === undefined ? {} : { after }),
      ...stateOf(filter),
    });
    items.push(...part.items);
    if (part.next !== undefined) {
      cursor = { subject: keys.subject(subject).sk, after: part.next };
    } else {
      if (filter.subject !== undefined) return { items };
      cursor = { subject: `${keys.subject(subject).sk}\u0000` };
    }
    if (items.length >= filter.page.limit) break;
  }
  return cursor === undefined ? { items } : { items, next: encodeCursor(cursor) };
}

/** Everything assigned to one cluster, consistently; only of one namespace when given. */
export async function listSyncsOnCluster(
  table: Table,
  filter: Omit<SyncFilter, "subject"> & { readonly cluster: string },
): Promise<ListPage<SyncObject>> {
  const { pk } = keys.cluster(filter.cluster);
  const prefix = filter.namespace === undefined ? "SYNC#" : `SYNC#${filter.namespace}#`;
  const { limit, after } = filter.page;
  const page = await table.query({ pk, prefix, limit, ...(after === undefined ? {} : { after }) });
  const rows = page.items as readonly SyncRow[];
  const objects = await withSubjects(table, rows);
  const items = objects.filter((object) => filter.state === undefined || object.status.state === filter.state);
  return page.next === undefined ? { items } : { items, next: page.next };
}

/**
 * One Sync: a user's by its name, a group's (`group.template`) by its name and cluster.
 * @throws StarlingError `NotFound`, or `BadRequest` when a group's Sync is asked for without a cluster.
 */
export async function getSync(
  table: Table,
  reference: { readonly namespace: string; readonly name: string; readonly cluster?: string },
): Promise<SyncObject> {
  const { namespace, name, cluster } = reference;
  if (!name.includes(".")) {
    const row = await table.get<UserSyncRow>(keys.object(namespace, "Sync", name));
    if (row === undefined) throw refusal("NotFound", `Sync ${namespace}/${name} does not exist`);
    const onCluster = await table.get<SyncRow>(keys.sync(row.spec.cluster, namespace, name));
    return userSyncObject(row, onCluster);
  }
  if (cluster === undefined) {
    throw refusal("BadRequest", `Sync ${namespace}/${name} belongs to a group and is on many clusters; say which one`);
  }
  const row = await table.get<SyncRow>(keys.sync(cluster, namespace, name));
  if (row === undefined) throw refusal("NotFound", `Sync ${namespace}/${name} is not on cluster ${cluster}`);
  return groupSyncObject(row, await table.get<SubjectRow>(subjectObjectKey(row.subject)));
}

/** The first subject at or after `from` in the directory's order. */
async function subjectFrom(
  table: Table,
  { filter, from }: { readonly filter: SyncFilter; readonly from: string | undefined },
): Promise<Subject | undefined> {
  if (filter.subject !== undefined) return filter.subject;
  const first = filter.namespace === undefined ? "" : `${filter.namespace}#`;
  const last = filter.namespace === undefined ? "\uffff" : `${filter.namespace}#\uffff`;
  const start = from ?? (first === "" ? " " : first);
  const page = await table.query({ pk: "SUBJECTS", between: [start, last], limit: 1 });
  const entry = page.items[0];
  if (entry === undefined) return undefined;
  const [namespace = "", kind, name = ""] = entry.sk.split("#");
  return { namespace, kind: kind === "Sync" ? "Sync" : "SyncGroup", name };
}

async function syncsOf(
  table: Table,
  query: { readonly subject: Subject; readonly limit: number; readonly after?: string; readonly state?: string },
): Promise<ListPage<SyncObject>> {
  const { subject, state } = query;
  if (subject.kind === "Sync") {
    const row = await table.get<UserSyncRow>(keys.object(subject.namespace, "Sync", subject.name));
    if (row === undefined) return { items: [] };
    const onCluster = await table.get<SyncRow>(keys.sync(row.spec.cluster, subject.namespace, subject.name));
    const object = userSyncObject(row, onCluster);
    return { items: state === undefined || object.status.state === state ? [object] : [] };
  }
  const group = await table.get<SubjectRow>(subjectObjectKey(subject));
  const page = await table.queryIndex({
    index: "state",
    pk: statePartition(subject),
    limit: query.limit,
    ...(state === undefined ? {} : { prefix: `${state}#` }),
    ...(query.after === undefined ? {} : { after: query.after }),
  });
  const rows = await rowsInOrder(
    table,
    page.items.map((entry) => entry.key),
  );
  const items = rows.map((row) => groupSyncObject(row, group));
  return page.next === undefined ? { items } : { items, next: page.next };
}

async function withSubjects(table: Table, rows: readonly SyncRow[]): Promise<readonly SyncObject[]> {
  const subjects = new Map(
    (await table.getMany(rows.map((row) => subjectObjectKey(row.subject)))).map((row) => [
      keyText(row),
      row as SubjectRow,
    ]),
  );
  return rows.map((row) => {
    const subject = subjects.get(keyText(subjectObjectKey(row.subject)));
    return subject?.type === "Sync" ? userSyncObject(subject, row) : groupSyncObject(row, subject);
  });
}

async function rowsInOrder(table: Table, rowKeys: readonly RowKey[]): Promise<readonly SyncRow[]> {
  const rows = new Map((await table.getMany(rowKeys)).map((row) => [keyText(row), row as SyncRow]));
  return rowKeys.flatMap((key) => rows.get(keyText(key)) ?? []);
}

function subjectObjectKey(subject: Subject): RowKey {
  return keys.object(subject.namespace, subject.kind, subject.name);
}

function stateOf(filter: SyncFilter): { state?: string } {
  return filter.state === undefined ? {} : { state: filter.state };
}
