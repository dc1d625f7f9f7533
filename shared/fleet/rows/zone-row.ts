/** One row for each zone, which shows the planner whether the zone's workers run. */
import { starlingVersion } from "#shared/base/starling-version.ts";
import { later, laterOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface ZoneRow extends Row {
  readonly type: "Zone";
  /** When a worker of the zone last said that it runs. */
  readonly workedAt: string;
  /** Present while its workers reach none of its clusters: since when, by the survey of the tick. */
  readonly silentSince?: string;
  /** Its version of Starling; absent from versions that do not say it. */
  readonly release?: string;
}

/** A sandbox says at most once in this time that it runs. */
export const pulseSeconds = 60;

/** A worker that stays with one slow cluster for its whole invocation, of five minutes, says nothing meanwhile. */
const leastSilentSeconds = 5 * 60 + pulseSeconds;

export function zoneUpdate(zone: string, at: Date) {
  return {
    update: keys.zone(zone),
    set: { type: "Zone", schema: rowSchema, workedAt: at.toISOString(), release: starlingVersion },
    add: { version: 1 },
  };
}

/** The tick notes since when no cluster of the zone answers, or that one answers again: `since` is undefined. */
export function silenceUpdate(zone: string, since: string | undefined) {
  const what = since === undefined ? { remove: ["silentSince"] } : { set: { silentSince: since } };
  return { update: keys.zone(zone), ...what, add: { version: 1 } };
}

/**
 * When the zone is down unless one of its workers runs before; the present or an earlier time: it is down.
 * @param row - undefined when no worker of the zone has ever run.
 * @param silence.since - when a worker of the zone was called first: until then its silence says nothing.
 * @param silence.seconds - the time that an attempt may take. Pauses between two pulses are no sign.
 */
export function downFrom(
  row: ZoneRow | undefined,
  silence: { readonly since: string; readonly seconds: number },
): string {
  const { since, seconds } = silence;
  return later(laterOf(row?.workedAt ?? since, since), Math.max(seconds, leastSilentSeconds));
}

export function downText(zone: string, row: ZoneRow | undefined): string {
  return row === undefined
    ? `zone ${zone}: no worker has ever run`
    : `zone ${zone}: no worker has run since ${row.workedAt}`;
}
