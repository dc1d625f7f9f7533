/** A working folder as an artifact: the files that a commit of it would give. */
import { execFile } from "node:child_process";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { usageFailure } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import type { PlannedArtifact } from "#shared/fleet/rollout/plan.ts";
import { chartFolders } from "#shared/source/helm/chart.ts";
import { isIgnored, isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const run = promisify(execFile);

/** More is no repository of manifests: somebody named the wrong folder. */
const maxFiles = 20_000;
const maxListingBytes = 64 * 1024 * 1024;

export interface LocalArtifact {
  readonly artifact: PlannedArtifact;
  readonly files: readonly ListedFile[];
}

/**
 * @param paths - of the Source; `.` is all of the folder, which stands for the repository.
 * @throws CliFailure when the folder is none, or has nothing in one of the paths.
 */
export async function readLocalArtifact(io: CliIo, dir: string, paths: readonly string[]): Promise<LocalArtifact> {
  const folder = resolve(io.cwd, dir);
  const files: ListedFile[] = [];
  for (const path of await listed(folder, dir)) {
    if (isIgnored(path) || !isWithin(path, paths)) continue;
    const found = await lstat(join(folder, path)).catch(() => undefined);
    // Links and submodules are no part of an artifact; what was deleted is still in git's index.
    if (found?.isFile() !== true) continue;
    if (files.length >= maxFiles)
      throw usageFailure(`more than ${maxFiles} files in ${dir}`, "--source NAME=FOLDER of one repository");
    const content = new Uint8Array(await readFile(join(folder, path)));
    files.push({ path, executable: (found.mode & 0o100) !== 0, content });
  }
  const next = "--source NAME=FOLDER, where the folder is the root of the repository";
  return artifactOf(files, { paths, revision: `folder ${dir}`, where: dir, next });
}

export interface ArtifactAbout {
  /** Of the Source. */
  readonly paths: readonly string[];
  readonly revision: string;
  /** For whoever misses something there: where that is, and what to do. */
  readonly where: string;
  readonly next: string;
}

/** @throws CliFailure when one of the paths has nothing. */
export function artifactOf(
  files: readonly ListedFile[],
  { paths, revision, where, next }: ArtifactAbout,
): LocalArtifact {
  for (const path of paths) {
    if (files.some((file) => isWithin(file.path, [path]))) continue;
    const place = path === "." ? where : `${where}/${path}, a path of the Source`;
    throw usageFailure(`no files in ${place}`, next);
  }
  const charts = chartFolders(files);
  return { artifact: { revision, digest: treeDigest(files), ...(charts.length === 0 ? {} : { charts }) }, files };
}

/** As git would add them; all of them where the folder is no working tree, or there is no git. */
async function listed(folder: string, dir: string): Promise<readonly string[]> {
  const found = await lstat(folder).catch(() => undefined);
  if (found?.isDirectory() !== true) throw usageFailure(`${dir} is no folder`, "--source NAME=FOLDER");
  const args = ["-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listing = await run("git", args, { maxBuffer: maxListingBytes }).catch(() => undefined);
  if (listing !== undefined) return listing.stdout.split("\0").filter((path) => path !== "");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return paths.map((path) => path.slice(folder.length + 1));
}
