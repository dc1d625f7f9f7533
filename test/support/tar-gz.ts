import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";

export interface TarEntry {
  readonly name: string;
  readonly body?: string | Buffer;
  readonly type?: "file" | "directory" | "symlink" | "link" | "character-device";
}

/** A tar.gz of the entries as they are, also of those that no archive should have. */
export async function tarGz(entries: readonly TarEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, body = "", type = "file" } of entries)
    archive.entry({ name, type, ...(type.endsWith("link") ? { linkname: "/etc/passwd" } : {}) }, body);
  archive.finalize();
  return gzipSync(await buffer(archive));
}
