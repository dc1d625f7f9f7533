import { allItems } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import type { SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";

/** Rows of subjects in memory at once; each may be 400 KB. */
const subjectsRead = 200;

/** One message for each planned subject, from the directory. */
export async function everySubject(table: Table): Promise<readonly Message[]> {
  return (await readSubjects(table)).map((subject) => ({ to: "rollout", subject, clusters: [] }));
}

async function readSubjects(table: Table): Promise<readonly Subject[]> {
  const range = ranges.subjects();
  const entries = allItems((start) => table.query({ ...range, newer: "kept", ...start }));
  return (await Array.fromAsync(entries)).flatMap((entry) => keys.subject.parse(entry) ?? []);
}

/**
 * One message to every subject that takes one of these clusters, as they were and as they are. A deletion is about every
 * cluster that has something, and what cannot be read may take any.
 */
export async function subjectsTaking(
  clusters: readonly SelectableCluster[],
  table: Table,
): Promise<readonly Message[]> {
  const messages: Message[] = [];
  for (const part of inParts(await readSubjects(table), subjectsRead)) {
    const found = await table.getMany(part.map(rowOf), { newer: "kept" });
    const rows = new Map(found.map((row) => [keyText(row), row]));
    for (const subject of part) {
      const row = rows.get(keyText(rowOf(subject)));
      if (row === undefined || (!isNewer(row) && !concerns(row, clusters))) continue;
      messages.push({ to: "rollout", subject, clusters: [] });
    }
  }
  return messages;
}

function rowOf({ namespace, kind, name }: Subject): RowKeyOf<Subject["kind"]> {
  return keys.object(namespace, kind, name);
}

function concerns(row: SubjectRow, clusters: readonly SelectableCluster[]): boolean {
  const selection = row.type === "Sync" ? { names: [row.spec.cluster] } : row.spec.clusters;
  return row.operations.deletion !== undefined || clusters.some((cluster) => selects(selection, cluster));
}
