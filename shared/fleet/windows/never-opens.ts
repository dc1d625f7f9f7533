import { type Calendar, nextOpening } from "#shared/fleet/windows/calendar.ts";

/** The reason why a Window never opens from now on, and what to do; undefined when it opens. */
export function neverOpensText({ allow, deny }: Calendar, now: Date): string | undefined {
  if (nextOpening({ allow, deny }, now) !== undefined) return undefined;
  return `${reason({ allow }, now)}: the Window never opens, and nothing that it selects changes; allow a later time, or delete it`;
}

function reason({ allow }: Pick<Calendar, "allow">, now: Date): string {
  if (allow.length === 0) return "spec.deny denies every time from now on";
  if (nextOpening({ allow, deny: [] }, now) !== undefined) return "spec.deny denies every time that spec.allow allows";
  const last = allow.flatMap(({ end }) => end ?? []).toSorted((a, b) => Date.parse(a) - Date.parse(b));
  return `spec.allow has only times that are over, the last since ${last.at(-1)}`;
}
