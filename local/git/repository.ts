import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runGit, runUsersGit } from "#local/git/git-command.ts";

/** The new content of a path. `null` deletes the path, or all files below a folder. */
export type FileChange = string | Uint8Array | { readonly executable: string } | { readonly symlink: string } | null;

export type FileChanges = Readonly<Record<string, FileChange>>;

export interface CommitOptions {
  /** The default is `main`. */
  readonly branch?: string;
  /** A name makes a lightweight tag on the commit. A name with a message makes an annotated tag. */
  readonly tag?: string | { readonly name: string; readonly message: string };
  /** The parent instead of the branch's head, as any revision. `null` starts a new history. Both force the branch. */
  readonly onto?: string | null;
  /** The time of author and committer. The default is now. */
  readonly at?: Date;
}

export interface RefUpdate {
  /** For example `refs/heads/main`. */
  readonly ref: string;
  /** Object ids. Forty zeros mean that the ref did not exist. */
  readonly before: string;
  readonly after: string;
}

export const zeroId = "0".repeat(40);
const author = "Starling Local <local@starling.invalid>";
const repositoryName = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)*$/;

/** The folder of a bare repository: `<root>/<name>.git`. @throws Error when the name could leave the root. */
export function repositoryFolder(root: string, name: string): string {
  if (!repositoryName.test(name) || name.endsWith(".git")) {
    throw new Error(`Repository name ${JSON.stringify(name)} must be like "fleet" or "platform/fleet", without ".git"`);
  }
  return join(root, `${name}.git`);
}

/** Creates an empty bare repository with the default branch `main` that accepts pushes over HTTP. */
export async function initRepository(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await runGit(["init", "--quiet", "--bare", "--initial-branch=main", folder]);
  await serveOverHttp(folder);
}

/**
 * Git runs this command in the copied repository. Before 2.39.4, git fetches missing objects there with a program that
 * the repository names. The empty list of protocols prevents every such fetch.
 */
const uploadPack = "env GIT_ALLOW_PROTOCOL= git upload-pack";

/** Copies any repository of this machine to a bare one, with all its branches and tags and its default branch. */
export async function copyRepository(from: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await runUsersGit(
    ["clone", "--quiet", "--bare", "--no-hardlinks", "--upload-pack", uploadPack, "--", resolve(from), resolve(folder)],
    {
      reach: "folders",
    },
  );
  await serveOverHttp(folder);
}

async function serveOverHttp(folder: string): Promise<void> {
  await runGit(["-C", folder, "config", "http.receivepack", "true"]);
  await runGit(["-C", folder, "config", "uploadpack.allowFilter", "true"]);
  await runGit(["-C", folder, "config", "uploadpack.allowAnySHA1InWant", "true"]);
}

export interface CommitRequest extends CommitOptions {
  readonly folder: string;
  readonly files: FileChanges;
  readonly message: string;
}

/**
 * Commits changes directly to a bare repository with `git fast-import`: one process and no work tree. @returns the
 * commit id.
 */
export async function commitInto(request: CommitRequest): Promise<string> {
  const { folder, branch = "main" } = request;
  const parent = await parentOf(request);
  const scratch = `refs/starling-import/${randomUUID()}`;
  await runGit(
    ["-C", folder, "fast-import", "--quiet", "--date-format=raw"],
    importStream(request, { scratch, parent }),
  );
  const commit = (await runGit(["-C", folder, "rev-parse", scratch])).trim();
  await runGit(["-C", folder, "update-ref", `refs/heads/${branch}`, commit]);
  await runGit(["-C", folder, "update-ref", "-d", scratch]);
  return commit;
}

async function parentOf({ folder, branch = "main", onto }: CommitRequest): Promise<string | undefined> {
  if (onto === null) return undefined;
  if (onto !== undefined) return (await runGit(["-C", folder, "rev-parse", "--verify", `${onto}^{commit}`])).trim();
  const heads = await refsOf(folder);
  return heads.get(`refs/heads/${branch}`);
}

interface ImportPosition {
  readonly scratch: string;
  readonly parent: string | undefined;
}

function importStream(request: CommitRequest, { scratch, parent }: ImportPosition): Buffer {
  const { files, message, tag, at = new Date() } = request;
  const who = `${author} ${Math.floor(at.getTime() / 1000)} +0000`;
  const parts: (string | Uint8Array)[] = [
    `commit ${scratch}\nmark :1\nauthor ${who}\ncommitter ${who}\n`,
    ...data(message),
    parent === undefined ? "" : `from ${parent}\n`,
  ];
  for (const [path, change] of Object.entries(files)) parts.push(...fileCommand(path, change));
  if (typeof tag === "string") parts.push(`reset refs/tags/${tag}\nfrom :1\n\n`);
  if (typeof tag === "object") parts.push(`tag ${tag.name}\nfrom :1\ntagger ${who}\n`, ...data(tag.message));
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

function fileCommand(path: string, change: FileChange): (string | Uint8Array)[] {
  const quoted = `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
  if (change === null) return [`D ${quoted}\n`];
  if (typeof change === "string" || change instanceof Uint8Array)
    return [`M 100644 inline ${quoted}\n`, ...data(change)];
  if ("symlink" in change) return [`M 120000 inline ${quoted}\n`, ...data(change.symlink)];
  return [`M 100755 inline ${quoted}\n`, ...data(change.executable)];
}

function data(content: string | Uint8Array): (string | Uint8Array)[] {
  return [`data ${Buffer.byteLength(content)}\n`, content, "\n"];
}

/** The object id of every ref of a repository. */
export async function refsOf(folder: string): Promise<ReadonlyMap<string, string>> {
  const listed = await runGit([
    "-C",
    folder,
    "for-each-ref",
    "--format=%(objectname) %(refname)",
    "refs/heads",
    "refs/tags",
  ]);
  const lines = listed.split("\n").filter((line) => line !== "");
  return new Map(lines.map((line) => [line.slice(41), line.slice(0, 40)]));
}

/** The changes between two listings of a repository's refs. */
export function refUpdates(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): RefUpdate[] {
  const refs = new Set([...before.keys(), ...after.keys()]);
  return [...refs].sort().flatMap((ref) => {
    const update = { ref, before: before.get(ref) ?? zeroId, after: after.get(ref) ?? zeroId };
    return update.before === update.after ? [] : [update];
  });
}
