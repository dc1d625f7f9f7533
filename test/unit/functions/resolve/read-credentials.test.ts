import { describe, expect, test } from "vitest";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import { type RemoteUpstream, sourceSpec, upstreamOf } from "#shared/fleet/kinds/source.ts";

const secret = "starling/git/shop";
const now = { fresh: false, now: new Date() };
const basic = { username: "u", password: "s3cret" };

async function read(url: string, value: unknown, kind: "basic" | "bearer" | "ssh" | "githubApp" = "basic") {
  const spec = sourceSpec.parse({ git: { url, credentials: { secret, kind } } });
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const upstream = upstreamOf(spec) as RemoteUpstream;
  const found = await readCredentials({ namespace: "shop", upstream }, { read: async () => text }, now);
  return found?.length === 1 ? found[0] : found;
}

describe("the host for which a secret of git credentials is meant", () => {
  test.each([
    ["github.com", "https://github.com/acme/app"],
    ["github.com", "https://GITHUB.com:443/acme/app"],
    ["GitHub.com:443", "https://github.com/acme/app"],
    ["github.com.", "https://github.com/acme/app"],
    ["git.corp.example:8443", "https://git.corp.example:8443/a"],
    ["[::1]:8080", "http://[0:0::1]:8080/a"],
    ["127.0.0.1:8080", "http://127.1:8080/a"],
  ])("a secret for %s is sent to %s", async (host, url) => {
    expect(await read(url, { host, ...basic })).toEqual({ kind: "basic", ...basic });
    expect(await read(url, { host, token: "s3cret" }, "bearer")).toEqual({ kind: "bearer", token: "s3cret" });
  });

  test.each([
    ["github.com", "https://evil.example/acme/app"],
    ["github.com", "https://github.com.evil.example/acme/app"],
    ["github.com", "https://evil.example/github.com"],
    ["github.com", "https://api.github.com/acme/app"],
    ["github.com", "https://github.com:8443/acme/app"],
    ["github.com/acme", "https://github.com/acme/app"],
    ["https://github.com", "https://github.com/acme/app"],
    ["u@github.com", "https://github.com/acme/app"],
    ["*.github.com", "https://api.github.com/acme/app"],
    ["", "https://github.com/acme/app"],
  ])("a secret for %j is not sent to %s [source.credentials.host]", async (host, url) => {
    await expect(read(url, { host, ...basic })).rejects.toMatchObject({
      code: "SecretMismatch",
      message: expect.not.stringContaining("s3cret"),
    });
  });

  test.each<[unknown, string | undefined]>([
    [["shop"], undefined],
    [["blog", "shop"], undefined],
    [["blog"], "SecretMismatch"],
    [[], "SecretMismatch"],
    ["shop", "SecretMismatch"],
    [null, "SecretMismatch"],
  ])(
    "a secret with the namespaces %j is sent only for Sources of these namespaces [source.credentials.namespaces]",
    async (namespaces, code) => {
      const found = read("https://github.com/acme/app", { host: "github.com", namespaces, ...basic });
      if (code === undefined) expect(await found).toMatchObject({ kind: "basic" });
      else await expect(found).rejects.toMatchObject({ code, message: expect.stringContaining("namespace shop") });
    },
  );
});

describe("the prefix of the addresses for which a secret is meant", () => {
  const prefix = "https://github.com/acme/";

  test("a secret with a prefix needs no host, and the credentials carry the prefix with them", async () => {
    const found = await read("https://github.com/acme/app", { prefix, ...basic });
    expect(found).toEqual({ kind: "basic", ...basic, prefix });
    const both = await read("https://github.com/acme/app", { host: "github.com", prefix, ...basic });
    expect(both).toEqual(found);
    const app = { appId: 1, owner: "acme", privateKey: "s3cret" };
    expect(await read("https://github.com/acme/app", { prefix, ...app }, "githubApp")).toMatchObject({ prefix });
  });

  test.each([
    ["another repository", "https://github.com/other/app", { prefix }],
    ["a neighbour", "https://github.com/acme-evil/app", { prefix: "https://github.com/acme" }],
    ["a way out", "https://github.com/acme/..%2fother/app", { prefix }],
    ["a prefix that is no text", "https://github.com/acme/app", { prefix: 5 }],
    ["an empty prefix", "https://github.com/acme/app", { prefix: "" }],
    ["another host beside it", "https://github.com/acme/app", { host: "gitlab.com", prefix }],
  ])("a secret is not sent to %s [source.credentials.prefix]", async (_what, url, binding) => {
    await expect(read(url, { ...binding, ...basic })).rejects.toMatchObject({
      code: "SecretMismatch",
      message: expect.not.stringContaining("s3cret"),
    });
  });

  test("the chart in a registry belongs to its address", async () => {
    const bound = { prefix: "oci://ghcr.io/acme/charts/shop", ...basic };
    const readFor = (chart: string) => {
      const credentials = { secret, kind: "basic" };
      const spec = sourceSpec.parse({ helm: { url: "oci://ghcr.io/acme/charts/", chart, credentials } });
      return readCredentials(
        { namespace: "shop", upstream: upstreamOf(spec) as RemoteUpstream },
        { read: async () => JSON.stringify(bound) },
        now,
      );
    };
    expect(await readFor("shop")).toHaveLength(1);
    await expect(readFor("blog")).rejects.toMatchObject({ code: "SecretMismatch" });
  });
});

