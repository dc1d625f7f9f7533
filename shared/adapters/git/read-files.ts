import { type GitLimits, gitTooLarge, narrowPaths } from "#shared/adapters/git/git-limits.ts";
import { treeEntries } from "#shared/adapters/git/git-objects.ts";
import type { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { TreeFile } from "#shared/ports.ts";
import { isIgnored, isWithin } from "#shared/source/tree-listing.ts";

export interface WantedFiles {
  readonly objects: PackObjects;
  /** Of the commit's tree. */
  readonly tree: string;
  readonly paths: readonly string[];
  readonly reading: PackReading;
}

/**
 * The regular files below `paths`: no submodules, no symbolic links, and nothing that an artifact leaves out. One
 * tree can be in many places, and a few that hold each other unfold to billions: what is looked at is counted.
 * @throws StarlingError `GitTooLarge`; `GitPathRefused` for a name that could not be a file everywhere.
 */
export async function readFiles({ objects, tree, paths, reading }: WantedFiles): Promise<TreeFile[]> {
  const { limits, pace } = reading;
  const files: TreeFile[] = [];
  let entries = 0;
  let bytes = 0;

  async function walk(oid: string, folder: string): Promise<void> {
    const names = new Set<string>();
    for (const { mode, name, oid: child } of treeEntries(await objects.read(oid, "tree"))) {
      if (pace.isDue()) await pace.rest();
      entries += 1;
      if (entries > limits.maxEntries) {
        throw gitTooLarge(`more than ${limits.maxEntries} files and folders are on the way to spec.paths`, narrowPaths);
      }
      const path = folder === "" ? name : `${folder}/${name}`;
      if (isIgnored(name) || !leadsTo(path, paths)) continue;
      checkName(path, { name, isTaken: names.has(name), limits });
      names.add(name);
      if (isTree(mode)) await walk(child, path);
      else if (isRegularFile(mode) && isWithin(path, paths)) await take(path, { mode, oid: child });
    }
  }

  async function take(path: string, { mode, oid }: { readonly mode: string; readonly oid: string }): Promise<void> {
    if (files.length >= limits.maxFiles)
      throw gitTooLarge(`spec.paths hold more than ${limits.maxFiles} files`, narrowPaths);
    const found = `spec.paths hold more than ${limits.maxContentBytes} bytes`;
    // The server was asked to leave out those that are too large alone.
    if (!objects.has(oid)) throw gitTooLarge(`${found}, or the server does not have all of "${path}"`, narrowPaths);
    const content = await objects.read(oid, "blob");
    bytes += content.length;
    if (bytes > limits.maxContentBytes) throw gitTooLarge(found, narrowPaths);
    files.push({
      path,
      executable: mode === "100755",
      content: new Uint8Array(content.buffer, content.byteOffset, content.length),
    });
  }

  await walk(tree, "");
  return files;
}

function isTree(mode: string): boolean {
  return mode === "40000" || mode === "040000";
}

function isRegularFile(mode: string): boolean {
  return mode.startsWith("100");
}

/** True for what lies below one of `paths`, and for the folders on the way to it. */
function leadsTo(path: string, paths: readonly string[]): boolean {
  return isWithin(path, paths) || paths.some((part) => part.startsWith(`${path}/`));
}

/** A name that leaves its folder, that systems read differently, or that is there twice. */
function checkName(
  path: string,
  { name, isTaken, limits }: { readonly name: string; readonly isTaken: boolean; readonly limits: GitLimits },
): void {
  const size = Buffer.byteLength(path);
  if (size > limits.maxPathBytes) {
    const found = `the repository has a path of ${size} bytes, "${path.slice(0, 60)}…"`;
    throw gitTooLarge(`${found}; at most ${limits.maxPathBytes} are taken`, narrowPaths);
  }
  const isHostile = name === "" || name === "." || name === ".." || /[/\\\p{Cc}]/u.test(name);
  if (!isHostile && !isTaken) return;
  const problem = isTaken ? "is there twice" : "is no name of a file on every system";
  throw new StarlingError(
    `the path ${JSON.stringify(path)} of the repository ${problem}; rename it, or narrow spec.paths`,
    {
      code: "GitPathRefused",
      retry: "permanent",
    },
  );
}
