/** Registries and Helm repositories that answer nonsense, too much or nothing: each has a named reason, in bounded time. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const mib = 1024 * 1024;
const longestMs = 30_000;
const mostBytes = 1500 * mib;
const sha = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");
const json = (value: unknown, headers: Record<string, string> = {}): FileAnswer => ({
  body: JSON.stringify(value),
  headers,
});

let world: SourceWorld;
let server: FileServer;
let answer: (asked: AskedFile) => FileAnswer;
let host: string;

beforeEach(async () => {
  world = new SourceWorld();
  server = await startFileServer((asked) => answer(asked));
  host = new URL(server.url).host;
});
afterEach(() => server.stop());

/** The patience with a server that never answers: a test should not take a minute. */
const impatient = () => new GuardedHttpRemote({ rules: addressRules("127.0.0.1"), timeoutSeconds: 2 });

/** The reason of the Source, which must come within bounds. */
async function reasonOf(spec: unknown): Promise<{ readonly reason?: string; readonly message?: string }> {
  await world.put(spec);
  const [from, before] = [performance.now(), process.memoryUsage().rss];
  const ready = await world.ready();
  expect(performance.now() - from).toBeLessThan(longestMs);
  expect(process.memoryUsage().rss - before).toBeLessThan(mostBytes);
  expect(world.errors).toEqual([]);
  return ready ?? {};
}

const inRegistry = (more: object = {}) => ({ helm: { url: `oci://${host}/acme`, chart: "web", ...more } });
const inRepository = () => ({ helm: { url: server.url, chart: "web" } });
const tags = (count: number) =>
  Array.from({ length: count }, (_, index) => `1.${index % 1000}.${Math.floor(index / 1000)}`);

describe("a registry whose list of tags is hostile", () => {
  test.each<[string, (asked: AskedFile) => FileAnswer, string, RegExp]>([
    ["a page to sign in", () => ({ body: "<html>" }), "UpstreamUnavailable", /lists its tags in a form/],
    ["numbers", () => json({ tags: [1, 2] }), "UpstreamUnavailable", /lists its tags in a form/],
    ["a text", () => json("tags"), "UpstreamUnavailable", /lists its tags in a form/],
    ["null", () => json(null), "UpstreamUnavailable", /lists its tags in a form/],
    ["no tags", () => json({ tags: null }), "UpstreamNotFound", /no version matches/],
    ["only names", () => json({ tags: ["latest", "../..", "1.0", ""] }), "UpstreamNotFound", /no version matches/],
    ["100,001 tags", () => json({ tags: tags(100_001) }), "UpstreamTooLarge", /more than 100000 tags/],
    ["endless bytes", () => "endless", "UpstreamTooLarge", /answers with more than/],
    ["nothing", () => "silent", "UpstreamUnavailable", /no answer within 2 s/],
    ["an error", () => ({ status: 500 }), "UpstreamUnavailable", /HTTP 500/],
    ["too many requests", () => ({ status: 429 }), "RateLimited", /HTTP 429/],
    ["a tag of 4 MB", () => json({ tags: [`1.0.0-${"a.".repeat(2 * mib)}`] }), "UpstreamNotFound", /no version/],
    [
      "pages that never end",
      () => json({ tags: [] }, { link: `</v2/acme/web/tags/list?n=1&last=${server.asked.length}>; rel="next"` }),
      "UpstreamTooLarge",
      /more than 1000 pages/,
    ],
    [
      "the same page again",
      ({ url }) => json({ tags: ["1.0.0"] }, { link: `<${url}>; rel="next"` }),
      "UpstreamUnavailable",
      /lists its tags in a circle/,
    ],
    [
      "a next page on another host",
      () => json({ tags: ["1.0.0"] }, { link: '<https://elsewhere.example/v2/acme/web/tags/list?last=1>; rel="next"' }),
      "UpstreamUnavailable",
      /goes on at elsewhere\.example, which is another host/,
    ],
  ])("a list of tags with %s is refused by name [source.hostile.malformed]", async (_, of, reason, message) => {
    answer = (asked) => (asked.url.includes("/tags/") ? of(asked) : { status: 404 });
    if (reason === "UpstreamUnavailable") world.http = impatient();
    expect(await reasonOf(inRegistry())).toMatchObject({ reason, message: expect.stringMatching(message) });
  });

  test("a next page with another scheme and the same host is read where the registry is", async () => {
    answer = ({ url }) =>
      url.includes("last=")
        ? json({ tags: ["2.0.0"] })
        : json({ tags: ["1.0.0"] }, { link: `<https://${host}/v2/acme/web/tags/list?last=1.0.0>; rel="next"` });
    await reasonOf(inRegistry());
    expect(server.asked.map(({ url }) => url)).toContain("/v2/acme/web/manifests/2.0.0");
  });

  test("100,000 tags are read", async () => {
    answer = ({ url }) => (url.includes("/tags/") ? json({ tags: tags(100_000) }) : { status: 404 });
    expect(await reasonOf(inRegistry())).toMatchObject({ message: expect.stringContaining("the tag 1.999.99 of") });
  });
});

