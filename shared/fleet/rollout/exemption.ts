/** A group's exemption from windows: until its end, they do not close for the group. Pure. */

import type { Exemption, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { NamedWindow } from "#shared/fleet/rows/windows-row.ts";

/** @returns the exemption, while it is in force. */
export function exemptionInForce(
  { operations: { exempt } }: Pick<OwnerRow, "operations">,
  now: Date,
): Exemption | undefined {
  return exempt !== undefined && exempt.until > now.toISOString() ? exempt : undefined;
}

/** The windows that an exemption leaves in force. */
export function windowsLeft(windows: readonly NamedWindow[], exemption: Exemption | undefined): readonly NamedWindow[] {
  if (exemption === undefined) return windows;
  const { windows: names } = exemption;
  return names === undefined ? [] : windows.filter(({ name }) => !names.includes(name));
}
