import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const secret = "starling/git/files";
const credentials = { secret, kind: "basic" };
const loginOf = (password: string) => ({ username: "bot", password });
const [old, next, other] = [loginOf("old-pw"), loginOf("new-pw"), loginOf("other-pw")] as const;
const basicOf = ({ username, password }: { username: string; password: string }) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;

let world: SourceWorld;
let server: FileServer;
let answer: (asked: AskedFile) => FileAnswer;
let content: Buffer;
/** Whether each reading of the secret was to be fresh. */
let readings: boolean[];

beforeEach(async () => {
  world = new SourceWorld();
  server = await startFileServer((asked) => answer(asked));
  content = Buffer.from(await tarGz([{ name: "a.yaml", body: "a: 1" }]));
  readings = [];
  answer = taking(next);
});

afterEach(() => server.stop());

/** Answers like a server that knows these logins only. */
function taking(...logins: { username: string; password: string }[]): typeof answer {
  return ({ headers }) =>
    logins.some((login) => headers.authorization === basicOf(login)) ? { body: content } : { status: 401 };
}

/** Sets the secret that is cached, and the one that is stored. */
function keep(cached: object, fresh: object = cached): void {
  world.readSecret = async (_name, { fresh: isFresh = false } = {}) => {
    readings.push(isFresh);
    return JSON.stringify({ host: new URL(server.url).host, ...(isFresh ? fresh : cached) });
  };
}

const sha256 = () => createHash("sha256").update(content).digest("hex");
const put = (path = "/acme/a.tar.gz") =>
  world.put({ archive: { url: `${server.url}${path}`, sha256: sha256(), credentials } });
const sent = () => server.asked.map(({ headers }) => headers.authorization);

describe("a secret with two credentials", () => {
  test("the second signs in when the first is refused, and the secret is not read again [source.credentials.second]", async () => {
    keep({ credentials: [old, next] });
    await put();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(sent()).toEqual([basicOf(old), basicOf(next)]);
    expect(readings).toEqual([false]);
  });

  test("the second is never sent while the first is taken [source.credentials.second]", async () => {
    keep({ credentials: [next, old] });
    await put();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(sent()).toEqual([basicOf(next)]);
  });

  test.each([404, 500, 429])(
    "the second is not tried after a failure that is no refusal: HTTP %i [source.credentials.second]",
    async (status) => {
      answer = () => ({ status, headers: { "retry-after": "60" } });
      keep({ credentials: [old, next] });
      await put();
      expect(await world.ready()).toMatchObject({ status: "False" });
      expect(sent()).toEqual([basicOf(old)]);
      expect(readings).toEqual([false]);
    },
  );

  test("when both are refused, the reason says so, and nothing is asked more than once with each login [source.credentials.second]", async () => {
    keep({ credentials: [old, other] });
    await put();
    const ready = await world.ready();
    expect(ready).toMatchObject({
      reason: "AuthenticationFailed",
      message: expect.stringContaining(`(both credentials of the secret ${secret} are refused)`),
    });
    expect(sent()).toEqual([basicOf(old), basicOf(other)]);
    expect(readings).toEqual([false, true]);
    for (const { password } of [old, other]) expect(JSON.stringify(ready)).not.toContain(password);
  });

  test("when the second meets another failure, the reason says that the first is refused", async () => {
    answer = ({ headers }) => ({ status: headers.authorization === basicOf(old) ? 403 : 500 });
    keep({ credentials: [old, next] });
    await put();
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining(
        `HTTP 500; if that goes on, ask who runs it (the first credentials of the secret`,
      ),
    });
  });
});

