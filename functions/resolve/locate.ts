import { isDeepStrictEqual } from "node:util";
import { installationLogin } from "#functions/resolve/github-app.ts";
import { HostLimits, type LimitPorts } from "#functions/resolve/host-limits.ts";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import { locateArchive } from "#functions/resolve/upstreams/locate-archive.ts";
import { locateChart } from "#functions/resolve/upstreams/locate-chart.ts";
import { locateGit } from "#functions/resolve/upstreams/locate-git.ts";
import { locateOci } from "#functions/resolve/upstreams/locate-oci.ts";
import type { Located, UpstreamPorts, UpstreamUse } from "#functions/resolve/upstreams/upstream.ts";
import { errorCode } from "#shared/base/errors.ts";
import { type Upstream, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { SecretReader, SourceCredentials } from "#shared/ports.ts";

export interface LocatePorts extends UpstreamPorts, LimitPorts {
  readonly secrets: SecretReader;
}

export interface LocateRequest {
  /** Milliseconds that the upstream may take. */
  readonly timeLeftMs: () => number;
  /** A former revision, to find it again. */
  readonly revision?: string;
}

/** Other credentials may end these errors. */
const denials: ReadonlySet<string> = new Set([
  ...["GitAuthenticationFailed", "AuthenticationFailed"],
  // A key that is not read, and a host without a line or with another key in known_hosts.
  ...["InvalidCredentials", "HostKeyMismatch"],
]);

/** Finds what the Source means now, or one of its former revisions, with at most one listing. */
export async function locate(row: SourceRow, request: LocateRequest, ports: LocatePorts): Promise<Located> {
  const upstream = upstreamOf(row.spec);
  const use = { namespace: row.namespace, upstream };
  const limits = new HostLimits(upstream, ports);
  let known: { readonly credentials: SourceCredentials | undefined } | undefined;
  const login = async (fresh: boolean): Promise<SourceCredentials | undefined> => {
    const read = await readCredentials(use, ports.secrets, { fresh });
    if (read?.kind !== "githubApp") return read;
    return installationLogin(read, { ...ports, timeLeftMs: request.timeLeftMs, fresh });
  };
  const signedIn: UpstreamUse["signedIn"] = (work) =>
    limits.within(async () => {
      try {
        known ??= { credentials: await login(false) };
        return await work(known.credentials);
      } catch (error) {
        if (!denials.has(errorCode(error))) throw error;
        const credentials = await login(true);
        if (isDeepStrictEqual(known?.credentials, credentials)) throw error;
        known = { credentials };
        return work(credentials);
      }
    });
  const { timeLeftMs, revision } = request;
  return locateIn(upstream, { signedIn, timeLeftMs, revision }, ports);
}

function locateIn(upstream: Upstream, use: UpstreamUse, ports: UpstreamPorts): Promise<Located> {
  switch (upstream.kind) {
    case "git":
      return locateGit(upstream, use, ports);
    case "helm":
      return locateChart(upstream, use, ports);
    case "oci":
      return locateOci(upstream, use, ports);
    case "archive":
      return locateArchive(upstream, use, ports);
  }
}
