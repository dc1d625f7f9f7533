/** The end of a suspension. Pure. */

import { endText } from "#shared/fleet/rows/act-text.ts";
import {
  nextAct,
  type OwnerRow,
  type ReceiverRow,
  type SourceRow,
  type Suspension,
} from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/** The seconds of all suspensions, with this one. */
export function stoodAfter({ at: since, stood = 0 }: Suspension, at: Date): Pick<Suspension, "stood"> {
  const seconds = stood + Math.max(0, at.getTime() - Date.parse(since)) / 1000;
  return seconds === 0 ? {} : { stood: seconds };
}

/**
 * The row as it is at a time: a suspension that has ended by itself is a resume at its end. Functions read owners and
 * Sources this way before they act on them or show them, and every other check knows only suspended and resumed rows. A
 * row that is written afterwards has the resume.
 */
export function rowAt<Any extends Row>(row: Any, now: Date): Any {
  if (!isSuspendable(row)) return row;
  const { suspended, ...operations } = row.operations;
  if (suspended?.until === undefined || suspended.until > now.toISOString()) return row;
  const { by, until } = suspended;
  // The planner wakes what stood still when it sees a newer act.
  const resumed = { by, at: until, number: nextAct(row.operations), ...stoodAfter(suspended, new Date(until)) };
  return { ...row, operations: { ...operations, resumed } };
}

/** The later end of two; undefined when one of them has none. */
export function laterEnd(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return undefined;
  return one > other ? one : other;
}

function isSuspendable(row: Row): row is OwnerRow | ReceiverRow | SourceRow {
  return ["SyncGroup", "Sync", "Source", "Receiver"].includes(row.type);
}

export function suspendedText(suspended: Suspension): string {
  return `suspended by ${suspended.by}${endText(suspended)}`;
}
