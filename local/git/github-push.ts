import { createHmac, randomUUID } from "node:crypto";
import { type RefUpdate, zeroId } from "#local/git/repository.ts";

export interface GithubPush {
  readonly webhookUrl: string;
  /** The shared secret of the webhook. It signs the body in `X-Hub-Signature-256`. */
  readonly secret: string;
  readonly repository: string;
  readonly cloneUrl: string;
  readonly update: RefUpdate;
}

/** Posts the `push` event that GitHub sends for one moved ref. @returns the HTTP status of the receiver. */
export async function sendGithubPush(push: GithubPush): Promise<number> {
  const { webhookUrl, secret, repository, cloneUrl, update } = push;
  const body = JSON.stringify({
    ref: update.ref,
    before: update.before,
    after: update.after,
    created: update.before === zeroId,
    deleted: update.after === zeroId,
    forced: false,
    repository: {
      full_name: repository,
      html_url: cloneUrl.replace(/\.git$/, ""),
      clone_url: cloneUrl,
      ssh_url: `ssh://git@${new URL(cloneUrl).hostname}/${repository}.git`,
      default_branch: "main",
    },
  });
  const answer = await fetch(webhookUrl, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/local",
      "x-github-event": "push",
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
    body,
  });
  await answer.arrayBuffer();
  return answer.status;
}
