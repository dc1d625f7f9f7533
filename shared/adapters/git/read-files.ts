import { treeEntries } from "#shared/adapters/git/git-objects.ts";
import type { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import type { PackReading } from "#shared/adapters/git/pack-scan.ts";
import { submoduleProblem, type TreeFolder, type TreeNode } from "#shared/adapters/git/tree-node.ts";
import { walkTree } from "#shared/adapters/git/walk-tree.ts";
import type { TreeFile } from "#shared/ports.ts";

export interface DesiredFiles {
  readonly objects: PackObjects;
  /** The id of the commit's tree. */
  readonly tree: string;
  readonly paths: readonly string[];
  readonly reading: PackReading;
}

/** The files of a commit below `paths`, as `walkTree` returns them. */
export async function readFiles({ objects, tree, paths, reading }: DesiredFiles): Promise<TreeFile[]> {
  return walkTree({ root: folderOf(objects, tree), paths, reading });
}

function folderOf(objects: PackObjects, oid: string): TreeFolder {
  return {
    kind: "folder",
    async *entries() {
      for (const entry of treeEntries(await objects.read(oid, "tree"))) {
        yield [entry.name, nodeOf(objects, entry.mode, entry.oid)] as const;
      }
    },
  };
}

function nodeOf(objects: PackObjects, mode: string, oid: string): TreeNode {
  if (mode === "40000" || mode === "040000") return folderOf(objects, oid);
  if (mode.startsWith("100"))
    return { kind: "file", executable: mode === "100755", read: (max) => read(objects, oid, max) };
  if (mode === "120000")
    return { kind: "link", target: async () => (await objects.read(oid, "blob")).toString("utf8") };
  if (mode === "160000") return { kind: "unreadable", problem: submoduleProblem };
  return { kind: "unreadable", problem: `has the mode ${mode}, which is not a file's` };
}

async function read(
  objects: PackObjects,
  oid: string,
  maxBytes: number,
): Promise<Uint8Array | "too large" | "missing"> {
  // The server was asked to leave out files that are too large alone.
  if (!objects.has(oid)) return "missing";
  const content = await objects.read(oid, "blob");
  if (content.length > maxBytes) return "too large";
  return new Uint8Array(content.buffer, content.byteOffset, content.length);
}
