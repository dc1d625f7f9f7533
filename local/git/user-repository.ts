import { stat } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { runUsersGit } from "#local/git/git-command.ts";
import type { GitServer } from "#local/git/git-server.ts";
import { isUncommitted } from "#local/git/uncommitted.ts";
import { errorMessage } from "#shared/base/errors.ts";

/** A host that does not answer must fail before the user gives up. */
const listSeconds = 20;

export interface UserRepository {
  readonly url: string;
  /** Undefined means the remote's HEAD. */
  readonly ref: { readonly branch: string } | { readonly tag: string } | { readonly commit: string } | undefined;
  /** For example `podinfo, main at 1f3a9c0d2b4e`. */
  readonly description: string;
  /** A warning for the user, for example about uncommitted changes. */
  readonly warning: string | undefined;
}

export interface RepositoryWish {
  /** A folder of this machine, a `file:` URL or an `https:` URL. */
  readonly repo: string;
  /** A branch, a tag or a commit id. The default is HEAD. */
  readonly ref?: string;
  /** A folder that must exist. It is not checked if it contains `{{ }}`, or in a remote repository. */
  readonly path?: string;
}

/**
 * Makes a user's repository available. A repository on this machine is copied to the local git server, and a URL is
 * used directly. @throws Error when it is not a repository, or when the reference or folder does not exist.
 */
export async function adoptRepository(git: GitServer, wish: RepositoryWish): Promise<UserRepository> {
  const found = await findRepository(wish);
  const { folder, commit, ref } = found;
  if (folder === undefined) {
    const description = `${wish.repo}, ${wish.ref ?? "HEAD"} at ${commit.slice(0, 12)}`;
    return { url: wish.repo, ref, description, warning: undefined };
  }
  if (wish.path !== undefined && !wish.path.includes("{{")) await requireFolder(folder, commit, wish.path);
  return {
    url: await git.importRepository(servedName(folder), folder),
    ref,
    description: `${basename(folder)}, ${wish.ref ?? "HEAD"} at ${commit.slice(0, 12)}`,
    warning: await uncommitted(folder, wish.path),
  };
}

/** A repository that exists, before it is copied. */
export interface FoundRepository {
  /** The folder on this machine; undefined for a URL. */
  readonly folder: string | undefined;
  readonly repo: string;
  readonly ref: UserRepository["ref"];
  readonly commit: string;
}

/** @throws Error that names the flag and what to give, when it is not a repository or the reference does not exist. */
export async function findRepository(wish: Omit<RepositoryWish, "path">): Promise<FoundRepository> {
  const { repo } = wish;
  if (repo.startsWith("https://")) return { folder: undefined, repo, ...(await remoteReference(wish)) };
  const folder = await localFolder(repo);
  await requireTopLevel(folder);
  return { folder, repo, ...(await localReference(folder, wish.ref)) };
}

async function localFolder(repo: string): Promise<string> {
  const path = repo.startsWith("file:") ? fileURLToPath(repo) : resolve(repo);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return path;
  if (found !== undefined) throw new Error(`--repo is ${repo}: this is a file; give the folder of a git repository`);
  if (/^([a-z+]+:\/\/|[^/]+@[^/]+:)/.test(repo)) {
    throw new Error(
      `--repo is ${repo}: only https:// URLs are supported; clone the repository and give the folder of the clone`,
    );
  }
  throw new Error(`--repo is ${repo}: there is no ${path}; give a folder of this machine, or an https:// URL`);
}

async function requireTopLevel(folder: string): Promise<void> {
  let top: string;
  try {
    const isBare = (await runUsersGit(["rev-parse", "--is-bare-repository"], { folder })).trim() === "true";
    top = (await runUsersGit(["rev-parse", isBare ? "--absolute-git-dir" : "--show-toplevel"], { folder })).trim();
  } catch (cause) {
    if (errorMessage(cause).includes("dubious ownership")) {
      throw new Error(
        `--repo is ${folder}: git does not read it because it belongs to another user; run \`git config --global --add safe.directory ${folder}\` if you trust it`,
        { cause },
      );
    }
    throw new Error(`--repo is ${folder}: it is not a git repository; run \`git init\` and commit the files`, {
      cause,
    });
  }
  const [given, found] = await Promise.all([stat(folder), stat(top)]);
  if (given.ino === found.ino && given.dev === found.dev) return;
  throw new Error(
    `--repo is ${folder}: it is a folder inside the repository ${top}; give --repo ${top} --path ${relative(top, folder)}`,
  );
}