describe("a registry whose answers about a tag are hostile", () => {
  const withTag = (of: (asked: AskedFile) => FileAnswer) => (asked: AskedFile) =>
    asked.url.includes("/tags/") ? json({ tags: ["1.0.0"] }) : of(asked);
  const layer = (digest: string, size: number) => ({
    layers: [{ mediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", digest, size }],
  });
  const serving = (manifest: string, blob: FileAnswer) =>
    withTag(({ url }) =>
      url.includes("/manifests/")
        ? { body: manifest, headers: { "docker-content-digest": `sha256:${sha(manifest)}` } }
        : blob,
    );

  test.each<[string, () => (asked: AskedFile) => FileAnswer, string, RegExp]>([
    ["html", () => serving("<html>", {}), "ArchiveInvalid", /is not JSON/],
    ["a list", () => serving("[]", {}), "ArchiveInvalid", /is not a manifest/],
    ["no layer", () => serving("{}", {}), "ArchiveInvalid", /is no chart/],
    [
      "a digest that leads elsewhere",
      () => serving(JSON.stringify(layer("sha256:../../../../etc/passwd", 1)), {}),
      "ArchiveInvalid",
      /is not a manifest/,
    ],
    [
      "a layer of -1 bytes",
      () => serving(JSON.stringify(layer(`sha256:${sha("x")}`, -1)), {}),
      "ArchiveInvalid",
      /is not/,
    ],
    [
      "a layer of 1 TB",
      () => serving(JSON.stringify(layer(`sha256:${sha("x")}`, 1e12)), {}),
      "UpstreamTooLarge",
      /has a layer of 1000000000000 bytes/,
    ],
    [
      "an endless layer",
      () => serving(JSON.stringify(layer(`sha256:${sha("x")}`, mib)), "endless"),
      "UpstreamTooLarge",
      /more than 1048576 bytes/,
    ],
    [
      "a layer of other bytes",
      () => serving(JSON.stringify(layer(`sha256:${sha("x")}`, 1)), { body: "y" }),
      "ChecksumMismatch",
      /with a layer of the digest/,
    ],
    [
      "a layer that is no archive",
      () => serving(JSON.stringify(layer(`sha256:${sha("x")}`, 1)), { body: "x" }),
      "ArchiveInvalid",
      /is no tar\.gz/,
    ],
    [
      "another manifest than its digest",
      () =>
        withTag(({ method }) => ({
          body: method === "HEAD" ? "" : "{}",
          headers: { "docker-content-digest": `sha256:${"0".repeat(64)}` },
        })),
      "ChecksumMismatch",
      /answers for sha256:0000/,
    ],
    [
      "an endless manifest",
      () => withTag(({ method }) => (method === "HEAD" ? {} : "endless")),
      "UpstreamTooLarge",
      /more than/,
    ],
    ["silence", () => withTag(() => "silent"), "UpstreamUnavailable", /no answer within/],
  ])("%s is refused by name", async (_, of, reason, message) => {
    answer = of();
    if (reason === "UpstreamUnavailable") world.http = impatient();
    expect(await reasonOf(inRegistry())).toMatchObject({ reason, message: expect.stringMatching(message) });
  });

  test("a bomb is refused by name, and a chart that leads out of its folder, too", async () => {
    for (const [bytes, message] of [
      [gzipSync(Buffer.alloc(400 * mib)), /does not unpack within|is no tar\.gz/],
      [await tarGz([{ name: "web/../../etc/cron.d/x", body: "x" }]), /leads out of the archive/],
      [await tarGz([{ name: "web/x", type: "symlink" }]), /only regular files/],
    ] as const) {
      answer = serving(JSON.stringify(layer(`sha256:${sha(bytes)}`, bytes.length)), { body: bytes });
      expect(await reasonOf(inRegistry())).toMatchObject({
        reason: "ArchiveInvalid",
        message: expect.stringMatching(message),
      });
    }
  });
});

describe("a registry whose challenge is hostile", () => {
  const challenge = (value: string) => () => ({ status: 401, headers: { "www-authenticate": value } });
  const credentials = { secret: "starling/registry", kind: "basic" };
  const secret = () => JSON.stringify({ host, username: "bot", password: "s3cret" });

  test.each<[string, string, string, RegExp]>([
    ["another host", 'Bearer realm="http://127.0.0.1:1/token"', "SecretMismatch", /wants the credentials to go to 127/],
    ["a file", 'Bearer realm="file:///etc/passwd"', "SecretMismatch", /wants the credentials to go/],
    ["nothing", "Bearer", "AuthenticationFailed", /access is refused/],
    ["a scheme that nobody knows", "Negotiate", "AuthenticationFailed", /access is refused/],
    ["no URL", 'Bearer realm="http://["', "AuthenticationFailed", /access is refused/],
  ])(
    "credentials go nowhere else when the realm is %s [source.credentials.redirect]",
    async (_, header, reason, message) => {
      answer = challenge(header);
      world.secrets.set(credentials.secret, secret());
      expect(await reasonOf(inRegistry({ credentials }))).toMatchObject({
        reason,
        message: expect.stringMatching(message),
      });
    },
  );

  test.each<[string, string, string, RegExp]>([
    ["the machine's own data", "http://169.254.169.254/latest", "AddressRefused", /link-local/],
    ["a file", "file:///etc/passwd", "UpstreamUnavailable", /could not be fetched/],
  ])("nobody's token comes from %s", async (_, realm, reason, message) => {
    answer = challenge(`Bearer realm="${realm}"`);
    expect(await reasonOf(inRegistry())).toMatchObject({ reason, message: expect.stringMatching(message) });
  });

  test.each<[string, FileAnswer, string, RegExp]>([
    ["html", { body: "<html>" }, "AuthenticationFailed", /gives no token/],
    ["a second header", json({ token: "a\r\nx: y" }), "AuthenticationFailed", /gives no token/],
    ["null", json(null), "AuthenticationFailed", /gives no token/],
    ["endless", "endless", "UpstreamTooLarge", /more than/],
    ["a token that it refuses itself", json({ token: "x" }), "AuthenticationFailed", /access is refused/],
  ])("a token that is %s is refused by name", async (_, token, reason, message) => {
    answer = ({ url }) =>
      url.startsWith("/token")
        ? token
        : { status: 401, headers: { "www-authenticate": `Bearer realm="${server.url}/token"` } };
    world.secrets.set(credentials.secret, secret());
    expect(await reasonOf(inRegistry({ credentials }))).toMatchObject({
      reason,
      message: expect.stringMatching(message),
    });
  });
});

describe("a Helm repository whose index is hostile", () => {
  const entry = (more: object) =>
    JSON.stringify({ apiVersion: "v1", entries: { web: [{ version: "1.0.0", ...more }] } });

  test.each<[string, () => FileAnswer, string, RegExp]>([
    [
      "html of 40 MB",
      () => ({ body: `<html>${"<p>x</p>\n".repeat(4_400_000)}` }),
      "ArchiveInvalid",
      /too many to read/,
    ],
    ["more than 100 MB", () => "endless", "UpstreamTooLarge", /more than 104857600 bytes/],
    [
      "aliases that multiply",
      () => ({
        body: `a: &a [x,x,x,x,x,x,x,x,x]\n${[..."bcdefghijk"].map((name, index) => `${name}: &${name} [${`*${"abcdefghijk"[index]},`.repeat(9)}]`).join("\n")}\nentries: {web: *k}\n`,
      }),
      "ArchiveInvalid",
      /cannot be read/,
    ],
    ["a depth of 100,000", () => ({ body: `entries: ${"[".repeat(100_000)}` }), "ArchiveInvalid", /cannot be read/],
    ["bytes that are no text", () => ({ body: Buffer.from([0xff, 0xfe, 0, 1, 2]) }), "ArchiveInvalid", /index\.yaml/],
    [
      "a file of this machine",
      () => ({ body: entry({ urls: ["file:///etc/passwd"] }) }),
      "ArchiveInvalid",
      /is not fetched/,
    ],
    ["an address that is none", () => ({ body: entry({ urls: ["http://["] }) }), "ArchiveInvalid", /is not fetched/],
    [
      "the machine's own data",
      () => ({ body: entry({ urls: ["http://169.254.169.254/latest"] }) }),
      "AddressRefused",
      /link-local/,
    ],
    ["no URL", () => ({ body: entry({ urls: [] }) }), "UpstreamNotFound", /has no chart web/],
    [
      "a version that is none",
      () => ({ body: entry({ version: "../../x", urls: ["x"] }) }),
      "UpstreamNotFound",
      /no version/,
    ],
  ])("an index with %s is refused by name [source.hostile.malformed]", async (_, of, reason, message) => {
    answer = ({ url }) => (url === "/index.yaml" ? of() : { status: 404 });
    expect(await reasonOf(inRepository())).toMatchObject({ reason, message: expect.stringMatching(message) });
  });

  test("one chart of an index of 90 MB is read [source.hostile.malformed]", async () => {
    const packed = await tarGz([{ name: "web/Chart.yaml", body: "apiVersion: v2\nname: web\nversion: 1.0.0\n" }]);
    const other = `  - {version: 1.0.0, urls: [x], description: ${"x".repeat(900)}}\n`;
    const body = `apiVersion: v1\nentries:\n  other:\n${other.repeat(95_000)}  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ${sha(packed)}}\n`;
    answer = ({ url }) => (url === "/index.yaml" ? { body } : { body: packed });
    expect(await reasonOf(inRepository())).toMatchObject({ reason: "Succeeded" });
  });
});
