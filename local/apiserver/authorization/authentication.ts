import { serviceAccountOfToken } from "#apiserver/authorization/service-account-tokens.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";

/**
 * Says whose bearer token this is; asked for tokens the server does not know itself, on every request.
 * Undefined is answered 401, and so is a rejection, as with a token webhook that is down.
 */
export type Authenticator = (token: string, cluster: string) => Promise<User | undefined>;

const authenticated = "system:authenticated";
const anonymous: User = { username: "system:anonymous", groups: ["system:unauthenticated"] };
const administrator: User = { username: "admin", groups: ["system:masters", authenticated] };

/**
 * Who is asking: no credentials are the anonymous user, the token of the cluster is the administrator's, then come the
 * tokens of service accounts; any other is the authenticator's to judge. Undefined where the credentials are nobody's.
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
