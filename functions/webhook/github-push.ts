import * as z from "zod";
import { boundedText } from "#shared/base/bounded.ts";
import { defined } from "#shared/base/defined.ts";

/** Longest address; a Source allows no longer one. */
const address = boundedText(2048).optional();

/** The part of GitHub's `push` event that Starling reads; the rest is ignored. */
const pushEvent = z.object({
  ref: boundedText(1000).min(1),
  repository: z.object({
    clone_url: address,
    ssh_url: address,
    html_url: address,
    git_url: address,
    default_branch: boundedText(1000).optional(),
  }),
});

export interface GithubPush {
  readonly ref: string;
  readonly defaultBranch?: string;
  /** Every address of the repository. */
  readonly urls: readonly string[];
}

/**
 * Reads a push from the body, which is JSON or form-encoded as `payload=`. Commit ids in it are never read: the git server
 * is asked for the commit of a reference.
 * @returns undefined when the body is no push.
 */
export function readGithubPush(body: Uint8Array, contentType: string): GithubPush | undefined {
  const text = new TextDecoder().decode(body);
  const isForm = contentType.toLowerCase().startsWith("application/x-www-form-urlencoded");
  const parsed = pushEvent.safeParse(jsonOf(isForm ? (new URLSearchParams(text).get("payload") ?? "") : text));
  if (!parsed.success) return undefined;
  const { ref, repository } = parsed.data;
  const { clone_url, ssh_url, html_url, git_url, default_branch } = repository;
  return {
    ref,
    urls: [clone_url, ssh_url, html_url, git_url].filter((url) => url !== undefined),
    ...defined({ defaultBranch: default_branch }),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
