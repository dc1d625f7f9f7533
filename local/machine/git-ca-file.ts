import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface GitCaFile {
  readonly path: string;
  stop(): Promise<void>;
}

/** Writes certificates to a file of their own. On Lambda a layer has this file. */
export async function keepGitCa(pem: string): Promise<GitCaFile> {
  const folder = await mkdtemp(join(tmpdir(), "starling-git-ca-"));
  const path = join(folder, "git-ca.pem");
  await writeFile(path, pem);
  return { path, stop: () => rm(folder, { recursive: true, force: true }) };
}
