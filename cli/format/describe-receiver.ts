import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, nextText } from "#cli/format/describe-text.ts";
import type { ReceiverObject } from "#shared/fleet/api/objects.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { objectState } from "#shared/words/object-state.ts";

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
      ["Sources", spec.sources.map(choiceText).join("; ")],
      ["Polls", status.sources.length === 0 ? "no Source: none exists" : status.sources.join(", ")],
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

/** The demands on the token of a sender. */
function tokensText({ oidc, google }: ReceiverObject["spec"]): string | undefined {
  if (google !== undefined) return `issuer=Google, audience=${google.audience}, email=${google.email}`;
  if (oidc === undefined) return undefined;
  const claims = Object.entries(oidc.claims).map(([name, pattern]) => `${name}=${pattern}`);
  return [`issuer=${oidc.issuer}`, `audience=${oidc.audience}`, ...claims].join(", ");
}

function choiceText(source: ReceiverObject["spec"]["sources"][number]): string {
  return typeof source === "string" ? source : `Sources with ${selectionText({ selector: source.selector })}`;
}
