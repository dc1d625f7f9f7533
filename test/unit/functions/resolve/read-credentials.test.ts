import { describe, expect, test } from "vitest";
import { readCredentials } from "#functions/resolve/read-credentials.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";

const secret = "starling/git/shop";
const basic = { username: "u", password: "s3cret" };

async function read(url: string, value: unknown, kind: "basic" | "bearer" = "basic") {
  const spec = sourceSpec.parse({ git: { url, credentials: { secret, kind } } });
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return readCredentials({ namespace: "shop", spec }, { read: async () => text });
}

describe("credentials go to the host of their secret", () => {
  test.each([
    ["github.com", "https://github.com/acme/app"],
    ["github.com", "https://GITHUB.com:443/acme/app"],
    ["GitHub.com:443", "https://github.com/acme/app"],
    ["github.com.", "https://github.com/acme/app"],
    ["git.corp.example:8443", "https://git.corp.example:8443/a"],
    ["[::1]:8080", "http://[0:0::1]:8080/a"],
    ["127.0.0.1:8080", "http://127.1:8080/a"],
  ])("%s is that of %s", async (host, url) => {
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
  ])("%j is not that of %s", async (host, url) => {
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
  ])("for Sources of the namespaces %j only, if it names any", async (namespaces, code) => {
    const found = read("https://github.com/acme/app", { host: "github.com", namespaces, ...basic });
    if (code === undefined) expect(await found).toMatchObject({ kind: "basic" });
    else await expect(found).rejects.toMatchObject({ code, message: expect.stringContaining("namespace shop") });
  });
});

describe("a secret that does not say for whom it is", () => {
  test.each([
    ["a bare token", "s3cret", "bearer"],
    ["user and password", JSON.stringify(basic), "basic"],
    ["a text in JSON", '"s3cret"', "bearer"],
    ["null", "null", "basic"],
  ] as const)("such as %s is sent to none, with how to put it right", async (_what, text, kind) => {
    const form = kind === "basic" ? '"username":"<user>","password":"<password>"' : '"token":"<token>"';
    await expect(read("https://github.com/acme/app", text, kind)).rejects.toMatchObject({
      code: "SecretUnbound",
      message: `secret starling/git/shop does not say which host it is for, and is sent to none; if it is for this one, write {"host":"github.com",${form}} into FILE, then: aws secretsmanager put-secret-value --secret-id starling/git/shop --secret-string file://FILE`,
    });
  });
});

test("a secret that was put right is seen at once", async () => {
  const spec = sourceSpec.parse({ git: { url: "https://github.com/a/b", credentials: { secret, kind: "bearer" } } });
  const asked: boolean[] = [];
  const found = await readCredentials(
    { namespace: "shop", spec },
    {
      async read(_name, { fresh = false } = {}) {
        asked.push(fresh);
        return fresh ? '{"host": "github.com", "token": "new"}' : "old";
      },
    },
  );
  expect({ found, asked }).toEqual({ found: { kind: "bearer", token: "new" }, asked: [false, true] });
});
