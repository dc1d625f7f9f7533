import { unpackPart } from "#functions/resolve/upstreams/unpack-upstream.ts";
import type { LocateUpstream } from "#functions/resolve/upstreams/upstream.ts";
import { refusedRequest, upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import type { ArchiveUpstream } from "#shared/fleet/kinds/source.ts";

const maxBytes = 100 * 1024 * 1024;

/** The revision is the checksum in the spec, so that only a change of the spec asks the server. */
export const locateArchive: LocateUpstream<ArchiveUpstream> = async (
  spec,
  { signedIn, timeLeftMs, revision },
  { http },
) => {
  const { url, sha256: checksum } = spec;
  const own = `sha256:${checksum}`;
  if (revision !== undefined && revision !== own) {
    throw upstreamError("ArtifactGone", `spec.archive names another file now, ${own}`);
  }
  return {
    revision: own,
    what: `the archive ${url}`,
    async fetch(part) {
      const bytes = await signedIn(async (credentials) => {
        const { status, body } = await http.ask({ url, credentials, maxBytes, timeLeftMs });
        if (status === 200) return body;
        throw refusedRequest({ what: url, status, at: "spec.archive", hasCredentials: credentials !== undefined });
      });
      const found = hexOf(sha256(bytes));
      if (found !== checksum) {
        const remedy = "if the new file is right, write its checksum into spec.archive.sha256";
        throw upstreamError(
          "ChecksumMismatch",
          `${url} has the checksum ${found}, and spec.archive.sha256 is ${checksum}; ${remedy}`,
        );
      }
      const files = await unpackPart(bytes, url, part);
      return { files, title: nameOf(url), author: "" };
    },
  };
};

function nameOf(url: string): string {
  return new URL(url).pathname.split("/").at(-1) ?? "";
}
