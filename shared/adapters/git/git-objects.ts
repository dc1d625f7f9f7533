import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitCommit } from "#shared/ports.ts";

export interface TreeEntry {
  /** Six octal digits or five: `100644`, `40000`. */
  readonly mode: string;
  readonly name: string;
  readonly oid: string;
}

const oidBytes = 20;
const spaceByte = 0x20;

/**
 * The entries of a tree, one at a time, because there may be millions. @throws StarlingError when the tree is
 * incomplete.
 */
export function* treeEntries(tree: Buffer): Generator<TreeEntry> {
  let at = 0;
  while (at < tree.length) {
    const space = tree.indexOf(spaceByte, at);
    const end = space < 0 ? -1 : tree.indexOf(0, space);
    const next = end + 1 + oidBytes;
    if (end < 0 || next > tree.length) throw malformedGitAnswer("a tree of the repository is incomplete");
    yield {
      mode: tree.toString("latin1", at, space),
      name: tree.toString("utf8", space + 1, end),
      oid: tree.toString("hex", end + 1, next),
    };
    at = next;
  }
}

/** The headers of a commit or a tag. The first header of a name counts. */
function headersOf(object: Buffer): ReadonlyMap<string, string> {
  const end = object.indexOf("\n\n");
  const headers = new Map<string, string>();
  for (const line of object.toString("utf8", 0, end < 0 ? object.length : end).split("\n")) {
    const space = line.indexOf(" ");
    const name = line.slice(0, space);
    if (space > 0 && !headers.has(name)) headers.set(name, line.slice(space + 1));
  }
  return headers;
}

const oidPattern = /^[0-9a-f]{40}$/;

/** The object that a header of a tag or a commit names. */
function namedObject(object: Buffer, header: "object" | "tree"): string {
  const oid = headersOf(object).get(header) ?? "";
  if (!oidPattern.test(oid)) throw malformedGitAnswer(`an object of the repository has no ${header}`);
  return oid;
}

export function taggedObject(tag: Buffer): string {
  return namedObject(tag, "object");
}

export function treeOf(commit: Buffer): string {
  return namedObject(commit, "tree");
}

const maxText = 500;

/** A commit for display. Texts are shortened and cleaned. An invalid time becomes 1970, as in git. */
export function parseCommit(oid: string, commit: Buffer): GitCommit {
  const headers = headersOf(commit);
  const author = identityOf(headers.get("author") ?? "");
  const committer = identityOf(headers.get("committer") ?? "");
  const messageAt = commit.indexOf("\n\n");
  const message = messageAt < 0 ? Buffer.alloc(0) : commit.subarray(messageAt + 2);
  const lineEnd = message.indexOf("\n");
  // A character has at most four bytes.
  const end = Math.min(lineEnd < 0 ? message.length : lineEnd, maxText * 4);
  return {
    oid,
    subject: excerpt(message.toString("utf8", 0, end), maxText),
    authorName: author.name,
    authorEmail: author.email,
    committedAt: committer.at.toISOString(),
  };
}

interface Identity {
  readonly name: string;
  readonly email: string;
  readonly at: Date;
}

/** `Name <email> seconds zone` */
function identityOf(line: string): Identity {
  const open = line.indexOf("<");
  const close = line.indexOf(">", open);
  const seconds = Number.parseInt(line.slice(close + 1), 10);
  const at = new Date(seconds * 1000);
  return {
    name: excerpt(line.slice(0, Math.max(open, 0)).trim(), maxText),
    email: excerpt(line.slice(open + 1, Math.max(close, 0)), maxText),
    at: Number.isNaN(at.getTime()) ? new Date(0) : at,
  };
}
