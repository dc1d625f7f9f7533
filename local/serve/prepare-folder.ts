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

/** Says whose folder it is before its first start is over, and keeps git from it should a repository be made around it. */
const mark = "# The state of a Starling on this machine, with its keys: it is not for a repository.\n*\n";
const markFile = (folder: string) => join(folder, ".gitignore");

/**
 * Makes a state folder, for its owner only, or finds one.
 * @throws LocalFailure for a folder of somebody else's, one whose keys a git repository would take, and one that cannot be
 *   written; nothing is changed then.
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

/** What a repository ignores is not committed with the rest. */
async function refuseRepository(folder: string): Promise<void> {
  const real = realPath(folder);
  const top = workTreeOf(real);
  if (top === undefined || (await isIgnored(top, real))) return;
  const line = `/${relative(top, real)}/`;
  const ignored =
    line === "//" ? "" : `; or let git ignore it: echo ${quoted(line)} >> ${quoted(join(top, ".gitignore"))}`;
  throw new LocalFailure(
    `--state is ${folder}, in the git repository ${top}: the keys of the machine would be committed with it`,
    { exit: "wrongInput", next: `starling local up --state DIR   (outside of a repository${ignored})` },
  );
}

/** A folder that is still to be made is where its parent really is. */
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
    // Not ignored; or no git, which then commits nothing, but others may.
    return false;
  }
}

function refuseForeign(folder: string): void {
  const found = entriesOf(folder);
  if (found.length === 0 || existsSync(identityFile(folder)) || isMarked(folder)) return;
  const shown = found.slice(0, 3).join(", ");
  throw new LocalFailure(
    `--state is ${folder}, which holds other things than the state of a machine: ${shown}${found.length > 3 ? ", …" : ""}`,
    {
      exit: "wrongInput",
      next: `starling local up --state ${quoted(join(folder, "starling-local"))}   (a folder that is new, or empty)`,
    },
  );
}

/** None of what is no folder: that it cannot be one is said when it is made. */
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
