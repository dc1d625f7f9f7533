/** The objects of a Sync, for `describe` and `tree`. */
import { formatTable, type TextTable } from "#cli/format/table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { formatAge } from "#shared/words/age.ts";
import { reasonText } from "#shared/words/object-state.ts";

/** One line for each object, in the API's order: the worst first. @param more - a last line, if there are more objects. */
export function objectsText(
  objects: readonly SyncObjectItem[],
  { now, more, columns }: { readonly now: Date; readonly more?: string; readonly columns?: number | undefined },
): string {
  if (objects.length === 0) return "";
  const rest = more === undefined ? "" : `  ${plainLine(more)}\n`;
  return `${formatTable(objectsTable(objects, now), { headers: "show", indent: "  ", columns })}${rest}`;
}

function objectsTable(objects: readonly SyncObjectItem[], now: Date): TextTable {
  const rows = objects.map((object) => [object.object, object.health, ageOf(object, now), objectRemark(object)]);
  return { columns: ["OBJECT", "HEALTH", "AGE", ""], rows };
}

/** The age of an object; `?` if the record has none. */
function ageOf({ createdAt, uid }: SyncObjectItem, now: Date): string {
  return uid !== undefined && createdAt === undefined ? "?" : formatAge(createdAt, now);
}

export function objectRemark({ reason, message, corrected, hook }: SyncObjectItem): string {
  const why = reason === undefined ? "" : reasonText(reason, message ?? "");
  const undone =
    corrected === undefined
      ? ""
      : `drift corrected ${times(corrected.times)}: ${corrected.fields}, changed by ${corrected.by}`;
  return [hook === true ? "hook" : "", why, undone].filter((text) => text !== "").join("; ");
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
