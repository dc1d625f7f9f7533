import type { WebhookAnswer } from "#functions/webhook/prove-delivery.ts";
import type { Push } from "#functions/webhook/providers/provider.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { counted } from "#shared/base/counted.ts";
import { addressOf, type SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { pollMessages } from "#shared/messages.ts";
import { mayFollow } from "#shared/source/git-reference.ts";
import { normaliseGitUrl } from "#shared/source/git-url.ts";

const loggedRefs = 10;
/** References that are compared with what each Source follows; after a push of more, anything may have changed. */
const mostCompared = 1000;

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
  const polled = sources
    .filter(({ operations }) => operations.suspended === undefined)
    .filter(({ spec }) => isAt(spec, push, addresses) && follows(spec, push));
  await ports.sender.send(pollMessages(polled));
  ports.log.info("push received", {
    ...about,
    refs: (push.refs ?? push.tags)?.slice(0, loggedRefs),
    sources: polled.length,
  });
  for (const { namespace, name } of polled)
    ports.log.info("a push requests a poll of a source", { kind: "Source", namespace, name });
  return { statusCode: 202, message: `requested polls of ${counted(polled.length, "source")}`, polled: polled.length };
}

/** Whether the push is about the address of the Source. */
function isAt(spec: SourceSpec, { names }: Push, addresses: ReadonlySet<string> | undefined): boolean {
  const own = normaliseGitUrl(addressOf(spec)) ?? "";
  if (names !== undefined) return names.some((name) => own.endsWith(`/${name.toLowerCase()}`));
  return addresses === undefined || addresses.has(own);
}

function follows(spec: SourceSpec, { refs, tags, ...push }: Push): boolean {
  const { git, helm, oci } = spec;
  if (Math.max(refs?.length ?? 0, tags?.length ?? 0) > mostCompared) return true;
  if (refs !== undefined) return git !== undefined && refs.some((ref) => mayFollow(git.ref, { ...push, ref }));
  if (tags === undefined || tags.length === 0) return true;
  const one = oci ?? helm;
  return one !== undefined && tags.some((tag) => mayTake(spec, tag));
}

/** Whether a push of the tag can change what a Source of a registry takes. The registry is asked anyway. */
function mayTake({ oci, helm }: SourceSpec, tag: string): boolean {
  const isVersion = /^v?\d/i.test(tag);
  if (oci === undefined) return helm !== undefined && isVersion;
  if (oci.ref?.semver !== undefined) return isVersion;
  // A pinned digest never moves, but it may not have been pushed yet.
  return oci.ref?.digest !== undefined || tag === (oci.ref?.tag ?? "latest");
}
