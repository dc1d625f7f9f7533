import { refusedPath } from "#shared/adapters/git/refused-path.ts";
import type { TreeFolder, TreeNode } from "#shared/adapters/git/tree-node.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** A folder, where it really is: no part of its path is a link. */
export interface RealFolder {
  readonly path: string;
  readonly folder: TreeFolder;
  /** Of the root there is none. */
  readonly parent: RealFolder | undefined;
}

export interface FoundEntry {
  readonly name: string;
  readonly node: TreeNode;
  /** The folder that it is in. */
  readonly place: RealFolder;
  /** By which the walk came to it, for messages. */
  readonly path: string;
}

export type Found =
  | { readonly kind: "folder"; readonly place: RealFolder }
  | { readonly kind: "file"; readonly node: Extract<TreeNode, { readonly kind: "file" }> };

/** Links on the way from one link to what it stands for: as many as Linux follows. */
const maxLinks = 40;
const maxTargetBytes = 4096;
const maxShown = 100;

interface Way {
  readonly path: string;
  /** What the first link says. */
  readonly first: string;
  links: number;
}

/** Finds what links stand for, within one tree: what a link leads out of it is never looked at. */
export class LinkFollower {
  readonly #count: () => Promise<void>;
  /** Names of folders that links lead through, by the folder's path. */
  readonly #known = new Map<string, ReadonlyMap<string, TreeNode>>();

  /** @param count - is called for whatever is looked at, and throws when that is too much. */
  constructor(count: () => Promise<void>) {
    this.#count = count;
  }

  /** @throws StarlingError `GitPathRefused` for what cannot be read, and for a link that leads to nothing readable. */
  async follow({ name, node, place, path }: FoundEntry): Promise<Found> {
    if (node.kind !== "link") return found({ name, node, place, path });
    const first = await node.target();
    return this.#lead(place, first, { path, first, links: 1 });
  }

  async #lead(from: RealFolder, target: string, way: Way): Promise<Found> {
    if (Buffer.byteLength(target) > maxTargetBytes || target.includes("\0") || target === "")
      throw broken(way, "is no path");
    if (target.startsWith("/")) throw broken(way, "leads out of the repository");
    let at: Found = { kind: "folder", place: from };
    for (const part of target.split("/")) {
      // A file has nothing below it, not even itself.
      if (at.kind === "file") throw broken(way, "is not in the repository");
      if (part === "" || part === ".") continue;
      at = await this.#step(at.place, part, way);
    }
    return at;
  }

  async #step(place: RealFolder, part: string, way: Way): Promise<Found> {
    await this.#count();
    if (part === "..") {
      if (place.parent === undefined) throw broken(way, "leads out of the repository");
      return { kind: "folder", place: place.parent };
    }
    // Of a folder on this machine it may hold credentials, and no commit has it.
    if (part.toLowerCase() === ".git") throw broken(way, "leads out of the repository");
    const node = (await this.#namesOf(place)).get(part);
    if (node === undefined) throw broken(way, "is not in the repository");
    if (node.kind !== "link") return found({ name: part, node, place, path: way.path });
    way.links += 1;
    if (way.links > maxLinks) throw broken(way, "leads around in a circle");
    return this.#lead(place, await node.target(), way);
  }

  async #namesOf({ path, folder }: RealFolder): Promise<ReadonlyMap<string, TreeNode>> {
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const names = new Map<string, TreeNode>();
    for await (const [name, node] of folder.entries()) {
      await this.#count();
      names.set(name, node);
    }
    this.#known.set(path, names);
    return names;
  }
}

function found({
  name,
  node,
  place,
  path,
}: Omit<FoundEntry, "node"> & { readonly node: Exclude<TreeNode, { kind: "link" }> }): Found {
  if (node.kind === "unreadable") throw refusedPath(path, node.problem);
  if (node.kind === "file") return { kind: "file", node };
  const own = place.path === "" ? name : `${place.path}/${name}`;
  return { kind: "folder", place: { path: own, folder: node, parent: place } };
}

function broken({ path, first }: Way, problem: string) {
  return refusedPath(path, `is a link to "${excerpt(first, maxShown)}", which ${problem}`);
}
