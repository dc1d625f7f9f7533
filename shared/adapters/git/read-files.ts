import { treeEntries } from "#shared/adapters/git/git-objects.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { submoduleProblem, type TreeFolder, type TreeNode } from "#shared/adapters/git/tree-node.ts";
import { walkTree } from "#shared/adapters/git/walk-tree.ts";
import { errorCode } from "#shared/base/errors.ts";
import type { TreeFile } from "#shared/ports.ts";
import { ignoreFile } from "#shared/source/ignore-rules.ts";

export interface DesiredFiles {
  readonly objects: ObjectReader;
  /** The id of the commit's tree. */
  readonly tree: string;
  readonly paths: readonly string[];
  readonly ignore: string | undefined;
  readonly reading: PackReading;
}

/** A pack, or several of them. */
export interface ObjectReader {
  has(oid: string): boolean;
  read(oid: string, type: "tree" | "blob"): Promise<Buffer>;
}

/** The files of a commit below `paths`, as `walkTree` returns them. */
export async function readFiles({ objects, tree, ...desired }: DesiredFiles): Promise<TreeFile[]> {
  return walkTree({ root: folderOf(contentsOf(objects), tree), ...desired });
}

/**
 * The ids of the files and links below `paths` that are not fetched yet. Those to which a link leads are found when the
 * link is fetched. While a `.sourceignore` is not fetched, only such files are named, because others may not be needed.
 */
export async function missingFiles({ objects, tree, ...desired }: DesiredFiles): Promise<ReadonlySet<string>> {
  const missing = new Set<string>();
  const missingRules = new Set<string>();
  const fetched = contentsOf(objects);
  const contents: Contents = {
    ...fetched,
    async file(oid, maxBytes) {
      if (objects.has(oid)) return fetched.file(oid, maxBytes);
      missing.add(oid);
      return new Uint8Array();
    },
    async ignoreFile(oid, maxBytes) {
      if (objects.has(oid)) return fetched.ignoreFile(oid, maxBytes);
      missingRules.add(oid);
      return new Uint8Array();
    },
    async link(oid) {
      if (objects.has(oid)) return fetched.link(oid);
      missing.add(oid);
      return undefined;
    },
  };
  try {
    await walkTree({ root: folderOf(contents, tree), ...desired });
  } catch (error) {
    // Such an entry is refused with all files, after which nothing is missing.
    if (errorCode(error) !== "GitPathRefused") throw error;
  }
  return missingRules.size > 0 ? missingRules : missing;
}

interface Contents {
  tree(oid: string): Promise<Buffer>;
  file(oid: string, maxBytes: number): Promise<Uint8Array | "too large" | "missing">;
  ignoreFile(oid: string, maxBytes: number): Promise<Uint8Array | "too large" | "missing">;
  link(oid: string): Promise<string | undefined>;
}

function contentsOf(objects: ObjectReader): Contents {
  const file = (oid: string, maxBytes: number) => read(objects, oid, maxBytes);
  return {
    tree: (oid) => objects.read(oid, "tree"),
    file,
    ignoreFile: file,
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
    async ignoreFile() {
      for (const entry of treeEntries(await contents.tree(oid))) {
        if (entry.name !== ignoreFile) continue;
        const node = nodeOf({ ...contents, file: contents.ignoreFile }, entry.mode, entry.oid);
        return node.kind === "file" ? node : undefined;
      }
      return undefined;
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
