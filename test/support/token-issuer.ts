import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

/** An issuer of tokens of OpenID Connect on loopback, which says what a test chooses. */
export interface TokenIssuer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Paths that it was asked for, since this was called. */
  asked(): readonly string[];
  /** Answers in the place of its documents, by path. */
  readonly instead: Map<string, FileAnswer>;
  /** Its public keys, which a test may change. */
  readonly keys: JWK[];
  /** Signs a token. Claims that are undefined are left out. */
  sign(claims: object, how?: Partial<JWTHeaderParameters> & { readonly key?: PrivateKey }): Promise<string>;
  /** Publishes another key, of which it returns the private half. */
  publish(kid: string, alg: string): Promise<PrivateKey>;
  stop(): Promise<void>;
}

export const discoveryPath = "/.well-known/openid-configuration";
export const keysPath = "/keys";

/** @param now - the time of the tokens. */
export async function startTokenIssuer(now: Date): Promise<TokenIssuer> {
  const keys: JWK[] = [];
  const instead = new Map<string, FileAnswer>();
  const answer = ({ url }: AskedFile): FileAnswer => {
    const json = (value: unknown): FileAnswer => ({ body: JSON.stringify(value) });
    if (instead.has(url)) return instead.get(url) ?? "silent";
    if (url === discoveryPath) return json({ issuer: server.url, jwks_uri: `${server.url}${keysPath}` });
    return url === keysPath ? json({ keys }) : { status: 404 };
  };
  const server: FileServer = await startFileServer(answer);
  const publish = async (kid: string, alg: string): Promise<PrivateKey> => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    keys.push({ ...(await exportJWK(publicKey)), kid, alg, use: "sig" });
    return privateKey;
  };
  const first = await publish("first", "RS256");
  const seconds = Math.floor(now.getTime() / 1000);
  let seen = 0;
  return {
    url: server.url,
    asked() {
      const paths = server.asked.slice(seen).map(({ url }) => url);
      seen = server.asked.length;
      return paths;
    },
    instead,
    keys,
    async sign(claims, { key = first, ...header } = {}) {
      const payload: JWTPayload = { iss: server.url, aud: "starling", iat: seconds, exp: seconds + 300, ...claims };
      return new SignJWT(payload)
        .setProtectedHeader({ alg: "RS256", kid: "first", ...header })
        .sign(key, { crit: { x: true } });
    },
    publish,
    stop: () => server.stop(),
  };
}
