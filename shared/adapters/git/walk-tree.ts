import { LinkFollower, type RealFolder } from "#shared/adapters/git/follow-link.ts";
import { type GitLimits, gitTooLarge, narrowPaths } from "#shared/adapters/git/git-limits.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { isLfsPointer, refusedPath } from "#shared/adapters/git/refused-path.ts";
import type { TreeFolder, TreeNode } from "#shared/adapters/git/tree-node.ts";
import type { TreeFile } from "#shared/ports.ts";
import { isIgnored, isWithin } from "#shared/source/tree-listing.ts";

export interface WalkedTree {
  /** The root of the repository. */
  readonly root: TreeFolder;
  readonly paths: readonly string[];
  readonly reading: PackReading;
}

type TreeContent = Extract<TreeNode, { readonly kind: "file" }>;

/**
 * The files below `paths`, without what an artifact leaves out. A link gives what it leads to, as if that stood in its
 * place; it may lead to anything in the repository. What cannot be read refuses all: were it left out, its objects would
 * be pruned. One folder can be in many places, and a few that hold each other unfold to billions: each visit counts.
 * @throws StarlingError `GitTooLarge`; `GitPathRefused` for a name that could not be a file everywhere, and for what
 * cannot be read.
 */
export async function walkTree({ root, paths, reading }: WalkedTree): Promise<TreeFile[]> {
  const { limits, pace } = reading;
  const files: TreeFile[] = [];
  /** Folders that the walk is in, by where they are: links make a folder another's child. */
  const entered = new Set<string>();
  let entries = 0;
  let bytes = 0;

  async function count(): Promise<void> {
    if (pace.isDue()) await pace.rest();
    entries += 1;
    if (entries > limits.maxEntries)
      throw gitTooLarge(`more than ${limits.maxEntries} files and folders are on the way to spec.paths`, narrowPaths);
  }

  const links = new LinkFollower(count);

  async function walk(place: RealFolder, folder: string): Promise<void> {
    if (entered.has(place.path)) throw refusedPath(folder, "is reached by a link that leads around in a circle");
    entered.add(place.path);
    const names = new Set<string>();
    for await (const [name, node] of place.folder.entries()) {
      await count();
      const path = folder === "" ? name : `${folder}/${name}`;
      if (isIgnored(name) || !leadsTo(path, paths)) continue;
      checkName(path, { name, isTaken: names.has(name), limits });
      names.add(name);
      const found = await links.follow({ name, node, place, path });
      if (found.kind === "folder") await walk(found.place, path);
      else if (isWithin(path, paths)) await take(path, found.node);
    }
    entered.delete(place.path);
  }

  async function take(path: string, node: TreeContent): Promise<void> {
    if (files.length >= limits.maxFiles)
      throw gitTooLarge(`spec.paths hold more than ${limits.maxFiles} files`, narrowPaths);
    const found = `spec.paths hold more than ${limits.maxContentBytes} bytes`;
    const content = await node.read(limits.maxContentBytes - bytes);
    if (content === "too large") throw gitTooLarge(found, narrowPaths);
    if (content === "missing") throw gitTooLarge(`${found}, or the server does not have all of "${path}"`, narrowPaths);
    if (isLfsPointer(content)) throw refusedPath(path, "is a pointer of Git LFS, whose file is not fetched");
    bytes += content.length;
    files.push({ path, executable: node.executable, content });
  }

  await walk({ path: "", folder: root, parent: undefined }, "");
  return files;
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
  if (isHostile) throw refusedPath(path, "is no name of a file on every system");
  if (isTaken) throw refusedPath(path, "is there twice");
}
