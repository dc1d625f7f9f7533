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
 * The files below `paths`, without files that an artifact leaves out. A link is replaced by its target, which may be
 * anything in the repository. An unreadable entry refuses everything, because its objects would be pruned if it were
 * left out. One folder can be in many places, and a few that contain each other unfold to billions, so that each visit
 * counts.
 * @throws StarlingError `GitTooLarge`; `GitPathRefused` for a name that is not a valid file name on every system, and
 * for an unreadable entry.
 */
export async function walkTree({ root, paths, reading }: WalkedTree): Promise<TreeFile[]> {
  const { limits, pace } = reading;
  const files: TreeFile[] = [];
  /** The folders that the walk is inside of, by their real paths. Links can make a folder a child of another one. */
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
    if (entered.has(place.path)) throw refusedPath(folder, "is reached by a link that is part of a cycle of links");
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
      else if (found.kind === "file" && isWithin(path, paths)) await take(path, found.node);
    }
    entered.delete(place.path);
  }

  async function take(path: string, node: TreeContent): Promise<void> {
    if (files.length >= limits.maxFiles)
      throw gitTooLarge(`spec.paths contain more than ${limits.maxFiles} files`, narrowPaths);
    const found = `spec.paths contain more than ${limits.maxContentBytes} bytes`;
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

/** True for an entry below one of `paths`, and for the folders above one. */
function leadsTo(path: string, paths: readonly string[]): boolean {
  return isWithin(path, paths) || paths.some((part) => part.startsWith(`${path}/`));
}

/** Refuses a name that leaves its folder, that systems read differently, or that appears twice. */
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
  if (isHostile) throw refusedPath(path, "is not a valid file name on every system");
  if (isTaken) throw refusedPath(path, "is there twice");
}
