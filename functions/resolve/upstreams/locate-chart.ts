import { verifyInRegistry } from "#functions/resolve/upstreams/cosign-signatures.ts";
import { Registry } from "#functions/resolve/upstreams/registry.ts";
import { unpackUpstream } from "#functions/resolve/upstreams/unpack-upstream.ts";
import type {
  Fetched,
  Located,
  LocateUpstream,
  UpstreamPorts,
  UpstreamUse,
} from "#functions/resolve/upstreams/upstream.ts";
import { refusedRequest, upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import {
  type ProvenChart,
  requireDigest,
  type SignedChart,
  verifyProvenance,
} from "#functions/resolve/upstreams/verify-provenance.ts";
import { mayGoTo } from "#shared/adapters/net/authorization.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { errorCode, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { HelmUpstream } from "#shared/fleet/kinds/source.ts";
import type { RemoteAnswer } from "#shared/ports.ts";
import { type ChartVersion, chartUrl, chartVersions } from "#shared/source/helm/helm-index.ts";
import { chartFilesOf } from "#shared/source/helm/packed-chart.ts";
import { listingOf, unlessUnchanged } from "#shared/source/http-listing.ts";
import { versionOfTag } from "#shared/source/oci/manifest.ts";
import { ociRepository } from "#shared/source/oci/oci-url.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import { bestVersion, parseVersionConstraint } from "#shared/source/version-constraint.ts";

const mib = 1024 * 1024;
const maxIndexBytes = 100 * mib;
const maxChartBytes = 20 * mib;
/** Characters of an address in an index that a message repeats. */
const maxUrl = 200;
/** Chart.yaml with a few checksums and a signature. */
const maxProvenanceBytes = mib;
const provenanceLayer = "application/vnd.cncf.helm.chart.provenance.v1.prov";
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/** Finds the highest version of a chart in its range. */
export const locateChart: LocateUpstream<HelmUpstream> = (spec, use, ports) =>
  spec.url.startsWith("oci://") ? locateInRegistry(spec, use, ports) : locateInRepository(spec, use, ports);

async function locateInRegistry(
  spec: HelmUpstream,
  use: UpstreamUse,
  { http, clock }: UpstreamPorts,
): Promise<Located> {
  const url = `${spec.url.replace(/\/+$/, "")}/${spec.chart}`;
  const repository = ociRepository(url);
  const inRegistry = <T>(work: (registry: Registry) => Promise<T>): Promise<T> =>
    use.signedIn((credentials) =>
      work(new Registry({ url, at: "spec.helm", repository, credentials, timeLeftMs: use.timeLeftMs }, http)),
    );
  const revision =
    use.revision ??
    (await inRegistry(async (registry) => {
      const tags = await registry.tags();
      const tag = chosenOf(tags, { spec, url, versionOf: versionOfTag });
      return `${versionOfTag(tag)}@${await registry.digestOf(tag)}`;
    }));
  const verify = use.revision === undefined ? spec.verify : undefined;
  return {
    revision,
    isSignedApart: true,
    what: `the chart ${revision} of ${url}`,
    async fetch({ paths }) {
      const { bytes, verified } = await inRegistry(async (registry) => {
        const digest = digestIn(revision);
        const { layers, bytes: manifest } = await registry.manifest(digest);
        const signed = await verifyInRegistry(registry, { url, at: "spec.helm", digest, manifest }, verify?.cosign);
        const layer = layers.find(({ mediaType }) => mediaType === chartLayer);
        if (layer === undefined)
          throw upstreamError("ArchiveInvalid", `${url} is no chart: it has no layer ${chartLayer}`);
        const chart = { name: spec.chart, version: versionIn(revision), url };
        const proven = await proof(verify?.provenance, { chart, clock }, async () => {
          const provenance = layers.find(({ mediaType }) => mediaType === provenanceLayer);
          return provenance && registry.blob(provenance, maxProvenanceBytes);
        });
        if (proven !== undefined) requireDigest(chart, hexOf(layer.digest), proven);
        return { bytes: await registry.blob(layer, maxChartBytes), verified: signed ?? proven?.verified };
      });
      const about = { title: `${spec.chart} ${versionIn(revision)}`, author: "", ...defined({ verified }) };
      return unpacked(bytes, { url, paths, about });
    },
  };
}

async function locateInRepository(spec: HelmUpstream, use: UpstreamUse, ports: UpstreamPorts): Promise<Located> {
  const base = `${spec.url.replace(/\/+$/, "")}/`;
  const { timeLeftMs, signedIn, revision, listing } = use;
  const read = (url: string, maxBytes: number, asked = {}): Promise<RemoteAnswer> =>
    signedIn(async (credentials) => {
      const isOwn = new URL(url).origin === new URL(base).origin && mayGoTo(credentials, new URL(url));
      const own = isOwn ? credentials : undefined;
      const answer = await ports.http.ask({ url, credentials: own, headers: asked, maxBytes, timeLeftMs });
      const { status } = answer;
      if (status === 200 || (status === 304 && Object.keys(asked).length > 0)) return answer;
      const hasCredentials = own !== undefined;
      throw refusedRequest({ what: url, status, at: "spec.helm", hasCredentials });
    });
  const indexUrl = `${base}index.yaml`;
  const what = (version: string) => `the chart ${spec.chart} ${version} of ${spec.url}`;
  const index = await read(indexUrl, maxIndexBytes, listing === undefined ? {} : unlessUnchanged(listing));
  if (listing !== undefined && index.status === 304) {
    return {
      revision: listing.revision,
      isSignedApart: true,
      listing,
      what: what(versionIn(listing.revision)),
      async fetch({ paths }) {
        const { listing: _listing, ...whole } = use;
        const now = await locateInRepository(spec, whole, ports);
        if (now.revision === listing.revision) return now.fetch({ paths });
        const message = `${indexUrl} said that it has not changed, and names ${now.revision}; it is read again soon`;
        throw new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
      },
    };
  }
  const versions = chartVersions(new TextDecoder().decode(index.body), spec.chart);
  if (typeof versions === "string")
    throw upstreamError("ArchiveInvalid", `${indexUrl} ${versions}; check spec.helm.url`);
  if (versions.length === 0) {
    throw upstreamError("UpstreamNotFound", `${indexUrl} has no chart ${spec.chart}; correct spec.helm.chart`);
  }
  const version =
    revision === undefined
      ? chosenOf(
          versions.map((each) => each.version),
          { spec, url: indexUrl, versionOf: (text) => text },
        )
      : versionIn(revision);
  const chosen = versions.find((each) => each.version === version);
  if (chosen === undefined) throw upstreamError("ArtifactGone", `${indexUrl} has no ${spec.chart} ${version} any more`);
  const located = revisionOf(chosen);
  if (revision !== undefined && located !== revision) {
    throw upstreamError("ArtifactGone", `${indexUrl} has another ${spec.chart} ${version} now: ${located}`);
  }
  const verify = use.revision === undefined ? spec.verify : undefined;
  return {
    revision: located,
    isSignedApart: true,
    ...defined({ listing: listingOf(located, index) }),
    what: what(version),
    async fetch({ paths }) {
      const url = chartUrl(chosen.url, indexUrl);
      if (url === undefined) {
        const named = `names ${excerpt(chosen.url, maxUrl)} for ${spec.chart} ${version}, which is not fetched`;
        throw upstreamError("ArchiveInvalid", `${indexUrl} ${named}; it must be https, or relative to the index`);
      }
      const chart = { name: spec.chart, version, url: spec.url };
      if (verify?.cosign !== undefined) throw new Error("a Source with cosign outside of a registry passed its schema");
      const proven = await proof(verify?.provenance, { chart, clock: ports.clock }, () =>
        orNothing(read(provenanceUrl(url), maxProvenanceBytes).then(({ body }) => body)),
      );
      const { body: bytes } = await read(url, maxChartBytes);
      const found = hexOf(sha256(bytes));
      if (proven !== undefined) requireDigest(chart, found, proven);
      if (chosen.digest !== undefined && found !== chosen.digest) {
        throw upstreamError(
          "ChecksumMismatch",
          `${url} has the checksum ${found}, and the index says ${chosen.digest}`,
        );
      }
      const app = chosen.appVersion === undefined ? "" : ` (app ${chosen.appVersion})`;
      const at = chosen.created === undefined ? Number.NaN : Date.parse(chosen.created);
      const committedAt = Number.isFinite(at) ? { committedAt: new Date(at).toISOString() } : {};
      return unpacked(bytes, {
        url,
        paths,
        about: {
          title: `${spec.chart} ${version}${app}`,
          author: "",
          ...committedAt,
          ...defined({ verified: proven?.verified }),
        },
      });
    },
  };
}

/** Verifies as `spec.helm.verify.provenance` demands, before the chart is fetched. */
async function proof(
  trust: NonNullable<HelmUpstream["verify"]>["provenance"],
  { chart, clock }: { readonly chart: SignedChart; readonly clock: Clock },
  read: () => Promise<Uint8Array | undefined>,
): Promise<ProvenChart | undefined> {
  if (trust === undefined) return undefined;
  return verifyProvenance(chart, await read(), { keys: trust.keys, now: clock.now() });
}

async function orNothing(reading: Promise<Uint8Array>): Promise<Uint8Array | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (errorCode(error) === "UpstreamNotFound") return undefined;
    throw error;
  }
}

