import { z } from "zod";

/** The part of GitHub's `push` event that Starling reads; everything else may be anything. */
const pushEvent = z.object({
  ref: z.string().min(1).max(1000),
  repository: z.object({
    clone_url: z.string().optional(),
    ssh_url: z.string().optional(),
    html_url: z.string().optional(),
    git_url: z.string().optional(),
    default_branch: z.string().optional(),
  }),
});

export interface GithubPush {
  readonly ref: string;
  readonly defaultBranch?: string;
  /** Every address of the repository. */
  readonly urls: readonly string[];
}

/**
 * Reads a push out of the body, JSON or form-encoded as `payload=`. Commit ids in it are never read: what a reference
 * stands at is asked of the git server.
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
    ...(default_branch === undefined ? {} : { defaultBranch: default_branch }),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
