/** An entry of a tree, in a commit or in a folder of this machine. */
export type TreeNode =
  | TreeFolder
  | TreeContent
  /** A symbolic link. Its target is undefined until it is fetched. */
  | { readonly kind: "link"; target(): Promise<string | undefined> }
  /** @param problem - as a part of a message: `is a submodule, whose files are not fetched`. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface TreeContent {
  readonly kind: "file";
  readonly executable: boolean;
  /** `missing` for a file that the server left out on request, because it is too large alone. */
  read(maxBytes: number): Promise<Uint8Array | "too large" | "missing">;
}

export interface TreeFolder {
  readonly kind: "folder";
  /** One at a time, because there may be millions. */
  entries(): AsyncIterable<readonly [name: string, node: TreeNode]>;
  /** The file `.sourceignore` in it, unless it is a link or a folder. */
  ignoreFile(): Promise<TreeContent | undefined>;
}

export const submoduleProblem = "is a submodule, whose files are not fetched";
