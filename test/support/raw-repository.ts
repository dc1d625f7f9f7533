/** Writes git objects without checks, because git itself refuses to create some of them. */
import { runGit } from "#local/git/git-command.ts";
import { repositoryFolder } from "#local/git/repository.ts";

export interface RawEntry {
  readonly mode: "100644" | "100755" | "120000" | "160000" | "40000" | "60000";
  readonly name: string | Buffer;
  readonly oid: string;
}

export interface RawRepository {
  readonly folder: string;
  blob(content: string | Uint8Array): Promise<string>;
  tree(entries: readonly RawEntry[]): Promise<string>;
  /** Commits the tree and moves `main` to the commit. */
  commit(tree: string, text?: { readonly author?: string; readonly message?: string }): Promise<string>;
  object(type: "commit" | "tree" | "tag", content: string | Uint8Array): Promise<string>;
  git(...args: readonly string[]): Promise<string>;
}

/** @param name - the name of a repository below `root`. */
export function rawRepository(root: string, name: string): RawRepository {
  const folder = repositoryFolder(root, name);
  const git = (...args: readonly string[]) => runGit(["-C", folder, ...args]);
  const object = async (type: string, content: string | Uint8Array) =>
    (await runGit(["-C", folder, "hash-object", "-t", type, "--literally", "-w", "--stdin"], content)).trim();
  return {
    folder,
    git,
    object,
    blob: (content) => object("blob", content),
    tree: (entries) =>
      object(
        "tree",
        Buffer.concat(
          entries.flatMap(({ mode, name: entry, oid }) => [
            Buffer.from(`${mode} `),
            Buffer.from(entry),
            Buffer.from([0]),
            Buffer.from(oid, "hex"),
          ]),
        ),
      ),
    async commit(tree, { author = "A <a@example.com> 1767323045 +0000", message = "One\n" } = {}) {
      const oid = await object("commit", `tree ${tree}\nauthor ${author}\ncommitter ${author}\n\n${message}`);
      await git("update-ref", "refs/heads/main", oid);
      return oid;
    },
  };
}
