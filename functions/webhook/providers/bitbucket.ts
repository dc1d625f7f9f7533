import * as z from "zod";
import { address, eventKey, type Provider, readBody, referenceName } from "#functions/webhook/providers/provider.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";

const reference = z.object({ type: z.string(), name: referenceName }).nullish();

const pushEvent = z.object({
  /** A deleted reference has no `new`, and a created one no `old`. */
  push: z.object({ changes: z.array(z.object({ new: reference, old: reference })) }),
  repository: z.object({ links: z.object({ html: z.object({ href: address }) }) }),
});

/** Bitbucket Cloud. Its bodies do not name the default branch. */
export const bitbucket: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-hub-signature"], prefix: "sha256=" }, secrets),
  eventOf: eventKey,
  read(request) {
    if (eventKey(request) !== "repo:push") return "other";
    const event = readBody(pushEvent, request);
    if (event === undefined) return undefined;
    const moved = event.push.changes.flatMap((change) => [change.new, change.old].filter((ref) => ref != null));
    return { urls: [event.repository.links.html.href], refs: [...new Set(moved.map(fullName))] };
  },
};

function fullName({ type, name }: { readonly type: string; readonly name: string }): string {
  return `refs/${type.endsWith("tag") ? "tags" : "heads"}/${name}`;
}
