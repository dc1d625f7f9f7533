/** A folder of this machine as a tree: the files that a commit of it would have. */
import { once } from "node:events";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { type GitProcess, startGit } from "#shared/adapters/git/start-git.ts";
import { submoduleProblem, type TreeFolder, type TreeNode } from "#shared/adapters/git/tree-node.ts";
import { ignoreFile } from "#shared/source/ignore-rules.ts";

const maxListingBytes = 64 * 1024 * 1024;

/** Names that git listed, by folder. The map of a name is empty if git does not list it as a folder. */
type Names = Map<string, Names>;

/** @param folder - a path without symbolic links. */
export async function localTree(folder: string): Promise<TreeFolder> {
  const names: Names = new Map();
  for (const path of await listed(folder)) {
    let at = names;
    // Git lists a repository inside the folder with a slash at the end.
    for (const name of path.replace(/\/$/, "").split("/")) {
      const below: Names = at.get(name) ?? new Map();
      at.set(name, below);
      at = below;
    }
  }
  return folderOf(folder, names);
}

/** Reads an entry only after its folder was seen to be a folder, because the index of a foreign repository may name any path. */
function folderOf(folder: string, names: Names): TreeFolder {
  return {
    kind: "folder",
    async *entries() {
      for (const [name, below] of names) {
        const node = await nodeOf(folder, name, below);
        if (node !== undefined) yield [name, node] as const;
      }
    },
    async ignoreFile() {
      const below = names.get(ignoreFile);
      const node = below === undefined ? undefined : await nodeOf(folder, ignoreFile, below);
      return node?.kind === "file" ? node : undefined;
    },
  };
}

/** @returns undefined for a deleted file, which is still in git's index. */
async function nodeOf(folder: string, name: string, below: Names): Promise<TreeNode | undefined> {
  if (name === "" || name === "." || name === "..") return { kind: "unreadable", problem: "is not a valid file name" };
  const path = join(folder, name);
  const found = await lstat(path).catch(unreadable);
  if ("kind" in found) return found.isGone ? undefined : found;
  if (found.isSymbolicLink()) return { kind: "link", target: () => readlink(path) };
  if (found.isDirectory()) {
    return below.size === 0 ? { kind: "unreadable", problem: submoduleProblem } : folderOf(path, below);
  }
  if (!found.isFile()) return { kind: "unreadable", problem: "is not a file that git can commit" };
  return {
    kind: "file",
    executable: (found.mode & 0o100) !== 0,
    read: async (maxBytes) => (found.size > maxBytes ? "too large" : new Uint8Array(await readFile(path))),
  };
}

function unreadable(error: NodeJS.ErrnoException) {
  const isGone = error.code === "ENOENT" || error.code === "ENOTDIR";
  return { kind: "unreadable", problem: `cannot be read (${error.code})`, isGone } as const;
}

/** The files that git would add. All files if the folder is not a working tree, or git is not installed. */
async function listed(folder: string): Promise<readonly string[]> {
  const listing = await gitListing(folder).catch(() => undefined);
  if (listing !== undefined) return listing.split("\0").filter((path) => path !== "");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
}

/** @throws when git is not installed. @returns undefined when the folder is not a working tree. */
async function gitListing(folder: string): Promise<string | undefined> {
  const asking = startGit(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { folder });
  asking.stdin.on("error", () => undefined).end();
  asking.stderr.resume();
  const [listing, [code]] = await Promise.all([bytesOf(asking), once(asking, "close")]);
  return code === 0 ? listing.toString() : undefined;
}

/** Collects the output of git. A git that prints too much is killed, so that it has no exit code. */
async function bytesOf(asking: GitProcess): Promise<Buffer> {
  const collected = new ByteCollector(maxListingBytes);
  for await (const piece of asking.stdout) {
    if (!collected.add(piece)) asking.kill();
  }
  return collected.bytes();
}
