import type { WebhookAnswer } from "#functions/webhook/prove-delivery.ts";
import type { Push } from "#functions/webhook/providers/provider.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { counted } from "#shared/base/counted.ts";
import { addressOf, type SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { ResolveMessage } from "#shared/messages.ts";
import { mayFollow } from "#shared/source/git-reference.ts";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

const loggedRefs = 10;

/** The addresses of a push in the form that is compared. Undefined when it names none. */
export function addressesOf({ urls }: Push): ReadonlySet<string> | undefined {
  return urls === undefined ? undefined : new Set(urls.flatMap((address) => normaliseGitUrl(address) ?? []));
}

/**
 * Requests a poll of each of the Sources that the push can change, unless it is suspended. Nothing is written, and no
 * commit of the push is used, so that a replay costs one listing.
 * @param about - fields of the log: who delivered the push.
 */
export async function pollSources(
  push: Push,
  sources: readonly SourceRow[],
  { ports, about }: { readonly ports: WebhookPorts; readonly about: Readonly<Record<string, unknown>> },
): Promise<WebhookAnswer> {
  const addresses = addressesOf(push);
  const messages = sources
    .filter(({ operations }) => operations.suspended === undefined)
    .filter(({ spec }) => isAt(spec, addresses) && follows(spec, push))
    .map(({ namespace, name }): ResolveMessage => ({ to: "resolve", source: { namespace, name } }));
  await ports.sender.send(messages);
  ports.log.info("push received", { ...about, refs: push.refs?.slice(0, loggedRefs), sources: messages.length });
  for (const { source } of messages)
    ports.log.info("a push requests a poll of a source", { kind: "Source", ...source });
  return { statusCode: 202, message: `requested polls of ${counted(messages.length, "source")}` };
}

function isAt(spec: SourceSpec, addresses: ReadonlySet<string> | undefined): boolean {
  return addresses === undefined || addresses.has(normaliseGitUrl(addressOf(spec)) ?? "");
}

function follows({ git }: SourceSpec, { refs, ...push }: Push): boolean {
  if (refs === undefined) return true;
  return git !== undefined && refs.some((ref) => mayFollow(git.ref, { ...push, ref }));
}
