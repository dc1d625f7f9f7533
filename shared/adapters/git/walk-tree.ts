import { LinkFollower, type RealFolder } from "#shared/adapters/git/follow-link.ts";
import { type GitLimits, gitTooLarge, narrowPaths } from "#shared/adapters/git/git-limits.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { isLfsPointer, refusedPath } from "#shared/adapters/git/refused-path.ts";
import type { TreeContent, TreeFolder } from "#shared/adapters/git/tree-node.ts";
import type { TreeFile } from "#shared/ports.ts";
import { IgnoreError } from "#shared/source/ignore-pattern.ts";
import {
  type IgnoreScope,
  ignoreFile,
  ignoreRoot,
  ignoreScopeOf,
  ignoresFile,
  maxIgnoreFileBytes,
  withIgnoreFile,
} from "#shared/source/ignore-rules.ts";
import { isWithin } from "#shared/source/tree-listing.ts";

export interface WalkedTree {
  /** The root of the repository. */
  readonly root: TreeFolder;
  readonly paths: readonly string[];
  /** `spec.ignore` */
  readonly ignore: string | undefined;
  /** Folders whose files are taken as they are: those of `spec.include` in a folder of this machine. */
  readonly whole?: readonly string[];
  readonly reading: PackReading;
}

/**
 * The files below `paths`, without files that are ignored. An ignored entry is not read, so that it can neither be too large nor
 * unreadable; the place of a link decides, not its target. A link is replaced by its target, which may be
 * anything in the repository. An unreadable entry refuses everything, because its objects would be pruned if it were
 * left out. One folder can be in many places, and a few that contain each other unfold to billions, so that each visit
 * counts.
 * @throws StarlingError `GitTooLarge`; `GitPathRefused` for a name that is not a valid file name on every system, and
 * for an unreadable entry.
 */
export async function walkTree({ root, paths, ignore, whole = [], reading }: WalkedTree): Promise<TreeFile[]> {
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

  /** The scope with the patterns of the folder's own file. */
  async function withOwn(scope: IgnoreScope, place: RealFolder, folder: string): Promise<IgnoreScope> {
    const path = folder === "" ? ignoreFile : `${folder}/${ignoreFile}`;
    const content = await (await place.folder.ignoreFile())?.read(maxIgnoreFileBytes);
    if (content === undefined) return scope;
    if (typeof content === "string") throw refusedPath(path, `has more than ${maxIgnoreFileBytes / 1024} KiB`);
    return within(path, () => withIgnoreFile(scope, folder, content));
  }

  async function walk(place: RealFolder, folder: string, above: IgnoreScope | undefined): Promise<void> {
    if (entered.has(place.path)) throw refusedPath(folder, "is reached by a link that is part of a cycle of links");
    entered.add(place.path);
    const names = new Set<string>();
    const scope = above === undefined ? undefined : await withOwn(above, place, folder);
    for await (const [name, node] of place.folder.entries()) {
      await count();
      const path = folder === "" ? name : `${folder}/${name}`;
      if (!leadsTo(path, paths)) continue;
      const own = scope === undefined || isWithin(path, whole) ? undefined : scope;
      const { file, folder: below } = own === undefined ? notIgnored : within(path, () => fates(own, path));
      const isOut = own !== undefined && below === undefined;
      if (file === "out" && (isOut || node.kind === "file" || node.kind === "unreadable")) continue;
      if (isOut && (node.kind === "folder" || node.kind === "unreadable")) continue;
      checkName(path, { name, isTaken: names.has(name), limits });
      names.add(name);
      const found = await links.follow({ name, node, place, path });
      if (found.kind === "folder" && !isOut) await walk(found.place, path, below);
      else if (found.kind === "file" && file === "in" && isWithin(path, paths)) await take(path, found.node);
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

  await walk(
    { path: "", folder: root, parent: undefined },
    "",
    within("spec.ignore", () => ignoreRoot(ignore, { hasDefaults: true })),
  );
  return files;
}

/** The fates of an entry as a file and as a folder: a link can be either. */
interface Fates {
  readonly file: "in" | "out";
  /** The scope of what is below it; absent when nothing is ignored there, or everything. */
  readonly folder?: IgnoreScope | undefined;
}

const notIgnored: Fates = { file: "in" };

function fates(scope: IgnoreScope, path: string): Fates {
  return { file: ignoresFile(scope, path) ? "out" : "in", folder: ignoreScopeOf(scope, path) };
}

/** @throws StarlingError `GitPathRefused` in the place of an `IgnoreError`. */
function within<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof IgnoreError ? refusedPath(path, error.message) : error;
  }
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
