/** What stands at a name of a tree, in a commit or in a folder of this machine. */
export type TreeNode =
  | TreeFolder
  | {
      readonly kind: "file";
      readonly executable: boolean;
      /** `missing` for what the server was asked to leave out, because it is too large alone. */
      read(maxBytes: number): Promise<Uint8Array | "too large" | "missing">;
    }
  /** A symbolic link. */
  | { readonly kind: "link"; target(): Promise<string> }
  /** @param problem - in the words of a message: `is a submodule, which is not fetched`. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface TreeFolder {
  readonly kind: "folder";
  /** One by one: there may be millions. */
  entries(): AsyncIterable<readonly [name: string, node: TreeNode]>;
}

export const submoduleProblem = "is a submodule, whose files are not fetched";
