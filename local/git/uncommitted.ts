/** Whether a working folder of the user's has what no commit has, asked without a word of the folder's own settings. */
import { copyFile, lstat, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runUsersGit } from "#local/git/git-command.ts";

/** What says how files stand in the folder, and starts nothing. */
const harmless = "^core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol)$";

/**
 * A folder that came from elsewhere may name programs in its settings, in those that they include, and in those of its
 * submodules: filters, hooks, monitors, remotes. `git status` runs them. So it is run in a repository of its own, which has the
 * folder's index and objects, and the settings of the user.
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
  // It ends with 1 where there are none.
  const listed = await runUsersGit(["config", "-z", "--get-regexp", harmless], { folder }).catch(() => "");
  return listed.split("\0").flatMap((line) => (line === "" ? [] : [line.replace("\n", "=")]));
}

/** What is ignored in this clone alone. */
async function copyExcludes(from: string, to: string): Promise<void> {
  const file = join(from, "info", "exclude");
  if (!(await isFile(file))) return;
  await mkdir(join(to, "info"), { recursive: true });
  await copyFile(file, join(to, "info", "exclude"));
}

/** With what it is split into; as old as it is, for git reads files anew that are no older. */
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