describe("a secret with two credentials", () => {
  const url = "https://github.com/acme/app";
  const host = "github.com";

  test("both are read in their order, with what they share", async () => {
    const tokenHosts = ["auth.example"];
    const credentials = [basic, { username: "u", password: "new" }];
    expect(await read(url, { host, tokenHosts, credentials })).toEqual([
      { kind: "basic", ...basic, tokenHosts },
      { kind: "basic", username: "u", password: "new", tokenHosts },
    ]);
    expect(await read(url, { host, credentials: [{ token: "a" }] }, "bearer")).toEqual({ kind: "bearer", token: "a" });
  });

  test.each<[string, unknown, string]>([
    ["none", [], "no list of one or two"],
    ["three", [basic, basic, basic], "no list of one or two"],
    ["no list", { a: basic }, "no list of one or two"],
    ["one without a password", [basic, { username: "u" }], 'has "credentials"[1] without the form'],
    ["a text", ["s3cret", basic], 'has "credentials"[0] without the form'],
  ])("a secret with %s is refused by name", async (_what, credentials, message) => {
    const found = read(url, { host, credentials, username: "u", password: "s3cret" });
    await expect(found).rejects.toMatchObject({
      code: "InvalidCredentials",
      message: expect.stringContaining(message),
    });
    await expect(found).rejects.toMatchObject({ message: expect.not.stringContaining("s3cret") });
  });

  test("an entry cannot widen what the secret is for [source.credentials.host]", async () => {
    const credentials = [{ ...basic, host: "evil.example", prefix: "https://evil.example/" }];
    const found = read("https://evil.example/acme/app", { host, credentials });
    await expect(found).rejects.toMatchObject({ code: "SecretMismatch" });
  });

  test.each([
    ["host", "git.corp.example"],
    ["prefix", "https://github.com/payments/"],
    ["namespaces", ["payments"]],
  ])(
    "an entry that says its own %s is refused, because it would count for more than it says",
    async (member, value) => {
      const found = read(url, { host, credentials: [basic, { ...basic, [member]: value }] });
      await expect(found).rejects.toMatchObject({
        code: "InvalidCredentials",
        message: expect.stringContaining(`has "credentials"[1] with "${member}", which counts for both`),
      });
    },
  );
});

describe("a secret with a key for SSH", () => {
  const key = { privateKey: "s3cret", knownHosts: "github.com ssh-ed25519 AAAA" };

  test.each([
    ["github.com", "ssh://git@github.com/acme/app"],
    ["GitHub.com:22", "ssh://GITHUB.com/acme/app"],
    ["git.corp.example:2222", "ssh://bot@git.corp.example:2222/app"],
    ["[::1]:2222", "ssh://[::1]:2222/app"],
  ])("a secret for %s is used for %s", async (host, url) => {
    expect(await read(url, { host, ...key, passphrase: "p" }, "ssh")).toEqual({ kind: "ssh", ...key, passphrase: "p" });
  });

  test.each([
    ["github.com", "ssh://git@evil.example/acme/app"],
    ["github.com:443", "ssh://git@github.com/acme/app"],
    ["github.com", "ssh://git@github.com:2222/acme/app"],
    ["git@github.com", "ssh://git@github.com/acme/app"],
    ["github.com", "ssh://github.com@evil.example/acme/app"],
  ])("a secret for %j is not used for %s", async (host, url) => {
    await expect(read(url, { host, ...key }, "ssh")).rejects.toMatchObject({ code: "SecretMismatch" });
  });

  test.each([
    ["no key", { privateKey: undefined }],
    ["no known hosts", { knownHosts: undefined }],
    ["empty known hosts", { knownHosts: "" }],
    ["a passphrase that is no text", { passphrase: 5 }],
  ])("a secret with %s is refused, with the command that prints known hosts", async (_what, more) => {
    const found = read(
      "ssh://git@git.corp.example:2222/app",
      { host: "git.corp.example:2222", ...key, ...more },
      "ssh",
    );
    await expect(found).rejects.toMatchObject({
      code: "InvalidCredentials",
      message: `secret starling/git/shop does not have the form that spec.git.credentials says (ssh): write {"host":"git.corp.example:2222","privateKey":"<private key>","knownHosts":"<lines of known_hosts>"} into FILE, then: aws secretsmanager put-secret-value --secret-id starling/git/shop --secret-string file://FILE (\`ssh-keyscan -t ed25519,ecdsa,rsa -p 2222 git.corp.example\` prints the lines of known_hosts; compare them with what its operator publishes)`,
    });
  });
});