async function localReference(folder: string, desired: string | undefined) {
  const ref = desired ?? "HEAD";
  for (const [prefix, kind] of [
    ["refs/heads/", "branch"],
    ["refs/tags/", "tag"],
  ] as const) {
    const commit = await commitOf(folder, `${prefix}${ref}`);
    if (commit !== undefined) return { commit, ref: { [kind]: ref } as unknown as UserRepository["ref"] };
  }
  const commit = /^(HEAD|[0-9a-f]{4,40})$/.test(ref) ? await commitOf(folder, ref) : undefined;
  if (commit !== undefined) return { commit, ref: ref === "HEAD" ? undefined : { commit } };
  if (ref === "HEAD")
    throw new Error(`--repo is ${folder}: it has no commit; commit the files that Starling should roll out`);
  throw new Error(`--ref is ${ref}: ${folder} has no branch, tag or commit of that name${await known(folder)}`);
}

async function commitOf(folder: string, revision: string): Promise<string | undefined> {
  try {
    return (await runUsersGit(["rev-parse", "--verify", "--quiet", `${revision}^{commit}`], { folder })).trim();
  } catch {
    return undefined;
  }
}

async function known(folder: string): Promise<string> {
  const names = await runUsersGit(["for-each-ref", "--count=8", "--format=%(refname:short)", "refs/heads"], { folder });
  return names === "" ? "" : `; it has ${names.trim().split("\n").join(", ")}`;
}

async function requireFolder(folder: string, commit: string, path: string): Promise<void> {
  const clean = path.replace(/^(\.?\/)+|\/+$|^\.$/g, "");
  try {
    await runUsersGit(["cat-file", "-e", `${commit}:${clean}`], { folder });
  } catch (cause) {
    const top = (await runUsersGit(["ls-tree", "-d", "--name-only", commit], { folder }))
      .trim()
      .split("\n")
      .slice(0, 8);
    throw new Error(
      `--path is ${path}: commit ${commit.slice(0, 12)} of ${folder} has no such folder; it has ${top.join(", ")}`,
      { cause },
    );
  }
}

async function uncommitted(folder: string, path: string | undefined): Promise<string | undefined> {
  if ((await runUsersGit(["rev-parse", "--is-bare-repository"], { folder })).trim() === "true") return undefined;
  const inPath = path === undefined || path.includes("{{") ? "." : path;
  const isChanged = await isUncommitted(folder, inPath);
  return isChanged ? `${folder} has uncommitted changes; Starling does not roll them out` : undefined;
}

/** Whether a known URL is the desired repository. A folder is compared by its name on the git server. */
export function isSameRepository(known: string, desired: string): boolean {
  return known === desired || basename(known, ".git") === servedName(resolve(desired));
}

/** The name of a folder on the git server. A folder may have any name, and a URL may not. */
export function servedName(folder: string): string {
  const name = basename(folder)
    .replace(/\.git$/, "")
    .replaceAll(/[^\w.-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
  return name === "" || name.endsWith(".git") ? "repository" : name;
}

async function remoteReference({ repo, ref }: RepositoryWish): Promise<Pick<FoundRepository, "ref" | "commit">> {
  const listed = await listRemote(repo);
  const oid = (name: string) => listed.get(`${name}^{}`) ?? listed.get(name);
  if (ref !== undefined && /^[0-9a-f]{40}$/.test(ref)) return { ref: { commit: ref }, commit: ref };
  const head = oid("HEAD");
  if (ref === undefined || ref === "HEAD") {
    if (head === undefined) throw new Error(`--repo is ${repo}: it has no HEAD; name a branch or a tag with --ref`);
    return { ref: undefined, commit: head };
  }
  const branch = oid(`refs/heads/${ref}`);
  if (branch !== undefined) return { ref: { branch: ref }, commit: branch };
  const tag = oid(`refs/tags/${ref}`);
  if (tag !== undefined) return { ref: { tag: ref }, commit: tag };
  throw new Error(`--ref is ${ref}: ${repo} has no branch or tag of that name; for a commit, give all 40 digits`);
}

/** Object ids by reference, as the remote lists them. `^{}` is the commit of an annotated tag. */
async function listRemote(url: string): Promise<ReadonlyMap<string, string>> {
  try {
    const listed = await runUsersGit(["ls-remote", "--", url], { reach: "remotes", timeoutSeconds: listSeconds });
    const lines = listed.trim().split("\n");
    return new Map(lines.map((line): [string, string] => [line.slice(41), line.slice(0, 40)]));
  } catch (cause) {
    throw new Error(`--repo is ${url}: cannot list its references: ${gitsWords(cause)}`, { cause });
  }
}

/** The message of git on one line, without the failed command. */
export function gitsWords(cause: unknown): string {
  const said = errorMessage(cause).replace(/^git .*? ended with exit code \d+: /s, "");
  return said.replaceAll(/^(fatal|error|remote): /gm, "").replaceAll(/\s+/g, " ");
}
