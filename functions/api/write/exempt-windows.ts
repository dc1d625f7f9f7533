/** The exemption of a group from windows. */
import { refusal } from "#functions/api/request/refusal.ts";
import { requireLater } from "#functions/api/write/require-later.ts";
import type { Facts } from "#functions/api/write/rollout-verb.ts";
import { defined } from "#shared/base/defined.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { windowsFor } from "#shared/fleet/rows/windows-row.ts";

/** Another exemption replaces the one in force. @throws StarlingError `BadRequest` */
export function decideExempt({ row, rows, body, act, now, object }: Facts<"exempt">): Operations {
  const { until, windows } = body;
  requireLater(until, now);
  const known = windowsFor(row, rows).map(({ name }) => name);
  const unknown = windows?.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const names = known.length === 0 ? "none is" : `there are ${known.join(", ")}`;
    throw refusal("BadRequest", `windows: no Window ${unknown} is over ${object}; ${names}`);
  }
  return { ...row.operations, exempt: { ...act, until, ...defined({ windows }) } };
}

export function decideUnexempt({ row, act }: Facts<"unexempt">): Operations | undefined {
  const { exempt, ...operations } = row.operations;
  return exempt === undefined ? undefined : { ...operations, unexempted: act };
}
