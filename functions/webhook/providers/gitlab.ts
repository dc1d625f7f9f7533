import * as z from "zod";
import {
  address,
  given,
  type Provider,
  readBody,
  referenceName,
  type WebhookRequest,
} from "#functions/webhook/providers/provider.ts";
import { isSentSecret, isSignedDelivery, isSigningToken } from "#functions/webhook/sender-proof.ts";
import { defined } from "#shared/base/defined.ts";

const project = z.object({
  git_http_url: address.nullish(),
  git_ssh_url: address.nullish(),
  http_url: address.nullish(),
  ssh_url: address.nullish(),
  web_url: address.nullish(),
  default_branch: referenceName.nullish(),
});

const pushEvent = z.object({ ref: referenceName, project });
/** A system hook has one event for all references of a push. */
const systemEvent = z.union([
  pushEvent,
  z.object({ event_name: z.literal("repository_update"), refs: z.array(referenceName).min(1), project }),
]);
const systemEventName = z.object({ event_name: z.string() });
const followed: readonly (string | undefined)[] = ["push", "tag_push", "repository_update"];

/**
 * GitLab sends the secret token itself in `X-Gitlab-Token`, or signs with a signing token (`whsec_...`), which it never
 * sends.
 */
export const gitlab: Provider = {
  isGenuine({ headers, body }, secrets) {
    const { "webhook-id": id = "", "webhook-timestamp": time = "", "webhook-signature": header = "" } = headers;
    const isSent = isSentSecret(
      headers["x-gitlab-token"],
      secrets.filter((secret) => !isSigningToken(secret)),
    );
    return isSignedDelivery({ id, time, header, body }, secrets) || isSent;
  },
  eventOf,
  read(request) {
    const event = eventOf(request);
    const isSystem = event === "system hook";
    if (!isSystem && event !== "push hook" && event !== "tag push hook") return "other";
    if (isSystem && !followed.includes(readBody(systemEventName, request)?.event_name)) return "other";
    const push = readBody(isSystem ? systemEvent : pushEvent, request);
    if (push === undefined) return undefined;
    const { git_http_url, git_ssh_url, http_url, ssh_url, web_url, default_branch } = push.project;
    return {
      urls: given([git_http_url, git_ssh_url, http_url, ssh_url, web_url]),
      refs: "refs" in push ? push.refs : [push.ref],
      ...defined({ defaultBranch: default_branch ?? undefined }),
    };
  },
};

function eventOf({ headers }: WebhookRequest): string | undefined {
  return headers["x-gitlab-event"]?.toLowerCase();
}
