/** The folders of a repository, read from a working copy around a file. Git is not run. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

/** A working copy with more folders is not read further, because that would take too long for a hint. */
const mostFolders = 20_000;

interface WorkingCopy {
  readonly root: string;
  /** Addresses of its remotes in the form of `normaliseGitUrl`. */
  readonly remotes: ReadonlySet<string>;
}

/** @returns the folders of a repository by its URL, for repositories that contain one of the files. */
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

/** @returns the folder of a file, relative to the root of its working copy. */
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
