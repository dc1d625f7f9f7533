import { keyText, type RowKey } from "#shared/fleet/rows/row.ts";
import type { Table, Write } from "#shared/ports.ts";

/** Rows that several write. The others, of directories, go with one of these in every transaction. */
export const sharedRows: ReadonlySet<string> = new Set([
  ...["Source", "SyncGroup", "Sync", "Cluster", "SyncOnCluster"],
  ...["RolloutState", "Rollout", "StageRun", "Slot", "Target", "CatchUp", "Rendering", "Freezes", "Lease"],
]);

/** The rows of the planner's decisions, which depend on the version of the owner that it read. */
const decisions: ReadonlySet<string> = new Set(["SyncOnCluster", "RolloutState", "StageRun"]);

/**
 * The table as one writer sees it, who is refused whatever could undo another's write: a row that is there is put, and
 * deleted, only under the version that was read, and gets the next one; and what is checked is checked for something.
 * @param stored - the rows as they are.
 */
export function versionedTable(table: Table, stored: Pick<Table, "getMany">): Table {
  return withChecked(table, async (writes) => {
    for (const write of writes) checkCondition(write);
    const blind = writes.flatMap(replacedBlindly);
    const rows = blind.length === 0 ? [] : await stored.getMany(blind, { newer: "kept" });
    const lost = rows.filter((row) => sharedRows.has(row.type)).map((row) => `${row.type} ${keyText(row)}`);
    if (lost.length > 0) throw new Error(`written over, whatever the version is: ${lost.join(", ")}`);
  });
}

/** The same of a planner, who also says in every transaction as of which version of the subject it has decided. */
export function decidedTable(table: Table, stored: Pick<Table, "getMany">, owner: RowKey): Table {
  return withChecked(versionedTable(table, stored), async (writes) => {
    if (!writes.some((write) => "put" in write && decisions.has(write.put.type))) return;
    if (writes.some((write) => isVersionOf(write, owner))) return;
    throw new Error(`what is decided for ${keyText(owner)} may be for one that has changed since`);
  });
}

function withChecked(table: Table, check: (writes: readonly Write[]) => Promise<void>): Table {
  return {
    get: (key) => table.get(key),
    getMany: (keys, reading) => table.getMany(keys, reading),
    query: (query) => table.query(query),
    queryIndex: (query) => table.queryIndex(query),
    update: (write) => table.update(write),
    async write(writes) {
      await check(writes);
      return table.write(writes);
    },
  };
}

function checkCondition(write: Write): void {
  if ("check" in write && (write.when === undefined || (Array.isArray(write.when) && write.when.length === 0))) {
    throw new Error(`nothing is checked of ${keyText(write.check)}`);
  }
  if (!("put" in write) || write.when === undefined || write.when === "absent") return;
  if (write.put.version === write.when.version + 1) return;
  throw new Error(`${write.put.type} ${keyText(write.put)} goes from ${write.when.version} to ${write.put.version}`);
}

/** The keys of rows that a write replaces without a condition on their version. */
function replacedBlindly(write: Write): readonly RowKey[] {
  if ("check" in write || "update" in write || write.when !== undefined) return [];
  return replacedBy(write);
}

function replacedBy(write: Write): readonly RowKey[] {
  if ("put" in write) return [{ pk: write.put.pk, sk: write.put.sk }];
  return "delete" in write ? [write.delete] : [];
}

function isVersionOf(write: Write, { pk, sk }: RowKey): boolean {
  const [key] = "check" in write ? [write.check] : replacedBy(write);
  if (key === undefined || key.pk !== pk || key.sk !== sk) return false;
  return typeof write.when === "object" && "version" in write.when;
}
