import { defined } from "#shared/base/defined.ts";
import { isToken, putSecret, type SecretRefusal, secretMembers } from "#shared/fleet/bound-secret.ts";
import { sameAuthority } from "#shared/kube/certificate-authority.ts";

/** The target of a connection: its address, its certificate authority, and its name. */
export interface ClusterAddress {
  readonly server: string;
  readonly caData?: string | undefined;
  readonly tlsServerName?: string | undefined;
}

/** The value of the secret that `spec.endpoint.token` names: the token, and the one cluster that it is for. */
export function clusterSecret({ server, caData, tlsServerName, token }: ClusterAddress & { readonly token: string }) {
  return JSON.stringify({
    server,
    ...defined({ caData, tlsServerName }),
    token,
  });
}

/**
 * The token in a secret, for a connection to this address and no other. The authority and the name count as much as the
 * server: behind one address, the name in the handshake may choose the server, and an own authority certifies any
 * server.
 */
export function tokenFor(
  address: ClusterAddress,
  secret: { readonly name: string; readonly text: string },
): { readonly token: string } | SecretRefusal {
  const { name, text } = secret;
  const { server, caData, tlsServerName, token } = secretMembers(text) ?? {};
  if (server === undefined) {
    return {
      code: "SecretUnbound",
      message: `secret ${name} does not say which cluster it is for, and is sent to none; if it is for this one, ${putSecret(name, exampleFor(address))}`,
    };
  }
  const other = (what: string, field: string): SecretRefusal => ({
    code: "SecretMismatch",
    message: `secret ${name} is for another cluster and is not sent to ${address.server}: ${what}; correct spec.endpoint.${field}, or name a secret of this cluster in spec.endpoint.token.secret`,
  });
  const own = typeof server === "string" ? locationOf(server) : undefined;
  const desired = locationOf(address.server);
  if (own === undefined || desired === undefined || own.location !== desired.location) {
    return other('its "server" is another one', "server");
  }
  if (!sameAuthority(caData, address.caData)) return other('its "caData" is not the authority here', "caData");
  const names = [tlsServerName ?? own.host, address.tlsServerName ?? desired.host];
  if (hostName(names[0]) !== hostName(names[1])) {
    return other('its "tlsServerName" is not the name here', "tlsServerName");
  }
  if (isToken(token)) return { token };
  const message = `secret ${name} does not hold a token: expected its "token" to be the text of one, without spaces; ${putSecret(name, exampleFor(address))}`;
  return { code: "InvalidCredentials", message };
}

function exampleFor({ server, caData, tlsServerName }: ClusterAddress): Readonly<Record<string, unknown>> {
  return {
    server,
    ...(caData === undefined ? {} : { caData: "<that of spec.endpoint>" }),
    ...defined({ tlsServerName }),
    token: "<the token>",
  };
}

/** Equal for every spelling of one server; with its path, by which gateways choose the server. */
function locationOf(server: string): { readonly location: string; readonly host: string } | undefined {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== "https:") return undefined;
  const host = hostName(url.hostname);
  return { host, location: `${host}:${url.port || "443"}${url.pathname.replace(/\/$/, "")}` };
}

/** A URL normalises numbers, cases and scripts; the final dot of a full name remains. */
function hostName(text: unknown): string {
  return String(text).toLowerCase().replace(/\.$/, "");
}