describe("a secret that was rotated since it was read", () => {
  test("it is read again once after a refusal, and only then [source.credentials.rotated]", async () => {
    keep(old, next);
    await put();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect({ sent: sent(), readings }).toEqual({ sent: [basicOf(old), basicOf(next)], readings: [false, true] });
  });

  test("a server that refuses everything gets each login once [source.credentials.rotated]", async () => {
    answer = () => ({ status: 401, headers: { "www-authenticate": 'Basic realm="again"' } });
    keep({ credentials: [old, next] }, { credentials: [next, other] });
    await put();
    expect(await world.ready()).toMatchObject({ reason: "AuthenticationFailed" });
    expect(sent()).toEqual([old, next, other].map(basicOf));
  });
});

describe("credentials stay where they belong", () => {
  test("a redirect to another server gets none of them [source.credentials.redirect]", async () => {
    const second = await startFileServer(() => ({ body: content }));
    answer = () => ({ status: 302, headers: { location: `${second.url}/a.tar.gz` } });
    keep({ credentials: [old, next] });
    await put();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(second.asked.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    await second.stop();
  });

  test("a redirect out of the prefix on the same server gets none of them [source.credentials.redirect]", async () => {
    answer = ({ url }) =>
      url === "/acme/a.tar.gz" ? { status: 302, headers: { location: "/other/a.tar.gz" } } : { body: content };
    keep({ prefix: `${server.url}/acme/`, ...next });
    await put();
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(server.asked.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ["/acme/a.tar.gz", basicOf(next)],
      ["/other/a.tar.gz", undefined],
    ]);
  });

  test("an address that only looks as if it were below the prefix gets nothing at all [source.credentials.prefix]", async () => {
    keep({ prefix: `${server.url}/acme/`, ...next });
    for (const path of ["/acme-evil/a.tar.gz", "/acme/..%2fother/a.tar.gz", "/acme/%2e%2e/other/a.tar.gz"]) {
      await put(path);
      expect(await world.ready()).toMatchObject({ reason: "SecretMismatch" });
    }
    expect(server.asked).toEqual([]);
  });

  test("the index of a repository cannot send them out of the prefix [source.credentials.redirect]", async () => {
    const index = "apiVersion: v1\nentries:\n  shop:\n    - { version: 1.0.0, urls: [/other/shop-1.0.0.tgz] }\n";
    answer = ({ url }) => (url === "/acme/index.yaml" ? { body: index } : { status: 401 });
    keep({ prefix: `${server.url}/acme/`, ...next });
    await world.put({ helm: { url: `${server.url}/acme`, chart: "shop", credentials } });
    expect(await world.ready()).toMatchObject({ reason: "AuthenticationFailed" });
    const asked = server.asked.map(({ url, headers }) => [url, headers.authorization]);
    expect(new Set(asked.map(([url, sent]) => `${url} ${sent}`))).toEqual(
      new Set([`/acme/index.yaml ${basicOf(next)}`, "/other/shop-1.0.0.tgz undefined"]),
    );
  });
});

describe("git", () => {
  test("the second credentials sign in, and a redirect out of the prefix is not followed [source.credentials.redirect]", async () => {
    const git = await startOwnGitServer({ credentials: next });
    await git.createRepository("acme/shop", { "a.yaml": "a: 1" });
    world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    const { host } = new URL(git.url("x"));
    world.secrets.set(secret, JSON.stringify({ host, credentials: [old, next] }));
    await world.put({ git: { url: git.url("acme/shop"), ref: { branch: "main" }, credentials } });
    expect(await world.ready()).toMatchObject({ status: "True" });
    await git.stop();

    answer = ({ url }) => ({ status: 302, headers: { location: url.replace("/acme/", "/other/") } });
    keep({ prefix: `${server.url}/acme/`, ...next });
    await world.put({ git: { url: `${server.url}/acme/shop`, ref: { branch: "main" }, credentials } });
    expect(await world.ready()).toMatchObject({
      reason: "GitOperationFailed",
      message: expect.stringContaining('redirects out of the "prefix" of the secret'),
    });
    expect(server.asked.map(({ url }) => url.split("?")[0])).toEqual(["/acme/shop/info/refs"]);
  });
});
