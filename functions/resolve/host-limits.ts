import type { Clock } from "#shared/base/clock.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { isConflict, StarlingError } from "#shared/base/errors.ts";
import type { RemoteUpstream } from "#shared/fleet/kinds/source.ts";
import {
  askedAgainAt,
  type HostLimitRow,
  type HostLogin,
  type HostSilence,
  hostLimitRow,
  isSilent,
  probeEnd,
  silenceAfter,
} from "#shared/fleet/rows/host-limit-row.ts";
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
 * Asks a host within the limits that it states, and one Source at a time while it answers nothing. A limit counts for all
 * Sources with the same credentials, because it is stated to the first of them, and is kept by the others without a
 * request. A limit of another host, to which an index or a redirect leads, counts for the one Source: its author could
 * choose that host to stop all others.
 */
export class HostLimits {
  readonly #login: HostLogin;
  readonly #ports: LimitPorts;
  readonly #speaksFor: (host: unknown) => boolean;
  #isFree = false;
  /** The row has a silence that an answer ends. */
  #wasSilent = false;

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

  /** @throws StarlingError `RateLimited` or `HostSilent` with `until`, before the work; `RateLimited` by it. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isFree) await this.#check();
    const isFirst = !this.#isFree;
    this.#isFree = true;
    try {
      const result = await work();
      await this.#hear();
      return result;
    } catch (error) {
      await this.#learn(error, isFirst);
      throw error;
    }
  }

  async #check(): Promise<void> {
    const { table, clock } = this.#ports;
    const { host, secret } = this.#login;
    const row = await table.get(keys.hostLimit(host, secret));
    const now = clock.now();
    const silence = row?.silence;
    this.#wasSilent = silence !== undefined;
    if (row === undefined) return;
    if (row.until > now.toISOString()) throw isSilent(silence) ? this.#silent(silence, row.until) : this.#limited(row);
    if (!isSilent(silence)) return;
    const until = probeEnd(now);
    try {
      const put = hostLimitRow(this.#login, until, { silence, version: row.version + 1 });
      await table.write([{ put, when: { version: row.version } }]);
    } catch (error) {
      if (isConflict(error)) throw this.#silent(silence, until.toISOString());
      throw error;
    }
  }

  /** The host answers, so that all Sources may ask it again. */
  async #hear(): Promise<void> {
    if (!this.#wasSilent) return;
    this.#wasSilent = false;
    await this.#ports.table.write([{ put: hostLimitRow(this.#login, this.#ports.clock.now()) }]);
  }

  async #learn(error: unknown, isFirst: boolean): Promise<void> {
    if (!(error instanceof StarlingError)) return;
    const { table, clock } = this.#ports;
    const until = untilOf(error);
    const now = clock.now();
    if (this.#speaksFor(error.data.host) && until !== undefined && until > now)
      return table.write([{ put: hostLimitRow(this.#login, until) }]);
    const { silentHost } = error.data;
    if (silentHost === undefined) return answers.has(error.code) ? this.#hear() : undefined;
    // A host that has answered before is slow, and not silent; Sources that are polled together share an error.
    if (!isFirst || !this.#speaksFor(silentHost) || counted.has(error)) return;
    counted.add(error);
    const { host, secret } = this.#login;
    const before = await table.get(keys.hostLimit(host, secret));
    const silence = silenceAfter(before?.silence, now);
    const version = (before?.version ?? 0) + 1;
    await table.write([{ put: hostLimitRow(this.#login, askedAgainAt(silence, now), { silence, version }) }]);
  }

  #limited({ until }: HostLimitRow): StarlingError {
    const { host, secret } = this.#login;
    const which = secret === undefined ? "anonymous requests" : `requests with the credentials of ${secret}`;
    const message = `${host} allows no more ${which} until ${until}; Starling asks again then`;
    return new StarlingError(message, { code: "RateLimited", retry: "transient", data: { until } });
  }

  #silent({ since }: HostSilence, until: string): StarlingError {
    const { host, secret } = this.#login;
    const which = secret === undefined ? "" : ` with the credentials of ${secret}`;
    const message = `${host} has answered nothing since ${since}; one Source${which} asks it again after ${until}, and the others wait for its answer`;
    return new StarlingError(message, { code: "HostSilent", retry: "transient", data: { until } });
  }
}

/** Errors that a host cannot cause without an answer, or that come at once. */
const answers: ReadonlySet<string> = new Set<ErrorCode>([
  "GitAuthenticationFailed",
  "AuthenticationFailed",
  "GitNotFound",
  "UpstreamNotFound",
  "GitRefNotFound",
  "EmptyGitRepository",
  "GitTooLarge",
  "UpstreamTooLarge",
  "ArchiveInvalid",
  "GitOperationFailed",
  "UpstreamUnavailable",
]);
/** Silences that a row has already. */
const counted = new WeakSet<StarlingError>();
const waits: ReadonlySet<string> = new Set<ErrorCode>(["RateLimited", "HostSilent"]);

/** The end of the wait that a host demands, or needs. */
export function untilOf(error: unknown): Date | undefined {
  if (!(error instanceof StarlingError && waits.has(error.code))) return undefined;
  const { until } = error.data;
  return typeof until === "string" ? new Date(until) : undefined;
}
