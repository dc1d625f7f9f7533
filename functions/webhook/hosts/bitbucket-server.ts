import * as z from "zod";
import { address, type GitHost, readBody, referenceName } from "#functions/webhook/hosts/git-host.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";

const pushEvent = z.object({
  changes: z.array(z.object({ ref: z.object({ id: referenceName }) })),
  repository: z.object({ links: z.object({ clone: z.array(z.object({ href: address })).max(10) }) }),
});

const ping = "diagnostics:ping";
const followed: readonly (string | undefined)[] = ["repo:refs_changed", "mirror:repo_synchronized"];

/** Bitbucket Data Center. Its bodies do not name the default branch, and it never signs its test event. */
export const bitbucketServer: GitHost = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-hub-signature"], prefix: "sha256=" }, secrets),
  isUnsignedPing: ({ headers }) => headers["x-event-key"]?.toLowerCase() === ping,
  read(request) {
    const event = request.headers["x-event-key"]?.toLowerCase();
    if (event === ping) return "ping";
    if (!followed.includes(event)) return "other";
    const push = readBody(pushEvent, request);
    if (push === undefined) return undefined;
    return {
      urls: push.repository.links.clone.map(({ href }) => href),
      refs: push.changes.map(({ ref }) => ref.id),
    };
  },
};
