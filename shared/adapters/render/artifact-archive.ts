import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { extract, pack } from "tar-stream";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { compareText } from "#shared/base/text-order.ts";
import { type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** More than any repository of manifests has, and less than a function's memory. */
const archiveLimits = {
  maxFiles: 20_000,
  maxTotalBytes: 200 * 1024 * 1024,
  maxPathBytes: 1024,
  /**
   * YAML shrinks to a twentieth. Content that shrinks to a five-hundredth is an attack. Small archives are not checked.
   */
  maxRatio: 500,
  unmeasuredBytes: 10 * 1024 * 1024,
} as const;

/** @returns why the files do not fit into an artifact that can be read again, or undefined. */
export function fitProblem(files: readonly ListedFile[]): string | undefined {
  const { maxFiles, maxTotalBytes } = archiveLimits;
  if (files.length > maxFiles) return `there are ${files.length} files, and an artifact has at most ${maxFiles}`;
  const long = files.find(({ path }) => nameProblem(path, "artifact") !== undefined);
  if (long !== undefined) return `"${excerpt(long.path)}" ${nameProblem(long.path, "artifact")}`;
  // Headers, and what fills up the last block.
  const overhead = 2048;
  const bytes = files.reduce((sum, { content }) => sum + content.length + overhead, 0);
  const mebibytes = maxTotalBytes / 1024 / 1024;
  return bytes > maxTotalBytes ? `there are more than ${mebibytes} MiB, and an artifact has at most that` : undefined;
}

/**
 * A tar.gz of the files. The same files give the same bytes in any order (owners and times are zero, modes are 0644 and
 * 0755). Its identity is `treeDigest`, not its own hash.
 */
export async function packArtifact(files: readonly ListedFile[]): Promise<Uint8Array> {
  const archive = pack();
  const chunks: Buffer[] = [];
  const written = collect(archive, chunks);
  for (const file of files.toSorted((a, b) => compareText(a.path, b.path))) {
    const header = { name: file.path, mode: file.executable ? 0o755 : 0o644, mtime: new Date(0), uid: 0, gid: 0 };
    const { buffer, byteOffset, length } = file.content;
    archive.entry({ ...header, type: "file" }, Buffer.from(buffer, byteOffset, length));
  }
  archive.finalize();
  await written;
  return compress(Buffer.concat(chunks));
}

async function collect(stream: AsyncIterable<unknown>, chunks: Buffer[]): Promise<void> {
  for await (const chunk of stream) chunks.push(chunk as Buffer);
}

/**
 * The files of an artifact whose `treeDigest` is `digest`. An archive is not trusted because of its place. Absolute and
 * escaping names, links, devices, repeated names and sizes beyond the limits are refused.
 * @throws StarlingError `ArtifactInvalid`
 */
export async function unpackArtifact(bytes: Uint8Array, digest: string): Promise<readonly ListedFile[]> {
  const files = await readTarGz(bytes, { folders: "refused" }).catch((error: unknown) => {
    throw error instanceof StarlingError ? invalid(error.message, error) : error;
  });
  const actual = treeDigest(files);
  if (actual !== digest) throw invalid(`its content has the digest ${actual}, expected ${digest}`);
  return files;
}

/**
 * The files of a tar.gz.
 * @throws StarlingError `ArchiveInvalid` that says what is wrong with it.
 */
export async function readTarGz(
  bytes: Uint8Array,
  { folders }: { readonly folders: "refused" | "passed over" },
): Promise<ListedFile[]> {
  return readEntries(await inflate(bytes), folders);
}

async function inflate(bytes: Uint8Array): Promise<Buffer> {
  const { maxTotalBytes, maxRatio, unmeasuredBytes } = archiveLimits;
  const maxOutputLength = Math.min(maxTotalBytes, Math.max(unmeasuredBytes, bytes.length * maxRatio));
  try {
    return await decompress(bytes, { maxOutputLength });
  } catch (error) {
    throw broken(`it does not unpack within ${maxOutputLength} bytes: ${errorMessage(error)}`, error);
  }
}

async function readEntries(tar: Buffer, folders: "refused" | "passed over"): Promise<ListedFile[]> {
  const archive = extract();
  const files: ListedFile[] = [];
  const seen = new Set<string>();
  archive.end(tar);
  try {
    for await (const entry of archive) {
      const { type, mode, size } = entry.header;
      // `tar` writes the names below `.` so.
      const name = folders === "passed over" ? entry.header.name.replace(/^(\.\/)+/, "") : entry.header.name;
      // The library would wait for the content of such an entry for ever.
      if (!Number.isSafeInteger(size)) throw broken(`"${name}" has a size that is no number`);
      if (type === "directory" && folders === "passed over") {
        entry.resume();
        continue;
      }
      if (type !== "file") throw broken(`"${name}" is a ${type}; only regular files are allowed`);
      const problem = nameProblem(name, "archive");
      if (problem !== undefined) throw broken(`"${name}" ${problem}`);
      if (seen.has(name)) throw broken(`"${name}" occurs twice`);
      seen.add(name);
      if (seen.size > archiveLimits.maxFiles) throw broken(`it has more than ${archiveLimits.maxFiles} files`);
      const chunks: Buffer[] = [];
      await collect(entry, chunks);
      files.push({
        path: name,
        executable: ((mode ?? 0) & 0o100) !== 0,
        content: new Uint8Array(Buffer.concat(chunks)),
      });
    }
  } catch (error) {
    throw error instanceof StarlingError ? error : broken(`it is not a tar archive: ${errorMessage(error)}`, error);
  }
  return files;
}

/** @param root - what the name is relative to, such as `archive`. @returns why the name is refused, or undefined. */
export function nameProblem(name: string, root: string): string | undefined {
  if (name === "" || name.includes("\0") || name.includes("\\")) return "is not a file name";
  if (Buffer.byteLength(name) > archiveLimits.maxPathBytes) return `is longer than ${archiveLimits.maxPathBytes} bytes`;
  if (name.startsWith("/")) return "is an absolute path";
  if (name.split("/").some((part) => part === ".." || part === "." || part === "")) return `leads out of the ${root}`;
  return undefined;
}

function broken(reason: string, cause?: unknown): StarlingError {
  return new StarlingError(reason, { code: "ArchiveInvalid", retry: "permanent", cause });
}

function invalid(reason: string, cause?: unknown): StarlingError {
  return new StarlingError(`the artifact is damaged or hostile: ${reason}`, {
    code: "ArtifactInvalid",
    retry: "permanent",
    cause,
  });
}
