import * as z from "zod";
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

const refEvent = z.object({
  ref: referenceName,
  /** Only events `create` and `delete` have it; their `ref` is a short name. */
  ref_type: z.enum(["branch", "tag"]).optional(),
  repository: z.object({
    clone_url: address.nullish(),
    ssh_url: address.nullish(),
    html_url: address.nullish(),
    default_branch: referenceName.optional(),
  }),
});

const events: readonly (string | undefined)[] = ["push", "create", "delete"];

/** Gitea and Forgejo. They sign in headers of their own without a prefix, and in GitHub's header. */
export const gitea: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-gitea-signature"] ?? headers["x-forgejo-signature"], prefix: "" }, secrets) ||
    isSigned({ body, header: headers["x-hub-signature-256"], prefix: "sha256=" }, secrets),
  eventOf,
  read(request) {
    if (!events.includes(eventOf(request))) return "other";
    const event = readBody(refEvent, request);
    if (event === undefined) return undefined;
    const { clone_url, ssh_url, html_url, default_branch } = event.repository;
    return {
      urls: given([clone_url, ssh_url, html_url]),
      refs: [fullName(event.ref, event.ref_type)],
      ...defined({ defaultBranch: default_branch }),
    };
  },
};

function eventOf({ headers }: WebhookRequest): string | undefined {
  const { "x-gitea-event": ofGitea, "x-forgejo-event": ofForgejo } = headers;
  return (ofGitea ?? ofForgejo)?.toLowerCase();
}

function fullName(ref: string, type: "branch" | "tag" | undefined): string {
  if (type === undefined || ref.startsWith("refs/")) return ref;
  return `refs/${type === "tag" ? "tags" : "heads"}/${ref}`;
}
