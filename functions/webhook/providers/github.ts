import * as z from "zod";
import { readPackage } from "#functions/webhook/providers/github-package.ts";
import {
  address,
  given,
  type Provider,
  readBody,
  referenceName,
  type WebhookRequest,
} from "#functions/webhook/providers/provider.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";
import { defined } from "#shared/base/defined.ts";

const pushEvent = z.object({
  ref: referenceName,
  repository: z.object({
    clone_url: address.optional(),
    ssh_url: address.optional(),
    html_url: address.optional(),
    git_url: address.optional(),
    default_branch: referenceName.optional(),
  }),
});

/** GitHub signs in `X-Hub-Signature-256`. Its older SHA-1 in `X-Hub-Signature` is not read. */
export const github: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-hub-signature-256"], prefix: "sha256=" }, secrets),
  eventOf,
  read(request) {
    const event = eventOf(request);
    if (event === "ping") return "ping";
    if (event === "package" || event === "registry_package") return readPackage(request);
    if (event !== "push") return "other";
    const push = readBody(pushEvent, request);
    if (push === undefined) return undefined;
    const { clone_url, ssh_url, html_url, git_url, default_branch } = push.repository;
    return {
      urls: given([clone_url, ssh_url, html_url, git_url]),
      refs: [push.ref],
      ...defined({ defaultBranch: default_branch }),
    };
  },
};

function eventOf({ headers }: WebhookRequest): string | undefined {
  return headers["x-github-event"]?.toLowerCase();
}
