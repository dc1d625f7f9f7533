import * as z from "zod";
import { address, eventKey, type Provider, readBody, referenceName } from "#functions/webhook/providers/provider.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";

const pushEvent = z.object({
  changes: z.array(z.object({ ref: z.object({ id: referenceName }) })),
  repository: z.object({ links: z.object({ clone: z.array(z.object({ href: address })).max(10) }) }),
});

const ping = "diagnostics:ping";
const followed: readonly (string | undefined)[] = ["repo:refs_changed", "mirror:repo_synchronized"];

/** Bitbucket Data Center. Its bodies do not name the default branch, and it never signs its test event. */
export const bitbucketServer: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-hub-signature"], prefix: "sha256=" }, secrets),
  isUnsignedPing: (request) => eventKey(request) === ping,
  eventOf: eventKey,
  read(request) {
    const event = eventKey(request);
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
