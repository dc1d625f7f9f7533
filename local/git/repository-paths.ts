/** The paths of all files of a commit. For a remote repository it fetches no file contents. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runUsersGit } from "#local/git/git-command.ts";
import { type FoundRepository, gitsWords } from "#local/git/user-repository.ts";

/** For the trees of one commit, without history. */
const fetchSeconds = 120;

/** @throws Error that names the repository, when it cannot be read. */
export async function repositoryPaths({ folder, repo, commit, ref }: FoundRepository): Promise<readonly string[]> {
  if (folder !== undefined) return listTree(folder, commit);
  const scratch = await mkdtemp(join(tmpdir(), "starling-paths-"));
  try {
    await runUsersGit(["init", "--quiet", "--bare", scratch]);
    const desired = ["fetch", "--quiet", "--depth=1", "--filter=blob:none", "--no-tags", "--", repo, remoteName(ref)];
    await runUsersGit(desired, { folder: scratch, reach: "remotes", timeoutSeconds: fetchSeconds });
    return await listTree(scratch, "FETCH_HEAD");
  } catch (cause) {
    throw new Error(`--repo is ${repo}: its files cannot be listed: ${gitsWords(cause)}`, { cause });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function remoteName(ref: FoundRepository["ref"]): string {
  if (ref === undefined) return "HEAD";
  if ("branch" in ref) return `refs/heads/${ref.branch}`;
  return "tag" in ref ? `refs/tags/${ref.tag}` : ref.commit;
}

async function listTree(folder: string, commit: string): Promise<readonly string[]> {
  const listed = await runUsersGit(["ls-tree", "-r", "-z", "--name-only", commit], { folder });
  return listed.split("\0").filter((path) => path !== "");
}
