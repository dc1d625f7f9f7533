import { answered, type Proven, readDelivery, unauthorized } from "#functions/webhook/prove-delivery.ts";
import type { WebhookRequest } from "#functions/webhook/providers/provider.ts";
import { tokenProviders } from "#functions/webhook/providers/receiver-providers.ts";
import type { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import { claimPattern, type TokenDemand, verifyToken } from "#functions/webhook/tokens/verify-token.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import type { ReceiverSpec, TokenSender } from "#shared/fleet/kinds/receiver.ts";
import { openClaims } from "#shared/fleet/kinds/token-issuer.ts";
import type { ReceiverRow } from "#shared/fleet/rows/object-rows.ts";

const google = "https://accounts.google.com";

/** The push of a request whose sender has a token of the issuer that the Receiver names, or the answer to any other request. */
export async function proveByToken(
  provider: TokenSender,
  { row, request }: { readonly row: ReceiverRow; readonly request: WebhookRequest },
  { issuers, ports }: { readonly issuers: IssuerKeys; readonly ports: WebhookPorts },
): Promise<Proven> {
  const { namespace, name, spec } = row;
  const about = { kind: "Receiver", namespace, name, provider };
  const demand = demandOf(spec);
  if (demand === undefined) return unauthorized("the Receiver does not say whose tokens it takes");
  try {
    const verified = await verifyToken(request.headers.authorization, demand, { issuers, clock: ports.clock });
    const problem = verified ?? openRow(spec);
    if (problem === undefined) return readDelivery(tokenProviders[provider], request);
    ports.log.warn("a token proves no sender", { ...about, reason: problem });
    return unauthorized(problem);
  } catch (error) {
    const issuer = demand.issuer;
    ports.log.error("a token cannot be verified", {
      ...about,
      issuer,
      code: errorCode(error),
      error: errorMessage(error),
    });
    return { ...answered(503, "unavailable"), reason: errorMessage(error) };
  }
}

/** Why a row that an older version took lets strangers in. */
function openRow({ oidc }: ReceiverSpec): string | undefined {
  const open = oidc === undefined ? undefined : openClaims(oidc.issuer, oidc.claims);
  return open === undefined ? undefined : `${open.field} ${open.message}`;
}

function demandOf({ oidc, google: account }: ReceiverSpec): TokenDemand | undefined {
  if (oidc !== undefined) {
    const { issuer, audience } = oidc;
    // Strangers can send any number of requests: only a verified token is worth compiling a pattern.
    const claims = Object.entries(oidc.claims).map(([name, pattern]) => {
      const fits = (value: unknown) => claimPattern(pattern)(value);
      return [name, fits] as const;
    });
    return { issuer, spellings: [issuer], audience, claims: Object.fromEntries(claims) };
  }
  if (account === undefined) return undefined;
  const { audience, email } = account;
  return {
    issuer: google,
    spellings: [google, "accounts.google.com"],
    audience,
    claims: { email: (value) => value === email, email_verified: (value) => value === true },
  };
}
