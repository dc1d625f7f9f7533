import { unpackPart } from "#functions/resolve/upstreams/unpack-upstream.ts";
import type { Located } from "#functions/resolve/upstreams/upstream.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { defined } from "#shared/base/defined.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { errorCode } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { ExternalUpstream } from "#shared/fleet/kinds/source.ts";
import type { SourceRow, Upload } from "#shared/fleet/rows/object-rows.ts";
import { isFullOfUploads, maxUploadBytes, uploadRevision } from "#shared/fleet/sources/uploads.ts";
import type { BlobStore } from "#shared/ports.ts";

/** The revision is the newest pushed version, or the one that the spec names. The row has them, so that nothing is polled. */
export function locateExternal(
  spec: ExternalUpstream,
  use: { readonly row: Pick<SourceRow, "namespace" | "name" | "operations">; readonly revision: string | undefined },
  { blobs }: { readonly blobs: Pick<BlobStore, "get"> },
): Located {
  const { namespace, name } = use.row;
  const upload = uploadOf(spec, use);
  const revision = uploadRevision(upload);
  return {
    revision,
    what: `the pushed version ${upload.version}`,
    async fetch(part) {
      const bytes = await staged(upload, () =>
        blobs.get(blobKeys.upload({ namespace, name }, upload.id), { maxBytes: maxUploadBytes }),
      );
      const found = hexOf(sha256(bytes));
      if (found !== upload.sha256) {
        const remedy = "push the version again";
        const message = `the pushed version ${upload.version} has the checksum ${found}, and was announced with ${upload.sha256}`;
        throw upstreamError("ChecksumMismatch", `${message}; ${remedy}`);
      }
      const files = await unpackPart(bytes, `the pushed version ${upload.version}`, part);
      return {
        files,
        title: upload.reason ?? `version ${upload.version}`,
        author: upload.by,
        committedAt: upload.at,
        ...defined({ origin: upload.origin }),
      };
    },
  };
}

function uploadOf(
  { version }: ExternalUpstream,
  { row, revision }: { readonly row: Pick<SourceRow, "name" | "operations">; readonly revision: string | undefined },
): Upload {
  const { uploads = [] } = row.operations;
  const push = (what: string) => `starling source push ${row.name} --as ${what} --dir FOLDER`;
  if (revision !== undefined) {
    const former = uploads.find((each) => uploadRevision(each) === revision);
    if (former === undefined) throw upstreamError("ArtifactGone", `${revision} is not among the pushed versions`);
    return former;
  }
  const found = version === undefined ? uploads.at(-1) : uploads.find((each) => each.version === version);
  if (found !== undefined) return found;
  if (version === undefined) throw upstreamError("UpstreamNotFound", `no version was pushed yet: ${push("VERSION")}`);
  const why = isFullOfUploads(row.operations)
    ? "is not among the last 200 pushed versions, and was forgotten if it was older"
    : "was not pushed";
  throw upstreamError("UpstreamNotFound", `spec.external.version ${version} ${why}; push it: ${push(version)}`);
}

async function staged(upload: Upload, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await read();
  } catch (error) {
    const code = errorCode(error);
    if (code === "BlobTooLarge") {
      const message = `the pushed version ${upload.version} has more than ${maxUploadBytes / 1024 / 1024} MiB; push fewer files`;
      throw upstreamError("UpstreamTooLarge", message, error);
    }
    if (code !== "BlobNotFound") throw error;
    const message = `the upload of version ${upload.version} is kept for a day only; push the same folder as ${upload.version} again`;
    throw upstreamError("ArtifactGone", message, error);
  }
}
