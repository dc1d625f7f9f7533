/** A working folder as an artifact: the files that a commit of it would have. */
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { localTree } from "#cli/seeing/local-tree.ts";
import { usageFailure } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import { defaultGitLimits } from "#shared/adapters/git/git-limits.ts";
import { Pace } from "#shared/adapters/git/pace.ts";
import { walkTree } from "#shared/adapters/git/walk-tree.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { PlannedArtifact } from "#shared/fleet/rollout/desired-plan.ts";
import type { TreeFile } from "#shared/ports.ts";
import { folderDigests } from "#shared/source/folder-digests.ts";
import { chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

export interface LocalArtifact {
  readonly artifact: PlannedArtifact;
  readonly files: readonly ListedFile[];
}

/** The part of a folder that a Source takes; the folder stands for the repository. */
export interface LocalPart {
  /** `.` is the whole folder. */
  readonly paths: readonly string[];
  /** `spec.ignore` */
  readonly ignore?: string | undefined;
  /** Places of the included files, which have been chosen by another Source. */
  readonly whole?: readonly string[];
}

/**
 * @throws CliFailure when it is not a folder, has no files in one of the paths, or has files that `resolve` refuses.
 */
export async function readLocalArtifact(
  { cwd }: Pick<CliIo, "cwd">,
  dir: string,
  part: LocalPart,
): Promise<LocalArtifact> {
  const folder = resolve(cwd, dir);
  const found = await stat(folder).catch(() => undefined);
  if (found?.isDirectory() !== true) throw usageFailure(`${dir} is not a folder`, "--source NAME=FOLDER");
  const { paths } = part;
  const files = await filesOf(folder, dir, part);
  const next = "--source NAME=FOLDER, where the folder is the root of the repository";
  return artifactOf(files, { paths, revision: `folder ${dir}`, where: dir, next });
}

/** The files within the limits of `resolve`, which would refuse a commit of the folder for the same reasons. */
async function filesOf(
  folder: string,
  dir: string,
  { paths, ignore, whole = [] }: LocalPart,
): Promise<readonly TreeFile[]> {
  const reading = { limits: defaultGitLimits, pace: new Pace(defaultGitLimits.timeoutSeconds) };
  try {
    return await walkTree({ root: await localTree(await realpath(folder)), paths, ignore, whole, reading });
  } catch (error) {
    if (!(error instanceof StarlingError)) throw error;
    throw usageFailure(
      `${error.code}: ${dir}: ${error.message}`,
      "repair the folder, or choose another one with --source NAME=FOLDER",
    );
  }
}

export interface ArtifactAbout {
  /** Paths of the Source. */
  readonly paths: readonly string[];
  readonly revision: string;
  /** For an error about missing files: the place, and what to do. */
  readonly where: string;
  readonly next: string;
}

/** @throws CliFailure when one of the paths has no files. */
export function artifactOf(
  files: readonly ListedFile[],
  { paths, revision, where, next }: ArtifactAbout,
): LocalArtifact {
  for (const path of paths) {
    if (files.some((file) => isWithin(file.path, [path]))) continue;
    const place = path === "." ? where : `${where}/${path}, a path of the Source`;
    throw usageFailure(`there are no files in ${place}`, next);
  }
  const charts = chartFolders(files);
  const noted = { ...(charts.length === 0 ? {} : { charts }), folders: folderDigests(files) };
  return { artifact: { revision, digest: treeDigest(files), ...noted }, files };
}
