/** Words about a Receiver, for the command line and the pages. */
import type { ReceiverObject } from "#shared/fleet/api/objects.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";

type Spec = ReceiverObject["spec"];

/** The Sources that it lists, by name or by selector. */
export function listedText({ sources }: Spec): string {
  const texts = sources.map((one) =>
    typeof one === "string" ? one : `Sources with ${selectionText({ selector: one.selector })}`,
  );
  return texts.join("; ");
}

/** The existing Sources of those. */
export function polledText({ sources }: ReceiverObject["status"]): string {
  return sources.length === 0 ? "no Source: none exists" : sources.join(", ");
}

/** The demands on the token of a sender; undefined for senders that know a secret. */
export function tokensText({ oidc, google }: Spec): string | undefined {
  if (google !== undefined) return `issuer=Google, audience=${google.audience}, email=${google.email}`;
  if (oidc === undefined) return undefined;
  const claims = Object.entries(oidc.claims).map(([name, pattern]) => `${name}=${pattern}`);
  return [`issuer=${oidc.issuer}`, `audience=${oidc.audience}`, ...claims].join(", ");
}
