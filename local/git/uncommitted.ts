/** Detects uncommitted changes in a user's folder without using the settings of that folder. */
import { copyFile, lstat, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runUsersGit } from "#local/git/git-command.ts";

/** Settings that affect the state of files and start no program. */
const harmless = "^core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol)$";

/**
 * A folder from elsewhere may name programs in its settings, in included settings and in submodules: filters, hooks,
 * monitors, remotes. `git status` runs them. So the command runs in a separate repository, which has the folder's index
 * and objects and the settings of the user.
 */
export async function isUncommitted(folder: string, path: string): Promise<boolean> {
  const asked = ["--path-format=absolute", "--git-dir", "--git-common-dir", "HEAD^{commit}"];
  const [gitDir = "", common = "", head = ""] = (await runUsersGit(["rev-parse", ...asked], { folder })).split("\n");
  const settings = await settingsOf(folder);
  const scratch = await mkdtemp(join(tmpdir(), "starling-status-"));
  try {
    await runUsersGit(["init", "--quiet", "--bare", "--template=", scratch]);
    await writeFile(join(scratch, "HEAD"), `${head}\n`);
    await copyIndex(gitDir, scratch);
    const given = ["core.bare=false", ...settings].flatMap((setting) => ["-c", setting]);
    const where = [`--git-dir=${scratch}`, `--work-tree=${folder}`];
    const status = ["status", "--porcelain", "--ignore-submodules=all", "--", path];
    await copyExcludes(common, scratch);
    const changes = await runUsersGit([...where, ...given, ...status], {
      folder,
      variables: { GIT_OBJECT_DIRECTORY: join(common, "objects") },
    });
    return changes !== "";
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function settingsOf(folder: string): Promise<readonly string[]> {
  // git exits with 1 when no setting matches.
  const listed = await runUsersGit(["config", "-z", "--get-regexp", harmless], { folder }).catch(() => "");
  return listed.split("\0").flatMap((line) => (line === "" ? [] : [line.replace("\n", "=")]));
}

/** Copies the ignore rules of this clone. */
async function copyExcludes(from: string, to: string): Promise<void> {
  const file = join(from, "info", "exclude");
  if (!(await isFile(file))) return;
  await mkdir(join(to, "info"), { recursive: true });
  await copyFile(file, join(to, "info", "exclude"));
}

/**
 * Copies the index and its split parts, and keeps their times. Git reads every file again that is not older than the
 * index.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  const names = await readdir(from);
  for (const name of names.filter((one) => one === "index" || one.startsWith("sharedindex."))) {
    if (!(await isFile(join(from, name)))) continue;
    await copyFile(join(from, name), join(to, name));
    const { mtimeMs } = await lstat(join(from, name));
    const seconds = Math.floor(mtimeMs / 1000);
    await utimes(join(to, name), seconds, seconds);
  }
}

async function isFile(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() === true;
}
