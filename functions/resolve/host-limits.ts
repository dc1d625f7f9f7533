import type { Clock } from "#shared/base/clock.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { RemoteUpstream } from "#shared/fleet/kinds/source.ts";
import { type HostLogin, hostLimitRow } from "#shared/fleet/rows/host-limit-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";
import { ociRepository } from "#shared/source/oci/oci-url.ts";

/** Stands for a secret in the row of a limit. No secret has such a name. */
const ownRole = "(role)";

export interface LimitPorts {
  readonly table: Table;
  readonly clock: Clock;
}

/**
 * Asks a host within the limits that it states. A limit counts for all Sources with the same credentials, because it is
 * stated to the first of them, and is kept by the others without a request. A limit of another host, to
 * which an index or a redirect leads, counts for the one Source: its author could choose that host to stop all others.
 */
export class HostLimits {
  readonly #login: HostLogin;
  readonly #ports: LimitPorts;
  readonly #speaksFor: (host: unknown) => boolean;
  #isFree = false;

  constructor({ url, credentials }: RemoteUpstream, ports: LimitPorts) {
    const answering = url.startsWith("oci:") ? new URL(ociRepository(url).origin).host : new URL(url).host;
    // The secret of an app names the host that gives tokens, and no author of a repository does.
    this.#speaksFor = (host) => host === answering || credentials?.kind === "githubApp";
    this.#login = {
      host: new URL(url).host,
      secret: credentials?.secret ?? (credentials === undefined ? undefined : ownRole),
    };
    this.#ports = ports;
  }

  /** @throws StarlingError `RateLimited` with `until`, before the work or by it. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    const { table, clock } = this.#ports;
    if (!this.#isFree) await this.#check();
    this.#isFree = true;
    try {
      return await work();
    } catch (error) {
      const until = untilOf(error);
      const isOwn = error instanceof StarlingError && this.#speaksFor(error.data.host);
      if (isOwn && until !== undefined && until > clock.now())
        await table.write([{ put: hostLimitRow(this.#login, until) }]);
      throw error;
    }
  }

  async #check(): Promise<void> {
    const { host, secret } = this.#login;
    const row = await this.#ports.table.get(keys.hostLimit(host, secret));
    if (row === undefined || row.until <= this.#ports.clock.now().toISOString()) return;
    const which = secret === undefined ? "anonymous requests" : `requests with the credentials of ${secret}`;
    const message = `${host} allows no more ${which} until ${row.until}; Starling asks again then`;
    throw new StarlingError(message, { code: "RateLimited", retry: "transient", data: { until: row.until } });
  }
}

/** The end of the wait that a host demands. */
export function untilOf(error: unknown): Date | undefined {
  if (!(error instanceof StarlingError && error.code === "RateLimited")) return undefined;
  const { until } = error.data;
  return typeof until === "string" ? new Date(until) : undefined;
}
