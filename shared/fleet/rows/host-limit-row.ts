/** The wait that a host demanded of everybody who signs in to it with the same credentials. */
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface HostLimitRow extends Row {
  readonly type: "HostLimit";
  /** No request before this time. */
  readonly until: string;
}

export interface HostLogin {
  /** With its port. */
  readonly host: string;
  /** Name of the secret; absent for anonymous requests. */
  readonly secret?: string | undefined;
}

const keptSeconds = 86_400;

/** The last writer counts: a host that still has a limit states it again. */
export function hostLimitRow(login: HostLogin, until: Date): HostLimitRow {
  return {
    ...keys.hostLimit(login.host, login.secret),
    type: "HostLimit",
    schema: rowSchema,
    version: 1,
    until: until.toISOString(),
    expiresAt: expiryOf(until, keptSeconds),
  };
}
