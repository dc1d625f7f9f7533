import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { promisify } from "node:util";
import type { Stack } from "#local/stack.ts";

const run = promisify(execFile);

export interface UserRepository {
  readonly url: string;
  /** Absent: the remote's HEAD. */
  readonly ref: { readonly branch: string } | { readonly tag: string } | { readonly commit: string } | undefined;
  readonly description: string;
}

/**
 * A repository of the user's own: a path on this machine is copied to its git server, a URL is followed where it is.
 * @throws Error when it is no repository, or has no such reference.
 */
export async function adoptRepository(
  stack: Stack,
  wish: { readonly repo: string; readonly ref: string | undefined },
): Promise<UserRepository> {
  const local = await isFolder(wish.repo);
  if (!local && !/^https:\/\//.test(wish.repo)) {
    throw new Error(`--repo is ${wish.repo}: neither a folder on this machine nor an https URL`);
  }
  const url = local
    ? await stack.git.importRepository(basename(resolve(wish.repo)).replace(/\.git$/, ""), resolve(wish.repo))
    : wish.repo;
  const ref = wish.ref === undefined ? undefined : await kindOfRef(wish.repo, wish.ref);
  return { url, ref, description: `${wish.repo} at ${wish.ref ?? "HEAD"}` };
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

async function kindOfRef(repository: string, ref: string): Promise<UserRepository["ref"]> {
  if (/^[0-9a-f]{40}$/.test(ref)) return { commit: ref };
  const { stdout } = await run("git", ["ls-remote", "--", repository, `refs/heads/${ref}`, `refs/tags/${ref}`]);
  if (stdout.includes(`refs/heads/${ref}\n`)) return { branch: ref };
  if (stdout.includes(`refs/tags/${ref}\n`)) return { tag: ref };
  throw new Error(
    `--ref is ${ref}: ${repository} has no branch or tag of that name; give a full commit id for a commit`,
  );
}
