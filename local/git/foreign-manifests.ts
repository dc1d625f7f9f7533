/** Manifests for another tool in a folder of a commit, by the first lines of each document: before anything is made of it. */
import { runUsersGit } from "#local/git/git-command.ts";
import type { FoundRepository } from "#local/git/user-repository.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** Whoever waits for a start waits for no more. */
const mostFiles = 200;
/** What people write by hand is smaller; a file of a stranger's may have any size. */
const mostBytes = 1024 * 1024;

/**
 * @param path - the folder, which may hold expressions.
 * @returns `Application for Argo CD`, each kind once; nothing of a repository far away, whose files are not here.
 */
export async function foreignManifests({ folder, commit }: FoundRepository, path: string): Promise<readonly string[]> {
  if (folder === undefined) return [];
  const [fixed = ""] = path.split("{{");
  const within = fixed === path ? normalFolder(path) : normalFolder(fixed.slice(0, fixed.lastIndexOf("/") + 1) || ".");
  const listed = await runUsersGit(["ls-tree", "-r", "-z", "--long", commit], { folder });
  const blobs = listed.split("\0").flatMap((line) => manifestIn(line, within));
  if (blobs.length === 0) return [];
  const text = await runUsersGit(["show", "--no-textconv", ...blobs.slice(0, mostFiles)], { folder });
  const heads = text.matchAll(
    /^apiVersion:[ "']*([\w./-]+)["']?[ \r]*\n(?:(?!apiVersion:|---).*\n)*?kind:[ "']*(\w+)/gm,
  );
  const found = [...heads].flatMap(([, apiVersion = "", kind = ""]) => {
    const foreign = foreignKindOf({ apiVersion, kind });
    return foreign === undefined ? [] : [`${kind} for ${foreign.tool}`];
  });
  return [...new Set(found)];
}

/** The id of its contents. Nothing of links and submodules: git would show a commit, with its signature. */
function manifestIn(line: string, folder: string): readonly string[] {
  const [, id = "", size, path = ""] = /^100\d+ blob (\w+) +(\d+)\t(.*)$/s.exec(line) ?? [];
  return /\.ya?ml$/.test(path) && isWithin(path, [folder]) && Number(size) <= mostBytes ? [id] : [];
}
