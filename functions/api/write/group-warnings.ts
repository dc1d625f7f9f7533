import { readOwners } from "#shared/adapters/concerned-owners.ts";
import { inParts } from "#shared/base/in-parts.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { groupsText, type SelectableGroup, selectsGroup } from "#shared/fleet/kinds/group-selection.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** The most rows of groups in memory at once. */
const groupsRead = 100;

/** A Window over groups that do not exist yet is no error. It is a warning, because it holds nothing back until then. */
export async function groupWarnings(
  table: Table,
  documents: readonly Document[],
): Promise<readonly (readonly string[])[]> {
  const selections = documents.map((document) => (document.kind === "Window" ? document.spec.groups : undefined));
  const open = new Map([...selections.entries()].filter(([_, selection]) => selection !== undefined));
  const drop = (groups: readonly SelectableGroup[]) => {
    for (const [index, selection] of open)
      if (selection !== undefined && groups.some((group) => selectsGroup(selection, group))) open.delete(index);
  };
  drop(documents.flatMap(groupIn));
  if (open.size > 0)
    for (const part of inParts(await readOwners(table), groupsRead)) {
      if (open.size === 0) break;
      const objects = part.map(({ namespace, kind, name }) => keys.object(namespace, kind, name));
      const rows = await table.getMany(objects, { newer: "kept" });
      drop(rows.filter((row) => !isNewer(row)));
    }
  return selections.map((selection, index) =>
    selection !== undefined && open.has(index)
      ? [`no group matches ${groupsText(selection)} yet: the Window holds nothing back until one does`]
      : [],
  );
}

function groupIn(document: Document): readonly SelectableGroup[] {
  if (document.kind !== "SyncGroup" && document.kind !== "Sync") return [];
  const { namespace, name, labels = {} } = document.metadata;
  return [{ namespace, name, labels }];
}
