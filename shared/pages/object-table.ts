import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  type Host,
  type Html,
  nothing,
  table,
} from "#shared/pages/view.ts";
import { reasonText } from "#shared/words/object-state.ts";

/** @param more - what stands before the others, of each object. */
export function objectTable(
  objects: readonly SyncObjectItem[],
  host: Host,
  more?: { readonly column: string; readonly cellOf: (at: number) => Child },
): Html {
  if (objects.length === 0) return nothing("None is recorded.");
  const rows = objects.map((item, at): Child[] => {
    const { object, health, reason = "", message = "", createdAt, seenAt, hook, corrected } = item;
    const undone =
      corrected === undefined ? "" : `put back ${corrected.times} times: ${corrected.fields}, by ${corrected.by}`;
    const why = [reasonText(reason, message), undone, hook === true ? "a hook" : ""].filter((each) => each !== "");
    return [
      badge(health),
      ...(more === undefined ? [] : [more.cellOf(at)]),
      object,
      age(createdAt, host),
      age(seenAt, host),
      brief(why.join("; "), 240),
    ];
  });
  const columns: readonly Column[] = [
    "Health",
    ...(more === undefined ? [] : [more.column]),
    ["Object", "text"],
    "Age",
    "Seen",
    ["Remark", "text"],
  ];
  return table("Objects, the worst first", columns, rows);
}
