import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, nextText } from "#cli/format/describe-text.ts";
import type { ReceiverObject } from "#shared/fleet/api/objects.ts";
import { objectState } from "#shared/words/object-state.ts";
import { listedText, polledText, tokensText } from "#shared/words/receiver-text.ts";

export function describeReceiver(object: ReceiverObject, now: Date): string {
  const { metadata, spec, status } = object;
  const where = `receiver/${metadata.name} -n ${metadata.namespace ?? ""}`;
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
