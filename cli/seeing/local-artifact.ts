/** A working folder as an artifact: the files that a commit of it would give. */
import { execFile } from "node:child_process";
import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { promisify } from "node:util";
import { usageFailure } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import { defaultGitLimits } from "#shared/adapters/git/git-limits.ts";
import type { PlannedArtifact } from "#shared/fleet/rollout/plan.ts";
import { chartFolders } from "#shared/source/helm/chart.ts";
import { isIgnored, isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const run = promisify(execFile);

/** More is no repository of manifests: somebody named the wrong folder. */
const maxFiles = 20_000;
const maxListingBytes = 64 * 1024 * 1024;
/** Else a folder that came from elsewhere could name programs that git runs. */
const quiet = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

export interface LocalArtifact {
  readonly artifact: PlannedArtifact;
  readonly files: readonly ListedFile[];
}

/**
 * @param paths - of the Source; `.` is all of the folder, which stands for the repository.
 * @throws CliFailure when the folder is none, or has nothing in one of the paths.
 */
export async function readLocalArtifact(
  { cwd }: Pick<CliIo, "cwd">,
  dir: string,
  paths: readonly string[],
): Promise<LocalArtifact> {
  const folder = resolve(cwd, dir);
  const files: ListedFile[] = [];
  const isInside = insideOf(folder);
  let bytes = 0;
  for (const path of await listed(folder, dir)) {
    if (isIgnored(path) || !isWithin(path, paths)) continue;
    const found = await lstat(join(folder, path)).catch(() => undefined);
    // Links and submodules are no part of an artifact; what was deleted is still in git's index.
    if (found?.isFile() !== true || !(await isInside(dirname(path)))) continue;
    bytes += found.size;
    if (bytes > defaultGitLimits.maxContentBytes)
      throw usageFailure(
        `more than ${defaultGitLimits.maxContentBytes} bytes in ${dir}`,
        "name the folders that are synced in the Source's spec.paths",
      );
    if (files.length >= maxFiles)
      throw usageFailure(`more than ${maxFiles} files in ${dir}`, "--source NAME=FOLDER of one repository");
    const content = new Uint8Array(await readFile(join(folder, path)));
    files.push({ path, executable: (found.mode & 0o100) !== 0, content });
  }
  const next = "--source NAME=FOLDER, where the folder is the root of the repository";
  return artifactOf(files, { paths, revision: `folder ${dir}`, where: dir, next });
}

/**
 * Whether a folder below is there itself, and no link in its place or above it: git's index knows the files that were below it
 * before, and may say anything in a folder that came from elsewhere.
 */
function insideOf(folder: string): (below: string) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  const real = realpath(folder).catch(() => folder);
  const look = async (below: string) => {
    const wanted = join(await real, below);
    return isBelow(await real, wanted) && (await realpath(wanted).catch(() => undefined)) === wanted;
  };
  return (below) => {
    const asked = known.get(below) ?? look(below);
    known.set(below, asked);
    return asked;
  };
}

function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
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
  const args = ["-C", folder, ...quiet, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const env = { ...process.env, GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1" };
  const listing = await run("git", args, { maxBuffer: maxListingBytes, env }).catch(() => undefined);
  if (listing !== undefined) return listing.stdout.split("\0").filter((path) => path !== "");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return paths.map((path) => path.slice(folder.length + 1));
}
