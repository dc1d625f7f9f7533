import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { serviceAccountOf, serviceAccountUser } from "#apiserver/authorization/rbac.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";

/** The audience of tokens that request none. It is the only audience that this server accepts. */
export const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local";

const header = encode({ alg: "HS256", typ: "JWT" });

function encode(part: JsonObject): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

/** The key is the cluster's own token, so that issued tokens survive a restart without more stored state. */
function signature(cluster: Cluster, text: string): Buffer {
  return createHmac("sha256", cluster.options.token).update(text).digest();
}

/** Issues a JSON web token with the claims of a real one. Times are in seconds since the epoch. */
export function issueToken(
  cluster: Cluster,
  account: JsonObject,
  claims: { readonly audiences: readonly string[]; readonly issuedAt: number; readonly expiresAt: number },
): string {
  const [namespace, name, uid] = ["namespace", "name", "uid"].map((key) => stringAt(account, "metadata", key) ?? "");
  const payload = encode({
    aud: claims.audiences,
    exp: claims.expiresAt,
    iat: claims.issuedAt,
    iss: serviceAccountIssuer,
    jti: randomUUID(),
    "kubernetes.io": { namespace, serviceaccount: { name, uid } },
    nbf: claims.issuedAt,
    sub: serviceAccountUser(namespace ?? "", name ?? "").username,
  });
  const text = `${header}.${payload}`;
  return `${text}.${signature(cluster, text).toString("base64url")}`;
}

/**
 * The service account of a token. Undefined when the token is not valid, has expired, or its account no longer exists.
 */
export function serviceAccountOfToken(cluster: Cluster, token: string): User | undefined {
  const [head = "", payload = "", signed = "", ...more] = token.split(".");
  if (head !== header || more.length > 0) return undefined;
  const expected = signature(cluster, `${head}.${payload}`);
  const given = Buffer.from(signed, "base64url");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
  if (!isJsonObject(claims) || Number(claims.exp) * 1000 <= cluster.options.clock()) return undefined;
  if (!listAt(claims, "aud").includes(serviceAccountIssuer)) return undefined;
  const account = serviceAccountOf(String(claims.sub));
  if (account === undefined) return undefined;
  const stored = cluster.store.get("/serviceaccounts", objectKey(account.namespace, account.name));
  const uid = stringAt(stored, "metadata", "uid");
  if (uid === undefined || uid !== valueAt(claims, "kubernetes.io", "serviceaccount", "uid")) return undefined;
  const extra = { "authentication.kubernetes.io/credential-id": [`JTI=${String(claims.jti)}`] };
  return { ...serviceAccountUser(account.namespace, account.name), uid, extra };
}
