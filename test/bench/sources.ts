/** Repositories of many files, and git's own commands on them: what the resolve function is compared with. */

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { runGit, spawnGit } from "#local/git/git-command.ts";
import { initRepository, repositoryFolder } from "#local/git/repository.ts";
import { startGit } from "#shared/adapters/git/start-git.ts";
import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

export interface ManyFiles {
  readonly count: number;
  readonly bytesOfEach: number;
}

const filesInFolder = 20;
const foldersInTeam = 100;

/** `teams/3/apps/50`, the folder of twenty files that has the file of this number. */
export function folderOf(file: number): string {
  const folder = Math.floor(file / filesInFolder);
  return `teams/${Math.floor(folder / foldersInTeam)}/apps/${folder % foldersInTeam}`;
}

/** Makes a bare repository with one commit of many small files on `main`. */
export async function makeRepository(root: string, name: string, files: ManyFiles): Promise<void> {
  const folder = repositoryFolder(root, name);
  await initRepository(folder);
  const git = spawnGit(["-C", folder, "fast-import", "--quiet"]);
  const ended = once(git, "close");
  for (const text of importOf(files)) {
    if (!git.stdin.write(text)) await once(git.stdin, "drain");
  }
  git.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
}

function* importOf({ count, bytesOfEach }: ManyFiles): Iterable<string> {
  yield `commit refs/heads/main\ncommitter A <a@example.com> 1767323045 +0000\ndata 4\nmany\n`;
  for (let file = 0; file < count; file++) {
    const content = contentOf(file, bytesOfEach);
    yield `M 100644 inline ${folderOf(file)}/f${file % filesInFolder}.yaml\ndata ${content.length}\n${content}\n`;
  }
  yield "\n";
}

/** Text that no other file has, which shrinks like a manifest. */
function contentOf(file: number, bytes: number): string {
  let text = `# ${file}\n`;
  for (let line = 0; text.length < bytes; line++) {
    const value = Math.imul(file * 1000 + line, 0x9e3779b1) >>> 0;
    text += `- {name: setting-${line}, value: "${value.toString(16)}", description: the setting of a team}\n`;
  }
  return text.slice(0, bytes);
}

/** The commits of `main`, asked with `git ls-remote`. */
export async function listWithGit(url: string): Promise<string> {
  return (await outputOf(["ls-remote", url, "refs/heads/main"])).toString();
}

/** Fetches with `git fetch --depth 1` into an empty repository, and packs with `git archive` and gzip. */
export async function fetchWithGit(url: string): Promise<{ readonly ms: number; readonly packed: Buffer }> {
  const folder = await mkdtemp(join(tmpdir(), "starling-bench-"));
  try {
    await runGit(["init", "--quiet", "--bare", folder]);
    const started = performance.now();
    await outputOf(["-C", folder, "fetch", "--quiet", "--depth", "1", url, "main"]);
    const archive = spawnGit(["-C", folder, "archive", "--format=tar", "FETCH_HEAD"]);
    const packed = await buffer(archive.stdout.pipe(createGzip()));
    return { ms: performance.now() - started, packed };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The digest that the artifact of these files has. */
export async function digestOf(packed: Uint8Array): Promise<string> {
  return treeDigest(await readTarGz(packed, { folders: "passed over" }));
}

async function outputOf(args: readonly string[]): Promise<Buffer> {
  const variables = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const git = startGit(args, { reach: "remotes", variables });
  git.stdin.end();
  git.stderr.resume();
  const [output, [code]] = await Promise.all([buffer(git.stdout), once(git, "close")]);
  if (code !== 0) throw new Error(`git ${args.join(" ")} ended with ${code}`);
  return output;
}