describe("a secret with a GitHub App", () => {
  const app = { appId: 4711, privateKey: "s3cret" };

  test.each([
    [{ owner: "acme" }, { installation: { owner: "acme" }, baseUrl: "https://api.github.com" }],
    [{ installationId: "77" }, { installation: { id: "77" }, baseUrl: "https://api.github.com" }],
    [
      { owner: "a", appId: "Iv1.8a61" },
      { appId: "Iv1.8a61", installation: { owner: "a" }, baseUrl: "https://api.github.com" },
    ],
    [
      { owner: "a", baseUrl: "https://api.acme.ghe.com/" },
      { installation: { owner: "a" }, baseUrl: "https://api.acme.ghe.com" },
    ],
  ])("the app %j is read", async (more, found) => {
    const secretOf = { host: "github.com", ...app, ...more };
    const desired = { kind: "githubApp", appId: "4711", privateKey: "s3cret", ...found };
    expect(await read("https://github.com/acme/app", secretOf, "githubApp")).toEqual(desired);
  });

  test("the API of another host is on that host", async () => {
    const secretOf = { host: "git.corp.example:8443", owner: "acme", ...app };
    const found = await read("https://git.corp.example:8443/acme/app", secretOf, "githubApp");
    expect(found).toMatchObject({ baseUrl: "https://git.corp.example:8443/api/v3" });
  });

  test("a secret that lacks a part is refused with the whole form", async () => {
    await expect(
      read("https://github.com/acme/app", { host: "github.com", ...app }, "githubApp"),
    ).rejects.toMatchObject({
      code: "InvalidCredentials",
      message: expect.stringContaining(
        '(githubApp): write {"host":"github.com","appId":"<id>","owner":"<organization or person>","privateKey":"<private key>"} into FILE',
      ),
    });
  });
});

describe("a secret that names no host", () => {
  test.each([
    ["a bare token", "s3cret", "bearer"],
    ["a user and a password", JSON.stringify(basic), "basic"],
    ["a text in JSON", '"s3cret"', "bearer"],
    ["null", "null", "basic"],
  ] as const)(
    "a secret with only %s is sent to no host, and the message says how to correct it [source.credentials.host]",
    async (_what, text, kind) => {
      const form = kind === "basic" ? '"username":"<user>","password":"<password>"' : '"token":"<token>"';
      await expect(read("https://github.com/acme/app", text, kind)).rejects.toMatchObject({
        code: "SecretUnbound",
        message: `secret starling/git/shop does not say which host it is for, and is sent to none; if it is for this one, write {"host":"github.com",${form}} into FILE, then: aws secretsmanager put-secret-value --secret-id starling/git/shop --secret-string file://FILE`,
      });
    },
  );
});

test("a corrected secret is read at once [source.credentials.rotated]", async () => {
  const spec = sourceSpec.parse({ git: { url: "https://github.com/a/b", credentials: { secret, kind: "bearer" } } });
  const asked: boolean[] = [];
  const found = await readCredentials(
    { namespace: "shop", upstream: upstreamOf(spec) as RemoteUpstream },
    {
      async read(_name, { fresh = false } = {}) {
        asked.push(fresh);
        return fresh ? '{"host": "github.com", "token": "new"}' : "old";
      },
    },
    now,
  );
  expect({ found, asked }).toEqual({ found: [{ kind: "bearer", token: "new" }], asked: [false, true] });
});
