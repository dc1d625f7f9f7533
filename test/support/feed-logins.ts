/** The ways in which a Source signs in, each with a server on loopback that demands it before one that is open. */
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { movedGit, signedForGit, signingKey } from "#test/support/aws-signature.ts";
import { type FrontRequest, startCheckedFront } from "#test/support/checked-front.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { movedHttp } from "#test/support/moved-http.ts";
import { newAuthority, newCertificate, startMutualTlsFront } from "#test/support/mutual-tls-front.ts";
import type { SourceWorld } from "#test/support/source-world.ts";

/** `authority`: HTTP Basic at a server of a private authority. `token`: a registry gives a token for the login. */
export type FeedCredentials =
  | "none"
  | "basic"
  | "bearer"
  | "tls"
  | "authority"
  | "ssh"
  | "token"
  | "dockerConfig"
  | "githubApp"
  | "ECR"
  | "CodeCommit"
  | "CodeConnections";

/** The statement of a Source that signs in, and what decides whether it may. */
export interface FeedLogin {
  /** Of the Source; undefined for an open server. */
  readonly credentials: object | undefined;
  /** From now on what signs in is wrong, or right. */
  readonly deny: () => void;
  readonly allow: () => void;
  /** The reason of a Source that may not read. */
  readonly refusal: RegExp;
}

export const login = { username: "bot", password: "right-password" };
const wrongPassword = "not-this-one";
const secret = "starling/git/feed";

/** Signs in with a secret. */
export function secretLogin(
  world: SourceWorld,
  kind: string,
  { right, wrong, refusal = /AuthenticationFailed$/ }: { right: object; wrong: object; refusal?: RegExp },
): FeedLogin {
  const keep = (members: object) => () => void world.secrets.set(secret, JSON.stringify(members));
  return { credentials: { secret, kind }, deny: keep(wrong), allow: keep(right), refusal };
}

/** Signs in with a user name and a password. */
export function passwordLogin(world: SourceWorld, host: string): FeedLogin {
  return secretLogin(world, "basic", { right: { host, ...login }, wrong: { host, ...login, password: wrongPassword } });
}

interface OpenServer {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  readonly world: SourceWorld;
  /** A registry on this machine is asked without TLS, so that one with TLS has a name. */
  readonly isRegistry?: boolean;
}

interface GuardedServer {
  /** For the address of the Source. */
  readonly origin: string;
  /** Path of the repository, where the origin has paths of its own. */
  readonly path?: string;
  readonly login: FeedLogin;
  readonly stop: () => Promise<void>;
}

