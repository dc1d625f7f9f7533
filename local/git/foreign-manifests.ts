/** Manifests for another tool in a folder of a commit, by the first lines of each document: before anything is made of it. */
import { runUsersGit } from "#local/git/git-command.ts";
import type { FoundRepository } from "#local/git/user-repository.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** Whoever waits for a start waits for no more. */
const mostFiles = 200;

/**
 * @param place - the folder, which may hold expressions; all files of the commit.
 * @returns `Application for Argo CD`, each kind once; nothing of a repository far away, whose files are not here.
 */
export async function foreignManifests(
  { folder, commit }: FoundRepository,
  { path, paths }: { readonly path: string; readonly paths: readonly string[] },
): Promise<readonly string[]> {
  const [fixed = ""] = path.split("{{");
  const within = fixed === path ? normalFolder(path) : normalFolder(fixed.slice(0, fixed.lastIndexOf("/") + 1) || ".");
  const files = paths.filter((file) => /\.ya?ml$/.test(file) && isWithin(file, [within])).slice(0, mostFiles);
  if (folder === undefined || files.length === 0) return [];
  const blobs = files.map((file) => `${commit}:${file}`);
  const text = await runUsersGit(["show", "--no-textconv", ...blobs], { folder });
  const heads = text.matchAll(
    /^apiVersion:[ "']*([\w./-]+)["']?[ \r]*\n(?:(?!apiVersion:|---).*\n)*?kind:[ "']*(\w+)/gm,
  );
  const found = [...heads].flatMap(([, apiVersion = "", kind = ""]) => {
    const foreign = foreignKindOf({ apiVersion, kind });
    return foreign === undefined ? [] : [`${kind} for ${foreign.tool}`];
  });
  return [...new Set(found)];
}
