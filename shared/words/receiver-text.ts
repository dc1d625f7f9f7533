/** Words about a Receiver, for the command line and the pages. */
import { counted } from "#shared/base/counted.ts";
import type { ReceiverObject } from "#shared/fleet/api/objects.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import type { LastDelivery, LastRefusal } from "#shared/fleet/rows/deliveries-row.ts";

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

/** The end of the text about the last delivery that was accepted, after its age. */
export function deliveryText({ event, polled }: LastDelivery): string {
  return `${event === undefined ? "" : `${event}, `}polled ${counted(polled, "Source")}`;
}

/** The end of the text about the last refusal, after its age. Anybody can have sent what was refused. */
export function refusalText({ status, event, reason }: LastRefusal): string {
  return `answered ${status}${event === undefined ? "" : ` to ${event}`}: ${reason}`;
}
