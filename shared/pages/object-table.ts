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

/** @param more - an additional column before the others. */
export function objectTable(
  objects: readonly SyncObjectItem[],
  host: Host,
  more?: { readonly column: string; readonly cellOf: (at: number) => Child },
): Html {
  if (objects.length === 0) return nothing("No objects are recorded.");
  const rows = objects.map((item, at): Child[] => {
    const { object, health, reason = "", message = "", createdAt, seenAt, hook, corrected } = item;
    const undone =
      corrected === undefined ? "" : `${corrected.by} changed ${corrected.fields}; corrected ${corrected.times} times`;
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
