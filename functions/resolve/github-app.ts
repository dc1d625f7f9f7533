/** Signs in as an installation of a GitHub App: with the app's key for a token that reads, and may do nothing else. */

import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { LRUCache } from "lru-cache";
import * as z from "zod";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { jsonOf } from "#shared/base/json-of.ts";
import type { HttpRemote, SourceCredentials, TlsIdentity } from "#shared/ports.ts";

export interface GithubApp {
  readonly kind: "githubApp";
  readonly appId: string;
  readonly installation: { readonly id: string } | { readonly owner: string };
  /** PEM, as GitHub gives it out. */
  readonly privateKey: string;
  /** `https://api.github.com`, without a slash at its end. */
  readonly baseUrl: string;
  /** The token goes to addresses below it only. */
  readonly prefix?: string;
  /** The authority of a private server. */
  readonly tls?: TlsIdentity;
}

export interface GithubAppUse {
  readonly clock: Clock;
  readonly http: HttpRemote;
  readonly timeLeftMs: () => number;
  /** True when git refused the token that was known. */
  readonly fresh: boolean;
}

interface Token {
  readonly value: string;
  readonly expiresAt: number;
}

/** GitHub takes no more than ten minutes, and clocks differ. */
const assertionSeconds = { before: 30, after: 540 };
/** A fetch that begins with a token ends with it. */
const marginMs = 5 * 60_000;
const maxAnswerBytes = 256 * 1024;

/** The tokens of this process, by everything that they depend on. */
const tokens = new LRUCache<string, Token>({ max: 200 });

/** @throws StarlingError `InvalidCredentials`, `AuthenticationFailed`, `UpstreamUnavailable`, `RateLimited`. */
export async function installationLogin(app: GithubApp, use: GithubAppUse): Promise<SourceCredentials> {
  const key = digestOf(app);
  const known = use.fresh ? undefined : tokens.get(key);
  const now = use.clock.now().getTime();
  if (known !== undefined && known.expiresAt - marginMs > now) return loginWith(known, app);
  const token = await newToken(app, use);
  tokens.set(key, token);
  return loginWith(token, app);
}

function loginWith({ value }: Token, { prefix, tls }: GithubApp): SourceCredentials {
  return { kind: "basic", username: "x-access-token", password: value, ...defined({ prefix, tls }) };
}

const tokenAnswer = z.object({
  token: z.string().regex(/^[\x21-\x7e]+$/),
  expires_at: z.iso.datetime({ offset: true }),
});
const installationAnswer = z.object({ id: z.number().int() });

async function newToken(app: GithubApp, use: GithubAppUse): Promise<Token> {
  const assertion = assertionOf(app, use.clock.now());
  const id =
    "id" in app.installation
      ? app.installation.id
      : await installationOf(app.installation.owner, { app, use, assertion });
  const asked = { path: `/app/installations/${id}/access_tokens`, body: { permissions: { contents: "read" } } };
  const answer = await ask(asked, { app, use, assertion });
  if (answer.status === 404)
    throw denied(app, `the app ${app.appId} has no installation ${id}; correct "installationId" in the secret`);
  if (answer.status !== 201) throw refused(app, answer.status);
  const token = read(tokenAnswer, answer.body, app);
  return { value: token.token, expiresAt: Date.parse(token.expires_at) };
}

interface Asking {
  readonly app: GithubApp;
  readonly use: GithubAppUse;
  readonly assertion: string;
}

/** An owner is an organization or a person, and a name does not say which. */
async function installationOf(owner: string, asking: Asking): Promise<string> {
  for (const kind of ["orgs", "users"]) {
    const { status, body } = await ask({ path: `/${kind}/${encodeURIComponent(owner)}/installation` }, asking);
    if (status === 200) return String(read(installationAnswer, body, asking.app).id);
    if (status !== 404) throw refused(asking.app, status);
  }
  const { appId } = asking.app;
  throw denied(
    asking.app,
    `the app ${appId} is not installed for ${owner}; install it there, or correct "owner" in the secret`,
  );
}

async function ask({ path, body }: { readonly path: string; readonly body?: object }, { app, use, assertion }: Asking) {
  return use.http.ask({
    url: `${app.baseUrl}${path}`,
    method: body === undefined ? "GET" : "POST",
    headers: {
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    credentials: { kind: "bearer", token: assertion, ...defined({ tls: app.tls }) },
    maxBytes: maxAnswerBytes,
    timeLeftMs: use.timeLeftMs,
  });
}

/** A JSON Web Token (RFC 7519) that proves to be the app. */
function assertionOf({ appId, privateKey }: GithubApp, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1000);
  const claims = { iat: seconds - assertionSeconds.before, exp: seconds + assertionSeconds.after, iss: appId };
  const encoded = [{ alg: "RS256", typ: "JWT" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const content = encoded.join(".");
  return `${content}.${sign("sha256", Buffer.from(content), keyOf(privateKey)).toString("base64url")}`;
}

function keyOf(text: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // As below; the error could repeat a part of the key.
  }
  const remedy = "write the file that GitHub gave out for the app, with its line ends as \\n";
  throw upstreamError(
    "InvalidCredentials",
    `"privateKey" in the secret of spec.git.credentials is no RSA key in PEM; ${remedy}`,
  );
}

function read<Answer>(schema: z.ZodType<Answer>, body: Uint8Array, app: GithubApp): Answer {
  const parsed = schema.safeParse(jsonOf(new TextDecoder().decode(body)));
  if (parsed.success) return parsed.data;
  const message = `${app.baseUrl} does not answer like GitHub; check "baseUrl" in the secret of spec.git.credentials`;
  throw new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
}

function refused(app: GithubApp, status: number): StarlingError {
  if (status === 401)
    return denied(
      app,
      `the key of the app ${app.appId} is refused (HTTP 401); correct "appId" or "privateKey" in the secret`,
    );
  if (status === 403 || status === 422) {
    return denied(
      app,
      `the app ${app.appId} may not read contents (HTTP ${status}); give it the permission "Contents: read", and accept that for its installation`,
    );
  }
  const message = `${app.baseUrl} answers HTTP ${status} to the app ${app.appId}; if that goes on, check "baseUrl" in the secret of spec.git.credentials`;
  return new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
}

function denied({ baseUrl }: GithubApp, what: string): StarlingError {
  return upstreamError("AuthenticationFailed", `${baseUrl}: ${what}`);
}
