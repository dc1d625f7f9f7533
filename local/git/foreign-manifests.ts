/**
 * Finds manifests for other tools in a folder of a commit, by the first lines of each document. It runs before any
 * document is written.
 */
import { runUsersGit } from "#local/git/git-command.ts";
import type { FoundRepository } from "#local/git/user-repository.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** Limits the time of a start. */
const mostFiles = 200;
/** Manifests that people write are smaller, and files of strangers can have any size. */
const mostBytes = 1024 * 1024;

/**
 * @param path - the folder, which may contain expressions. @returns each kind once, for example `Application for Argo
 * CD`. The result is empty for a remote repository, because its files are not on this machine.
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

/**
 * The blob id of a manifest. Links and submodules are left out, because git would show a commit and check its
 * signature.
 */
function manifestIn(line: string, folder: string): readonly string[] {
  const [, id = "", size, path = ""] = /^100\d+ blob (\w+) +(\d+)\t(.*)$/s.exec(line) ?? [];
  return /\.ya?ml$/.test(path) && isWithin(path, [folder]) && Number(size) <= mostBytes ? [id] : [];
}
