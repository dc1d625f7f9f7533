import { treeEntries } from "#shared/adapters/git/git-objects.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { submoduleProblem, type TreeFolder, type TreeNode } from "#shared/adapters/git/tree-node.ts";
import { walkTree } from "#shared/adapters/git/walk-tree.ts";
import { errorCode } from "#shared/base/errors.ts";
import type { TreeFile } from "#shared/ports.ts";

export interface DesiredFiles {
  readonly objects: ObjectReader;
  /** The id of the commit's tree. */
  readonly tree: string;
  readonly paths: readonly string[];
  readonly reading: PackReading;
}

/** A pack, or several of them. */
export interface ObjectReader {
  has(oid: string): boolean;
  read(oid: string, type: "tree" | "blob"): Promise<Buffer>;
}

/** The files of a commit below `paths`, as `walkTree` returns them. */
export async function readFiles({ objects, tree, paths, reading }: DesiredFiles): Promise<TreeFile[]> {
  return walkTree({ root: folderOf(contentsOf(objects), tree), paths, reading });
}

/**
 * The ids of the files and links below `paths` that are not fetched yet. Those to which a link leads are found when the
 * link is fetched.
 */
export async function missingFiles({ objects, tree, paths, reading }: DesiredFiles): Promise<ReadonlySet<string>> {
  const missing = new Set<string>();
  const fetched = contentsOf(objects);
  const contents: Contents = {
    ...fetched,
    async file(oid, maxBytes) {
      if (objects.has(oid)) return fetched.file(oid, maxBytes);
      missing.add(oid);
      return new Uint8Array();
    },
    async link(oid) {
      if (objects.has(oid)) return fetched.link(oid);
      missing.add(oid);
      return undefined;
    },
  };
  try {
    await walkTree({ root: folderOf(contents, tree), paths, reading });
  } catch (error) {
    // Such an entry is refused with all files, after which nothing is missing.
    if (errorCode(error) !== "GitPathRefused") throw error;
  }
  return missing;
}

interface Contents {
  tree(oid: string): Promise<Buffer>;
  file(oid: string, maxBytes: number): Promise<Uint8Array | "too large" | "missing">;
  link(oid: string): Promise<string | undefined>;
}

function contentsOf(objects: ObjectReader): Contents {
  return {
    tree: (oid) => objects.read(oid, "tree"),
    file: (oid, maxBytes) => read(objects, oid, maxBytes),
    link: async (oid) => (await objects.read(oid, "blob")).toString("utf8"),
  };
}

function folderOf(contents: Contents, oid: string): TreeFolder {
  return {
    kind: "folder",
    async *entries() {
      for (const entry of treeEntries(await contents.tree(oid))) {
        yield [entry.name, nodeOf(contents, entry.mode, entry.oid)] as const;
      }
    },
  };
}

function nodeOf(contents: Contents, mode: string, oid: string): TreeNode {
  if (mode === "40000" || mode === "040000") return folderOf(contents, oid);
  if (mode.startsWith("100"))
    return { kind: "file", executable: mode === "100755", read: (max) => contents.file(oid, max) };
  if (mode === "120000") return { kind: "link", target: () => contents.link(oid) };
  if (mode === "160000") return { kind: "unreadable", problem: submoduleProblem };
  return { kind: "unreadable", problem: `has the mode ${mode}, which is not a file's` };
}

async function read(
  objects: ObjectReader,
  oid: string,
  maxBytes: number,
): Promise<Uint8Array | "too large" | "missing"> {
  // The server was asked to leave out files that are too large alone.
  if (!objects.has(oid)) return "missing";
  const content = await objects.read(oid, "blob");
  if (content.length > maxBytes) return "too large";
  return new Uint8Array(content.buffer, content.byteOffset, content.length);
}
