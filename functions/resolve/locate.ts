import { HostLimits, type LimitPorts } from "#functions/resolve/host-limits.ts";
import { type SignInPorts, signIn } from "#functions/resolve/sign-in.ts";
import { locateArchive } from "#functions/resolve/upstreams/locate-archive.ts";
import { type BucketPorts, locateBucket } from "#functions/resolve/upstreams/locate-bucket.ts";
import { locateChart } from "#functions/resolve/upstreams/locate-chart.ts";
import { locateExternal } from "#functions/resolve/upstreams/locate-external.ts";
import { locateGit } from "#functions/resolve/upstreams/locate-git.ts";
import { locateOci } from "#functions/resolve/upstreams/locate-oci.ts";
import type { Located, UpstreamPorts, UpstreamUse } from "#functions/resolve/upstreams/upstream.ts";
import { defined } from "#shared/base/defined.ts";
import { type RemoteUpstream, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { BlobStore } from "#shared/ports.ts";
import type { SourceListing } from "#shared/source/http-listing.ts";

export interface LocatePorts extends UpstreamPorts, BucketPorts, LimitPorts, SignInPorts {
  /** For uploads. */
  readonly blobs: Pick<BlobStore, "get">;
}

export interface LocateRequest {
  /** Milliseconds that the upstream may take. */
  readonly timeLeftMs: () => number;
  /** A former revision, to find it again. */
  readonly revision?: string;
}

/** Finds what the Source means now, or one of its former revisions, with at most one listing. */
export async function locate(row: SourceRow, request: LocateRequest, ports: LocatePorts): Promise<Located> {
  const upstream = upstreamOf(row.spec);
  const { timeLeftMs, revision } = request;
  if (upstream.kind === "s3") {
    const { namespace, spec } = row;
    return locateBucket(upstream, { namespace, paths: spec.paths, ignore: spec.ignore, timeLeftMs, revision }, ports);
  }
  if (upstream.kind === "external") return locateExternal(upstream, { row, revision }, ports);
  const limits = new HostLimits(upstream, ports);
  const within = signIn({ namespace: row.namespace, upstream, timeLeftMs }, ports);
  const signedIn: UpstreamUse["signedIn"] = (work) => limits.within(() => within(work));
  const listing = revision === undefined ? usableListing(row) : undefined;
  return locateIn(upstream, { signedIn, timeLeftMs, revision, ...defined({ listing }) }, ports);
}

/**
 * The listing of the artifact that the Source has. Another spec could choose otherwise in it, and who asks for a reconcile
 * may distrust the server, so that both read it whole.
 */
function usableListing({ status, operations, generation }: SourceRow): SourceListing | undefined {
  const { listing, artifact, lost, observedGeneration, observedReference } = status;
  const isAsked = operations.reconcile !== undefined && operations.reconcile.number !== status.handledReconcile;
  if (isAsked || lost !== undefined || observedGeneration !== generation) return undefined;
  // The rest is about included artifacts.
  const [observed] = observedReference?.split(" ") ?? [];
  const isOfArtifact = listing?.revision === observed && listing?.revision === artifact?.revision;
  return isOfArtifact ? listing : undefined;
}

function locateIn(upstream: RemoteUpstream, use: UpstreamUse, ports: UpstreamPorts): Promise<Located> {
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
