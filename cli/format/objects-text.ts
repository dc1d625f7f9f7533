/** What a Sync holds, as `describe` and `tree` show it. */
import { formatTable, type TextTable } from "#cli/format/table.ts";
import { plainText } from "#shared/base/plain-text.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { formatAge } from "#shared/words/age.ts";
import { reasonText } from "#shared/words/object-state.ts";

/** One line an object, as they come: the worst first. @param left - how many more there are, where that is known. */
export function objectsText(
  objects: readonly SyncObjectItem[],
  { now, more, columns }: { readonly now: Date; readonly more?: string; readonly columns?: number | undefined },
): string {
  if (objects.length === 0) return "";
  const rest = more === undefined ? "" : `  ${plainText(more)}\n`;
  return `${formatTable(objectsTable(objects, now), { headers: "show", indent: "  ", columns })}${rest}`;
}

function objectsTable(objects: readonly SyncObjectItem[], now: Date): TextTable {
  const rows = objects.map((object) => [object.object, object.health, ageOf(object, now), objectRemark(object)]);
  return { columns: ["OBJECT", "HEALTH", "AGE", ""], rows };
}

/** Of what was recorded before ages were noted nobody knows. */
function ageOf({ createdAt, uid }: SyncObjectItem, now: Date): string {
  return uid !== undefined && createdAt === undefined ? "?" : formatAge(createdAt, now);
}

export function objectRemark({ reason, message, corrected, hook }: SyncObjectItem): string {
  const why = reason === undefined ? "" : reasonText(reason, message ?? "");
  const undone =
    corrected === undefined ? "" : `put back ${times(corrected.times)}: ${corrected.fields}, by ${corrected.by}`;
  return [hook === true ? "hook" : "", why, undone].filter((text) => text !== "").join("; ");
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
