import { serviceAccountOfToken } from "#apiserver/authorization/service-account-tokens.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";

/**
 * Finds the user of a bearer token. The server calls it on every request whose token the server does not know itself.
 * An undefined user and a rejected promise both become 401, as with a token webhook that is down.
 */
export type Authenticator = (token: string, cluster: string) => Promise<User | undefined>;

const authenticated = "system:authenticated";
const anonymous: User = { username: "system:anonymous", groups: ["system:unauthenticated"] };
const administrator: User = { username: "admin", groups: ["system:masters", authenticated] };

/**
 * Finds the user of a request. A request without a bearer token is from the anonymous user. The cluster's own token
 * belongs to the administrator. Next come the tokens of service accounts, and last the authenticator. The result is
 * undefined where the credentials are invalid.
 */
export async function authenticate(
  cluster: Cluster,
  authorization: string | undefined,
  authenticator: Authenticator | undefined,
): Promise<User | undefined> {
  if (authorization === undefined || authorization === "") return anonymous;
  const token = /^Bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
  if (token === undefined) return anonymous;
  if (token === cluster.options.token) return administrator;
  const account = serviceAccountOfToken(cluster, token);
  const user = account ?? (await authenticator?.(token, cluster.options.name).catch(() => undefined));
  return user && withGroup(user, authenticated);
}

function withGroup(user: User, group: string): User {
  return user.groups.includes(group) ? user : { ...user, groups: [...user.groups, group] };
}
