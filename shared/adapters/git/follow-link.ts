import { refusedPath } from "#shared/adapters/git/refused-path.ts";
import type { TreeFolder, TreeNode } from "#shared/adapters/git/tree-node.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** A folder at its real place: no part of its path is a link. */
export interface RealFolder {
  readonly path: string;
  readonly folder: TreeFolder;
  /** The root has no parent. */
  readonly parent: RealFolder | undefined;
}

export interface FoundEntry {
  readonly name: string;
  readonly node: TreeNode;
  /** The folder that contains it. */
  readonly place: RealFolder;
  /** The path that led to the entry, for messages. */
  readonly path: string;
}

export type Found =
  | { readonly kind: "folder"; readonly place: RealFolder }
  | { readonly kind: "file"; readonly node: Extract<TreeNode, { readonly kind: "file" }> }
  /** A link on the way is not fetched yet. */
  | { readonly kind: "unknown" };

/** The most links on the way from a link to its target, as in Linux. */
const maxLinks = 40;
const maxTargetBytes = 4096;
const maxShown = 100;

interface Way {
  readonly path: string;
  /** The target of the first link. */
  readonly first: string;
  links: number;
}

/** Finds the targets of links within one tree. It never reads anything outside of the tree. */
export class LinkFollower {
  readonly #count: () => Promise<void>;
  /** Names in folders through which links lead, by the folder's path. */
  readonly #known = new Map<string, ReadonlyMap<string, TreeNode>>();

  /** @param count - called for every entry that is read; throws when there are too many. */
  constructor(count: () => Promise<void>) {
    this.#count = count;
  }

  /** @throws StarlingError `GitPathRefused` for an unreadable entry, and for a link that leads to nothing readable. */
  async follow({ name, node, place, path }: FoundEntry): Promise<Found> {
    if (node.kind !== "link") return found({ name, node, place, path });
    const first = await node.target();
    if (first === undefined) return { kind: "unknown" };
    return this.#lead(place, first, { path, first, links: 1 });
  }

  async #lead(from: RealFolder, target: string, way: Way): Promise<Found> {
    if (Buffer.byteLength(target) > maxTargetBytes || target.includes("\0") || target === "")
      throw broken(way, "is not a valid path");
    if (target.startsWith("/")) throw broken(way, "leads out of the repository");
    let at: Found = { kind: "folder", place: from };
    for (const part of target.split("/")) {
      // A file contains nothing, not even `.`.
      if (at.kind === "file") throw broken(way, "is not in the repository");
      if (part === "" || part === ".") continue;
      if (at.kind === "unknown") return at;
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
    // In a folder on this machine, `.git` can contain credentials, and no commit contains it.
    if (part.toLowerCase() === ".git") throw broken(way, "leads out of the repository");
    const node = (await this.#namesOf(place)).get(part);
    if (node === undefined) throw broken(way, "is not in the repository");
    if (node.kind !== "link") return found({ name: part, node, place, path: way.path });
    way.links += 1;
    if (way.links > maxLinks) throw broken(way, "is part of a cycle of links");
    const target = await node.target();
    return target === undefined ? { kind: "unknown" } : this.#lead(place, target, way);
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
