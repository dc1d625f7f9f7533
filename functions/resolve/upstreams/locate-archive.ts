import { createHash } from "node:crypto";
import type { LocateUpstream } from "#functions/resolve/upstreams/upstream.ts";
import { authorization } from "#shared/adapters/net/authorization.ts";
import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { ArchiveUpstream } from "#shared/fleet/kinds/source.ts";
import { isWithin } from "#shared/source/tree-listing.ts";

const maxBytes = 100 * 1024 * 1024;

/** The revision is the checksum in the spec, so that only a change of the spec asks the server. */
export const locateArchive: LocateUpstream<ArchiveUpstream> = async (
  spec,
  { signedIn, timeLeftMs, revision },
  { http },
) => {
  const { url, sha256 } = spec;
  const own = `sha256:${sha256}`;
  if (revision !== undefined && revision !== own) {
    throw failed("ArtifactGone", `spec.archive names another file now, ${own}`);
  }
  return {
    revision: own,
    what: `the archive ${url}`,
    async fetch(paths) {
      const bytes = await signedIn(async (credentials) => {
        const { status, body } = await http.ask({ url, headers: authorization(credentials), maxBytes, timeLeftMs });
        if (status === 200) return body;
        throw refusal(spec, status);
      });
      const found = createHash("sha256").update(bytes).digest("hex");
      if (found !== sha256) {
        const remedy = "if the new file is right, write its checksum into spec.archive.sha256";
        throw failed(
          "ChecksumMismatch",
          `${url} has the checksum ${found}, and spec.archive.sha256 is ${sha256}; ${remedy}`,
        );
      }
      const files = await readTarGz(bytes, { folders: "passed over" }).catch((error: unknown) => {
        throw failed("ArchiveInvalid", `${url} is no tar.gz that Starling reads: ${errorMessage(error)}`, error);
      });
      return { files: files.filter(({ path }) => isWithin(path, paths)), title: nameOf(url), author: "" };
    },
  };
};

function nameOf(url: string): string {
  return new URL(url).pathname.split("/").at(-1) ?? "";
}

function refusal({ url, credentials }: ArchiveUpstream, status: number): StarlingError {
  if (status === 401 || status === 403) {
    const remedy =
      credentials === undefined
        ? "it needs credentials, or does not exist; set spec.archive.credentials"
        : "the credentials are wrong or may not read it; renew the secret";
    return failed("AuthenticationFailed", `${url} refused access (HTTP ${status}): ${remedy}`);
  }
  if (status === 404 || status === 410) {
    return failed("UpstreamNotFound", `${url} was not found (HTTP ${status}): correct spec.archive.url`);
  }
  const message = `${url} answered HTTP ${status}; if that goes on, ask who runs the server`;
  return new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
}

function failed(code: ErrorCode, message: string, cause?: unknown): StarlingError {
  return new StarlingError(message, { code, retry: "permanent", cause });
}
