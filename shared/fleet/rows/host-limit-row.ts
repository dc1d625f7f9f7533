/** A host that wants no request, or answers none: for everybody who signs in to it with the same credentials. */
import { defined } from "#shared/base/defined.ts";
import { backoffSeconds, later } from "#shared/fleet/rows/due.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface HostLimitRow extends Row {
  readonly type: "HostLimit";
  /** No request before this time. */
  readonly until: string;
  readonly silence?: HostSilence;
}

/** Requests that a host answered with nothing, since its last answer. */
export interface HostSilence {
  readonly since: string;
  readonly tries: number;
}

export interface HostLogin {
  /** With its port. */
  readonly host: string;
  /** Name of the secret; absent for anonymous requests. */
  readonly secret?: string | undefined;
}

/** One silence may be about one repository; an author could choose it to stop all others. */
const fewestTries = 2;
/** Longer than a request may take: until then one Source asks for all. */
const probeSeconds = 90;

/** Whether the Sources of a host ask it one at a time. */
export function isSilent(silence: HostSilence | undefined): silence is HostSilence {
  return silence !== undefined && silence.tries >= fewestTries;
}

export function silenceAfter(before: HostSilence | undefined, now: Date): HostSilence {
  return { since: before?.since ?? now.toISOString(), tries: (before?.tries ?? 0) + 1 };
}

/** When the next Source may ask: at once, or after a pause that doubles from 10 seconds up to 10 minutes. */
export function askedAgainAt(silence: HostSilence, now: Date): Date {
  return isSilent(silence) ? new Date(later(now, backoffSeconds(silence.tries))) : now;
}

/** The end of the time in which one Source asks a silent host for all. */
export function probeEnd(now: Date): Date {
  return new Date(later(now, probeSeconds));
}

const keptSeconds = 86_400;

/** The last writer counts: a host that still has a limit states it again. */
export function hostLimitRow(
  login: HostLogin,
  until: Date,
  { silence, version = 1 }: { readonly silence?: HostSilence; readonly version?: number } = {},
): HostLimitRow {
  return {
    ...keys.hostLimit(login.host, login.secret),
    type: "HostLimit",
    schema: rowSchema,
    version,
    until: until.toISOString(),
    ...defined({ silence }),
    expiresAt: expiryOf(until, keptSeconds),
  };
}
