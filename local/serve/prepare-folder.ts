import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { LocalFailure } from "#local/base/local-failure.ts";
import { runUsersGit } from "#local/git/git-command.ts";
import { identityFile } from "#local/serve/state-folder.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/**
 * Marks the folder as Starling's before its first start is complete. It also makes git ignore the folder if a
 * repository is created around it later.
 */
const mark = "# The state of a local Starling, with its keys. Do not commit it.\n*\n";
const markFile = (folder: string) => join(folder, ".gitignore");

/**
 * Creates a state folder that only its owner can read, or accepts an existing one. @throws LocalFailure for a folder
 * with other files, for a folder inside a git repository that would commit its keys, and for a folder that is not
 * writable. Nothing is changed then.
 */
export async function prepareFolder(folder: string): Promise<void> {
  await refuseRepository(folder);
  refuseForeign(folder);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    chmodSync(folder, 0o700);
    if (!existsSync(markFile(folder))) writeFileSync(markFile(folder), mark, { mode: 0o600 });
  } catch (cause) {
    throw new LocalFailure(`cannot write to ${folder}: ${errorMessage(cause)}`, {
      exit: "wrongInput",
      next: "starling local up --state DIR   (a folder of your own)",
      cause,
    });
  }
}

/** A folder that the repository ignores is allowed, because git does not commit it. */
async function refuseRepository(folder: string): Promise<void> {
  const real = realPath(folder);
  const top = workTreeOf(real);
  if (top === undefined || (await isIgnored(top, real))) return;
  const line = `/${relative(top, real)}/`;
  const ignored =
    line === "//" ? "" : `; or make git ignore the folder: echo ${quoted(line)} >> ${quoted(join(top, ".gitignore"))}`;
  throw new LocalFailure(
    `--state is ${folder}, in the git repository ${top}: git would commit the keys of the machine`,
    { exit: "wrongInput", next: `starling local up --state DIR   (outside a repository${ignored})` },
  );
}

/** Resolves links. A folder that does not exist yet is resolved by its parent. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

function workTreeOf(path: string): string | undefined {
  if (existsSync(join(path, ".git"))) return path;
  const parent = dirname(path);
  return parent === path ? undefined : workTreeOf(parent);
}

async function isIgnored(top: string, folder: string): Promise<boolean> {
  try {
    await runUsersGit(["check-ignore", "--quiet", "--", identityFile(folder)], { folder: top });
    return true;
  } catch {
    // git does not ignore it, or git is missing. In the second case another user of the repository may still commit it.
    return false;
  }
}

function refuseForeign(folder: string): void {
  const found = entriesOf(folder);
  if (found.length === 0 || existsSync(identityFile(folder)) || isMarked(folder)) return;
  const shown = found.slice(0, 3).join(", ");
  throw new LocalFailure(
    `--state is ${folder}, which contains other files than the state of a machine: ${shown}${found.length > 3 ? ", …" : ""}`,
    {
      exit: "wrongInput",
      next: `starling local up --state ${quoted(join(folder, "starling-local"))}   (a new or empty folder)`,
    },
  );
}

/** The entries of a folder, none if it is not a folder. Creating the folder reports that problem later. */
function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function isMarked(folder: string): boolean {
  return existsSync(markFile(folder)) && readFileSync(markFile(folder), "utf8") === mark;
}
