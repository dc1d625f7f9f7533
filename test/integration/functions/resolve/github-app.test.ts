import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const secret = "starling/git/acme";
const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const privateKey = pair.privateKey.export({ type: "pkcs1", format: "pem" }).toString();
const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
const tokenPath = "/app/installations/77/access_tokens";

let git: OwnGitServer;
let api: FileServer;
let world: SourceWorld;
/** The tokens that the API gives out, one after the other. */
let tokens: string[];
let answers: Record<string, FileAnswer>;
let valid: string;

beforeEach(async () => {
  // Each test has tokens of its own, because they are known to the process.
  valid = `ghs_${Math.random().toString(36).slice(2)}`;
  git = await startOwnGitServer({ credentials: { username: "x-access-token", password: valid } });
  await git.createRepository("acme/shop", { "a.yaml": config });
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  tokens = [valid];
  answers = { "GET /orgs/acme/installation": { body: JSON.stringify({ id: 77 }) } };
  api = await startFileServer(answer);
  keep({});
  await world.put({
    git: { url: git.url("acme/shop"), ref: { branch: "main" }, credentials: { secret, kind: "githubApp" } },
  });
});

afterEach(async () => {
  await git.stop();
  await api.stop();
});

function answer({ method, url }: AskedFile): FileAnswer {
  const fixed = answers[`${method} ${url}`];
  if (fixed !== undefined) return fixed;
  if (url !== tokenPath) return { status: 404, body: "{}" };
  const expiresAt = new Date(world.now.getTime() + 3_600_000).toISOString();
  return { status: 201, body: JSON.stringify({ token: tokens.shift(), expires_at: expiresAt }) };
}

function keep(more: object): void {
  const members = {
    host: new URL(git.url("x")).host,
    appId: 4711,
    owner: "acme",
    privateKey,
    baseUrl: `${api.url}/`,
    ...more,
  };
  world.secrets.set(secret, JSON.stringify(members));
}

const asked = () => api.asked.map(({ method, url }) => `${method} ${url}`);

describe("a Source that signs in as a GitHub App", () => {
  test("the installation is found by its owner, and the token is asked for reading alone and used until shortly before its end [source.github-app.token]", async () => {
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(asked()).toEqual(["GET /orgs/acme/installation", `POST ${tokenPath}`]);
    expect(JSON.parse(api.asked[1]?.body ?? "")).toEqual({ permissions: { contents: "read" } });
    world.now = new Date(world.now.getTime() + 54 * 60_000);
    await git.commitFiles("acme/shop", { "b.yaml": config }, { message: "Second" });
    expect((await world.resolve()).status.artifact).toMatchObject({ files: 2 });
    expect(api.asked.length).toBe(2);
    tokens = [valid];
    world.now = new Date(world.now.getTime() + 2 * 60_000);
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(api.asked.length).toBe(4);
  });

  test("the app proves itself by a token that begins 30 s ago and lives for less than ten minutes [source.github-app.token]", async () => {
    await world.resolve();
    const [, assertion = ""] = /^Bearer (.+)$/.exec(api.asked[0]?.headers.authorization ?? "") ?? [];
    const [head = "", claims = "", signature = ""] = assertion.split(".");
    const json = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
    const now = world.now.getTime() / 1000;
    expect([json(head), json(claims)]).toEqual([
      { alg: "RS256", typ: "JWT" },
      { iat: now - 30, exp: now + 540, iss: "4711" },
    ]);
    const content = Buffer.from(`${head}.${claims}`);
    expect(verify("sha256", content, createPublicKey(privateKey), Buffer.from(signature, "base64url"))).toBe(true);
  });

  test("an owner that is a person is found, too", async () => {
    answers = { "GET /users/acme/installation": { body: JSON.stringify({ id: 77 }) } };
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(asked()).toEqual(["GET /orgs/acme/installation", "GET /users/acme/installation", `POST ${tokenPath}`]);
  });

  test("an installation that the secret names is not looked for", async () => {
    keep({ owner: undefined, installationId: 77 });
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(asked()).toEqual([`POST ${tokenPath}`]);
  });

  test("a token that git refuses is renewed once [source.github-app.token]", async () => {
    tokens = ["ghs_revoked", valid];
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(asked().filter((each) => each.startsWith("POST")).length).toBe(2);
    tokens = ["ghs_other", "ghs_more", "ghs_never"];
    world.now = new Date(world.now.getTime() + 3_600_000);
    expect(await world.ready()).toMatchObject({ status: "False", reason: "GitAuthenticationFailed" });
    expect(tokens).toEqual(["ghs_never"]);
  });

  test("a token is sent to no other host than that of the secret, and none is asked for [source.github-app.host]", async () => {
    keep({ host: "github.com" });
    expect(await world.ready()).toMatchObject({ status: "False", reason: "SecretMismatch" });
    expect(api.asked.length).toBe(0);
  });

  test("a redirect to another server gets no proof [source.github-app.host]", async () => {
    const other = await startFileServer(() => ({ status: 404 }));
    answers = { "GET /orgs/acme/installation": { status: 302, headers: { location: `${other.url}/x` } } };
    expect(await world.ready()).toMatchObject({ status: "False" });
    expect(other.asked.map(({ headers }) => headers.authorization)).toEqual(other.asked.map(() => undefined));
    expect(other.asked.length).toBeGreaterThan(0);
    await other.stop();
  });

  test.each<[string, string, FileAnswer, string, string]>([
    [
      "the key is wrong",
      "GET /orgs/acme/installation",
      { status: 401 },
      "AuthenticationFailed",
      "the key of the app 4711 is refused",
    ],
    [
      "the app is not installed",
      "GET /orgs/acme/installation",
      { status: 404 },
      "AuthenticationFailed",
      "the app 4711 is not installed for acme",
    ],
    ["the app may not read", `POST ${tokenPath}`, { status: 422 }, "AuthenticationFailed", '"Contents: read"'],
    [
      "the installation is gone",
      `POST ${tokenPath}`,
      { status: 404 },
      "AuthenticationFailed",
      "has no installation 77",
    ],
    ["the API is down", `POST ${tokenPath}`, { status: 502 }, "UpstreamUnavailable", "answers HTTP 502"],
    [
      "the API is another one",
      `POST ${tokenPath}`,
      { status: 201, body: "<html>" },
      "UpstreamUnavailable",
      "does not answer like GitHub",
    ],
    ["no more requests are allowed", `POST ${tokenPath}`, { status: 429 }, "RateLimited", "allows no more requests"],
  ])("when %s, the Source says so", async (_what, path, said, reason, message) => {
    answers = { ...answers, [path]: said };
    expect(await world.ready()).toMatchObject({ status: "False", reason, message: expect.stringContaining(message) });
  });

  test.each<[string, object]>([
    ["no app", { appId: undefined }],
    ["neither owner nor installation", { owner: undefined }],
    ["both owner and installation", { installationId: 77 }],
    ["an installation that leads elsewhere", { owner: undefined, installationId: "../../user" }],
    ["an owner that leads elsewhere", { owner: ".." }],
    ["an API without encryption", { baseUrl: "http://api.github.com" }],
    ["no key", { privateKey: undefined }],
    ["a key that is none", { privateKey: "s3cret" }],
    [
      "a key of another type",
      { privateKey: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) },
    ],
  ])("a secret with %s is InvalidCredentials, and nothing is sent", async (_what, more) => {
    keep(more);
    const ready = await world.ready();
    expect(ready).toMatchObject({ status: "False", reason: "InvalidCredentials" });
    expect(ready?.message).not.toContain("s3cret");
    expect(api.asked.length).toBe(0);
  });
});