const hostIn = (origin: string) => new URL(origin).host;
const basicOf = ({ username, password }: typeof login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
const sends = (authorization: string) => (request: FrontRequest) => request.headers.authorization === authorization;
const nothing = () => undefined;

/** @returns the value that is made at the first call. */
function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

const certificates = once(async () => {
  const [ca, foreign] = await Promise.all([newAuthority("corp"), newAuthority("other")]);
  const [server, client, stranger] = await Promise.all([
    newCertificate("server", { ca }),
    newCertificate("starling", { ca }),
    newCertificate("stranger", { ca: foreign }),
  ]);
  return { ca, foreign, server, client, stranger };
});
const appKeys = once(() => ({
  right: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs1", format: "pem" }),
  wrong: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs1", format: "pem" }),
}));

/** Stands before an open server. */
export async function guarded(credentials: FeedCredentials, server: OpenServer): Promise<GuardedServer> {
  const { origin, world } = server;
  const front = (isLetIn: (request: FrontRequest) => boolean, pathOf?: (url: string) => string) =>
    startCheckedFront({ target: () => origin, isLetIn, ...(pathOf && { pathOf }) });
  switch (credentials) {
    case "basic": {
      const checked = await front(sends(basicOf(login)));
      return { ...checked, login: passwordLogin(world, hostIn(checked.origin)) };
    }
    case "bearer": {
      const checked = await front(sends(`Bearer ${login.password}`));
      const host = hostIn(checked.origin);
      const secrets = { right: { host, token: login.password }, wrong: { host, token: wrongPassword } };
      return { ...checked, login: secretLogin(world, "bearer", secrets) };
    }
    case "dockerConfig": {
      const checked = await front(sends(basicOf(login)));
      const configOf = (password: string) => ({
        auths: { [hostIn(checked.origin)]: { auth: Buffer.from(`${login.username}:${password}`).toString("base64") } },
      });
      const secrets = { right: configOf(login.password), wrong: configOf(wrongPassword) };
      return { ...checked, login: secretLogin(world, "dockerConfig", secrets) };
    }
    case "tls":
      return behindTls(server);
    case "authority":
      return ofPrivateAuthority(server);
    case "githubApp":
      return forApp(server);
    case "ECR":
      return inEcr(server);
    case "CodeCommit":
      return inAws(server, "git-codecommit.eu-west-1.amazonaws.com", {
        path: "v1/repos/app",
        arn: `arn:aws:codecommit:eu-west-1:${account}:app`,
      });
    case "CodeConnections": {
      const id = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";
      return inAws(server, "codeconnections.eu-west-1.amazonaws.com", {
        path: `git-http/${account}/eu-west-1/${id}/acme/app.git`,
        arn: `arn:aws:codeconnections:eu-west-1:${account}:connection/${id}`,
      });
    }
    default: {
      const open = { credentials: undefined, deny: nothing, allow: nothing, refusal: /^$/ };
      return { origin, login: open, stop: async () => undefined };
    }
  }
}

const named = "https://corp.example";

/** The origin for a Source, of a server with TLS on this machine. */
function reached(url: string, { world, isRegistry = false }: OpenServer): string {
  if (!isRegistry) return url;
  world.http = movedHttp(world.http, { [named]: url });
  return named;
}

async function behindTls(open: OpenServer): Promise<GuardedServer> {
  const { ca, server, client, stranger } = await certificates();
  const front = await startMutualTlsFront(() => open.origin, { ca, server });
  const origin = reached(front.url, open);
  const secretOf = ({ cert, key }: typeof client) => ({
    host: hostIn(origin),
    ca: ca.cert,
    certificate: cert,
    privateKey: key,
  });
  const secrets = { right: secretOf(client), wrong: secretOf(stranger) };
  return { origin, login: secretLogin(open.world, "tls", secrets), stop: () => front.stop() };
}

async function ofPrivateAuthority(open: OpenServer): Promise<GuardedServer> {
  const { ca, foreign, server } = await certificates();
  const checked = await startCheckedFront({ target: () => open.origin, isLetIn: sends(basicOf(login)) });
  const front = await startMutualTlsFront(() => checked.origin, { ca, server, clients: "any" });
  const origin = reached(front.url, open);
  const secretOf = (authority: string) => ({ host: hostIn(origin), ...login, ca: authority });
  return {
    origin,
    login: secretLogin(open.world, "basic", {
      right: secretOf(ca.cert),
      wrong: secretOf(foreign.cert),
      refusal: /^(UpstreamUnavailable|GitOperationFailed)$/,
    }),
    async stop() {
      await front.stop();
      await checked.stop();
    },
  };
}

/** A git server that knows the tokens of an installation, and the API that gives them for the app's key. */
async function forApp({ origin, world }: OpenServer): Promise<GuardedServer> {
  const { right, wrong } = appKeys();
  const token = `ghs_${Math.random().toString(36).slice(2)}`;
  const isOfApp = (authorization = "") => {
    const [head = "", claims = "", signature = ""] = authorization.replace(/^Bearer /, "").split(".");
    const content = Buffer.from(`${head}.${claims}`);
    return verify("sha256", content, createPublicKey(right), Buffer.from(signature, "base64url"));
  };
  const api = await startFileServer(({ url, headers }) => {
    if (!isOfApp(headers.authorization)) return { status: 401 };
    if (url === "/orgs/acme/installation") return { body: '{"id":77}' };
    const expiresAt = new Date(world.now.getTime() + 3_600_000).toISOString();
    return { status: 201, body: JSON.stringify({ token, expires_at: expiresAt }) };
  });
  const isLetIn = sends(basicOf({ username: "x-access-token", password: token }));
  const front = await startCheckedFront({ target: () => origin, isLetIn });
  const secretOf = (privateKey: unknown) => ({
    host: hostIn(front.origin),
    appId: 4711,
    owner: "acme",
    privateKey,
    baseUrl: api.url,
  });
  return {
    origin: front.origin,
    login: secretLogin(world, "githubApp", { right: secretOf(right), wrong: secretOf(wrong) }),
    async stop() {
      await front.stop();
      await api.stop();
    },
  };
}

const account = "111122223333";

/** Starling's own role, which an operator lets read this repository, or none. */
function roleLogin(world: SourceWorld, arn: string): FeedLogin {
  const accessKeyId = `AKID${Math.random().toString(36).slice(2).toUpperCase()}`;
  const keys = { accessKeyId, secretAccessKey: signingKey, sessionToken: "session/token" };
  const grant = (...arns: readonly string[]) => {
    world.role = { credentials: async () => keys, grants: arns.map((each) => ({ arn: each })) };
  };
  return { credentials: { kind: "aws" }, deny: () => grant(), allow: () => grant(arn), refusal: /^AwsSourceDenied$/ };
}

async function inEcr({ origin, world }: OpenServer): Promise<GuardedServer> {
  const host = `${account}.dkr.ecr.eu-west-1.amazonaws.com`;
  const aws = { username: "AWS", password: "token-of-ecr" };
  const api = await startFileServer(({ headers }) => {
    if (!headers.authorization?.startsWith("AWS4-HMAC-SHA256 ")) return { status: 403 };
    const authorizationToken = Buffer.from(`${aws.username}:${aws.password}`).toString("base64");
    const expiresAt = world.now.getTime() / 1000 + 12 * 3600;
    return { body: JSON.stringify({ authorizationData: [{ authorizationToken, expiresAt }] }) };
  });
  const front = await startCheckedFront({ target: () => origin, isLetIn: sends(basicOf(aws)) });
  world.http = movedHttp(world.http, {
    [`https://${host}`]: front.origin,
    "https://api.ecr.eu-west-1.amazonaws.com": api.url,
  });
  return {
    origin: `https://${host}`,
    login: roleLogin(world, `arn:aws:ecr:eu-west-1:${account}:repository/*`),
    async stop() {
      await front.stop();
      await api.stop();
    },
  };
}

/** A git server of AWS, which verifies the role's signature. */
async function inAws(
  { origin, world }: OpenServer,
  host: string,
  { path, arn }: { readonly path: string; readonly arn: string },
): Promise<GuardedServer> {
  const front = await startCheckedFront({
    target: () => origin,
    isLetIn: ({ headers }) => signedForGit(headers, { host, path })?.token === "session/token",
    pathOf: (url) => url.replace(`/${path}`, "/app.git"),
  });
  world.git = movedGit(new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") }), `https://${host}`, front.origin);
  return { origin: `https://${host}`, path, login: roleLogin(world, arn), stop: () => front.stop() };
}
