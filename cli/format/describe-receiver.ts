import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, nextText } from "#cli/format/describe-text.ts";
import type { ReceiverObject } from "#shared/fleet/api/objects.ts";
import { formatAge } from "#shared/words/age.ts";
import { objectState } from "#shared/words/object-state.ts";
import { deliveryText, listedText, polledText, refusalText, tokensText } from "#shared/words/receiver-text.ts";

export function describeReceiver(object: ReceiverObject, now: Date): string {
  const { metadata, spec, status } = object;
  const where = `receiver/${metadata.name} -n ${metadata.namespace ?? ""}`;
  const { lastDelivery: delivery, lastRefusal: refusal } = status;
  const ago = (at: string) => `${formatAge(at, now)} ago`;
  const suspended = objectState(object).word === "Suspended";
  return [
    headText(object, now),
    fieldsText([
      ["Provider", spec.provider],
      ["URL", urlTokens.has(spec.provider) ? `${status.url}?token=TOKEN` : status.url],
      ["Token", urlTokens.has(spec.provider) ? tokenText(status.url) : undefined],
      ["Sources", listedText(spec)],
      ["Polls", polledText(status)],
      ["Secrets", spec.secrets?.join(", ")],
      ["Tokens", tokensText(spec)],
      ["Events", spec.events?.join(", ")],
      ["Delivered", delivery === undefined ? "none within 30 days" : `${ago(delivery.at)}, ${deliveryText(delivery)}`],
      ["Refused", refusal === undefined ? undefined : `${ago(refusal.at)}, ${refusalText(refusal)}`],
    ]),
    nextText(suspended ? [`starling resume ${where}`] : []),
  ].join("");
}

/** The providers that prove themselves by a token in the URL. */
const urlTokens: ReadonlySet<string> = new Set(["dockerhub", "quay", "acr"]);

/** The command for the token in the URL, which nobody but those who know the secret can make. */
function tokenText(url: string): string {
  return `printf %s ${url.slice(url.lastIndexOf("/") + 1)} | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1`;
}
