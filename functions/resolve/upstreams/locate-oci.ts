import { verifyInRegistry } from "#functions/resolve/upstreams/cosign-signatures.ts";
import { Registry } from "#functions/resolve/upstreams/registry.ts";
import { unpackPart } from "#functions/resolve/upstreams/unpack-upstream.ts";
import type { Located, LocateUpstream } from "#functions/resolve/upstreams/upstream.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { defined } from "#shared/base/defined.ts";
import type { OciUpstream } from "#shared/fleet/kinds/source.ts";
import { type Descriptor, type OciManifest, versionOfTag } from "#shared/source/oci/manifest.ts";
import { ociRepository } from "#shared/source/oci/oci-url.ts";
import { filterTags } from "#shared/source/tag-filter.ts";
import { bestVersion, parseVersionConstraint } from "#shared/source/version-constraint.ts";

const maxBytes = 100 * 1024 * 1024;

/** The layers that hold files, the best first: of `flux push artifact`, and of any tool that pushes a tar.gz. */
const fileLayers = [
  "application/vnd.cncf.flux.content.v1.tar+gzip",
  "application/vnd.oci.image.layer.v1.tar+gzip",
  "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

/** Finds the digest that a tag, or the highest version, means now. */
export const locateOci: LocateUpstream<OciUpstream> = async (spec, use, { http }): Promise<Located> => {
  const { url, ref = { tag: "latest" } } = spec;
  const repository = ociRepository(url);
  const inRegistry = <T>(work: (registry: Registry) => Promise<T>): Promise<T> =>
    use.signedIn((credentials) =>
      work(new Registry({ url, at: "spec.oci", repository, credentials, timeLeftMs: use.timeLeftMs }, http)),
    );
  const revision = use.revision ?? (await inRegistry((registry) => revisionIn(registry, spec, ref)));
  const digest = revision.slice(revision.lastIndexOf("@") + 1);
  const verify = use.revision === undefined ? spec.verify : undefined;
  return {
    revision,
    isSignedApart: true,
    what: `${revision} of ${url}`,
    async fetch(part) {
      const { manifest, bytes, verified } = await inRegistry(async (registry) => {
        const found = await registry.manifest(digest);
        const signed = { url, at: "spec.oci", digest, manifest: found.bytes };
        const proven = await verifyInRegistry(registry, signed, verify?.cosign);
        const layer = layerOf(url, found, spec.mediaType);
        return { manifest: found, bytes: await registry.blob(layer, maxBytes), verified: proven };
      });
      const files = await unpackPart(bytes, `the layer of ${url}`, part);
      return {
        files,
        ...aboutOf(manifest, revision),
        ...defined({ verified }),
      };
    },
  };
};

type Reference = NonNullable<OciUpstream["ref"]>;

async function revisionIn(registry: Registry, { url }: OciUpstream, ref: Reference): Promise<string> {
  if (ref.digest !== undefined) return ref.digest;
  if (ref.tag !== undefined) return `${ref.tag}@${await registry.digestOf(ref.tag)}`;
  const tags = await registry.tags();
  const { semver = "*", tagFilter } = ref;
  const filtered = filterTags(tags, { tagFilter, nameOf: (tag) => tag });
  const tag = bestVersion(filtered.tags, { constraint: parseVersionConstraint(semver), versionOf: versionOfTag });
  if (tag === undefined) {
    const found = `no tag matches ${semver} ${filtered.among}`;
    throw upstreamError(
      "UpstreamNotFound",
      `${url}: ${found}; push one, or widen spec.oci.ref.semver${filtered.remedy}`,
    );
  }
  return `${tag}@${await registry.digestOf(tag)}`;
}

/** A layer is chosen by what it says it is, because configurations stand among the layers of some artifacts. */
function layerOf(url: string, { layers }: OciManifest, desired: string | undefined): Descriptor {
  const types = desired === undefined ? fileLayers : [desired];
  const found = types.flatMap((type) => layers.filter(({ mediaType }) => mediaType === type))[0];
  if (found !== undefined) return found;
  const has =
    layers.length === 0
      ? "no layer"
      : `layers of ${[...new Set(layers.map(({ mediaType }) => mediaType))].slice(0, 5).join(", ")}`;
  const remedy = layers.some(({ mediaType }) => mediaType.includes(".helm.chart."))
    ? "it is a Helm chart: write spec.helm, with its last part as chart, in place of spec.oci"
    : "if one of them is a tar.gz of files, name it in spec.oci.mediaType";
  throw upstreamError("ArchiveInvalid", `${url} has ${has}, and Starling looks for ${types.join(" or ")}; ${remedy}`);
}

/** The annotations in which Flux's and Docker's tools say where an artifact came from. */
function aboutOf({ annotations }: OciManifest, revision: string) {
  const of = (name: string) => annotations[`org.opencontainers.image.${name}`];
  const created = of("created");
  const committedAt =
    created !== undefined && Number.isFinite(Date.parse(created))
      ? { committedAt: new Date(created).toISOString() }
      : {};
  return { title: of("title") ?? of("revision") ?? revision, author: of("authors") ?? "", ...committedAt };
}
