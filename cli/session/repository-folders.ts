/** Which folders a repository has, where a file stands in a working copy of it. Nothing of git is run. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

/** A working copy with more is looked at no further: nobody waits for help that long. */
const mostFolders = 20_000;

interface WorkingCopy {
  readonly root: string;
  /** Addresses of its remotes, as `normaliseGitUrl` has them. */
  readonly remotes: ReadonlySet<string>;
}

/** @returns the folders of a repository by its URL, for those that one of the files is of. */
export function repositoryFolders(files: readonly string[]): (url: string) => readonly string[] | undefined {
  const copies = [...new Set(files.map(dirname))].flatMap((folder) => workingCopyAround(folder) ?? []);
  const listed = new Map<string, readonly string[] | undefined>();
  return (url) => {
    const address = normaliseGitUrl(url) ?? "";
    const root = copies.find(({ remotes }) => remotes.has(address))?.root;
    if (root === undefined) return undefined;
    if (!listed.has(root)) listed.set(root, foldersBelow(root));
    return listed.get(root);
  };
}

/** @returns the folder of a file from the root of its working copy. */
export function folderInRepository(file: string): string | undefined {
  const folder = dirname(file);
  const root = workingCopyAround(folder)?.root;
  return root === undefined ? undefined : relative(root, folder) || ".";
}

function workingCopyAround(folder: string): WorkingCopy | undefined {
  const config = join(folder, ".git", "config");
  if (statSync(config, { throwIfNoEntry: false })?.isFile() === true) {
    const urls = [...readFileSync(config, "utf8").matchAll(/^[ \t]*url[ \t]*=[ \t]*(\S+)/gm)];
    return { root: folder, remotes: new Set(urls.flatMap(([, url = ""]) => normaliseGitUrl(url) ?? [])) };
  }
  const parent = dirname(folder);
  return parent === folder ? undefined : workingCopyAround(parent);
}

function foldersBelow(root: string): readonly string[] | undefined {
  const found = ["."];
  for (let at = 0; at < found.length; at++) {
    if (found.length > mostFolders) return undefined;
    const folder = found[at] ?? ".";
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (!entry.isDirectory() || entry.name === ".git" || entry.name === "node_modules") continue;
      found.push(folder === "." ? entry.name : `${folder}/${entry.name}`);
    }
  }
  return found;
}