/** The file beside a packed chart; the query of a signed address stays behind it. */
function provenanceUrl(chart: string): string {
  const url = new URL(chart);
  url.pathname += ".prov";
  return url.href;
}

interface Unpacking {
  readonly url: string;
  readonly paths: readonly string[];
  readonly about: Omit<Fetched, "files">;
}

async function unpacked(bytes: Uint8Array, { url, paths, about }: Unpacking): Promise<Fetched> {
  const packed = await unpackUpstream(bytes, url);
  const files = chartFilesOf(packed);
  if (typeof files === "string") throw upstreamError("ArchiveInvalid", `${url} ${files}`);
  return { files: files.filter(({ path }) => isWithin(path, paths)), ...about };
}

interface Choice {
  readonly spec: HelmUpstream;
  readonly url: string;
  readonly versionOf: (name: string) => string;
}

function chosenOf(names: readonly string[], { spec, url, versionOf }: Choice): string {
  const semver = spec.ref?.semver ?? "*";
  const found = bestVersion(names, { constraint: parseVersionConstraint(semver), versionOf });
  if (found !== undefined) return found;
  const message = `${url}: no version matches ${semver} among ${names.length}; publish one, or widen spec.helm.ref.semver`;
  throw upstreamError("UpstreamNotFound", message);
}

function revisionOf({ version, digest }: ChartVersion): string {
  return digest === undefined ? version : `${version}@sha256:${digest}`;
}

function versionIn(revision: string): string {
  return revision.split("@")[0] ?? "";
}

function digestIn(revision: string): string {
  return revision.slice(revision.lastIndexOf("@") + 1);
}
