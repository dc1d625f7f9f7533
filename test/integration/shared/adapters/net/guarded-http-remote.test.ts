import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";

let first: FileServer;
let second: FileServer;
let answers: Record<string, FileAnswer | (() => FileAnswer)>;
const remote = new GuardedHttpRemote({ rules: addressRules("127.0.0.1"), timeoutSeconds: 2 });
const maxBytes = 1_000_000;

beforeEach(async () => {
  answers = {};
  const answer = ({ url }: AskedFile): FileAnswer => {
    const said = answers[url] ?? { status: 404 };
    return typeof said === "function" ? said() : said;
  };
  first = await startFileServer(answer);
  second = await startFileServer(answer);
});

afterEach(async () => {
  await first.stop();
  await second.stop();
});

const headers = { authorization: "Bearer s3cret", accept: "application/json", cookie: "a=b" };

describe("an answer of a server", () => {
  test("an answer has the status, the headers and the bytes, whatever the status is", async () => {
    answers["/a?b=1"] = { status: 418, headers: { "x-kind": "teapot" }, body: "short" };
    const found = await remote.ask({ url: `${first.url}/a?b=1`, headers, maxBytes });
    expect(found).toMatchObject({ status: 418, headers: { "x-kind": "teapot" }, url: `${first.url}/a?b=1` });
    expect(Buffer.from(found.body).toString()).toBe("short");
    expect(first.asked[0]?.headers).toMatchObject(headers);
  });

  test("an answer that never ends is cut off at its limit, and the connection is closed", async () => {
    answers["/big"] = "endless";
    await expect(remote.ask({ url: `${first.url}/big`, maxBytes })).rejects.toMatchObject({
      code: "UpstreamTooLarge",
      message: `${first.url}/big answers with more than 1000000 bytes`,
    });
    // The sockets buffer some of it.
    expect(first.written()).toBeLessThan(50_000_000);
  });

  test("a server that never answers is given up in the time that is left", async () => {
    answers["/silent?token=s3cret"] = "silent";
    await expect(
      remote.ask({ url: `${first.url}/silent?token=s3cret`, maxBytes, timeLeftMs: () => 50 }),
    ).rejects.toMatchObject({
      code: "UpstreamUnavailable",
      retry: "transient",
      message: `${first.url}/silent could not be fetched: no answer within 0 s`,
    });
  });

  test("a server that cannot be reached is named, and the cause with it", async () => {
    await second.stop();
    await expect(remote.ask({ url: `${second.url}/a`, maxBytes })).rejects.toMatchObject({
      code: "UpstreamUnavailable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    second = await startFileServer(() => "silent");
  });
});

describe("a redirect", () => {
  test("a redirect on the same server keeps the credentials", async () => {
    answers["/a"] = { status: 302, headers: { location: "/b" } };
    answers["/b"] = { body: "found" };
    const { url, body } = await remote.ask({ url: `${first.url}/a`, headers, maxBytes });
    expect([url, Buffer.from(body).toString()]).toEqual([`${first.url}/b`, "found"]);
    expect(first.asked[1]?.headers.authorization).toBe("Bearer s3cret");
  });

  test("a redirect to another server is followed without the credentials, also on the way back", async () => {
    answers["/a"] = { status: 307, headers: { location: `${second.url}/b` } };
    answers["/b"] = { status: 307, headers: { location: `${second.url}/c` } };
    answers["/c"] = { body: "found" };
    const { body } = await remote.ask({ url: `${first.url}/a`, headers, maxBytes });
    expect(Buffer.from(body).toString()).toBe("found");
    expect(second.asked.map(({ headers: sent }) => [sent.authorization, sent.cookie, sent.accept])).toEqual([
      [undefined, undefined, "application/json"],
      [undefined, undefined, "application/json"],
    ]);
  });

  test.each([
    ["to a metadata address", "http://169.254.169.254/latest/meta-data/", "AddressRefused"],
    ["to an address that the operator did not allow", "http://10.0.0.1/a", "AddressRefused"],
    ["to a file", "file:///etc/passwd", "UpstreamUnavailable"],
    ["to a host that is no URL", "http://[", "UpstreamUnavailable"],
    ["in a circle", "/a", "UpstreamUnavailable"],
  ])("a redirect %s is refused by name", async (_, location, code) => {
    answers["/a"] = { status: 302, headers: { location } };
    await expect(remote.ask({ url: `${first.url}/a`, headers, maxBytes })).rejects.toMatchObject({ code });
    expect(first.asked.length).toBeLessThanOrEqual(6);
  });

  test("a name that leads to an internal address is refused, because the address of the connection counts", async () => {
    const strict = new GuardedHttpRemote({ rules: addressRules("") });
    const { port } = new URL(first.url);
    await expect(strict.ask({ url: `http://localhost:${port}/a`, maxBytes })).rejects.toMatchObject({
      code: "AddressRefused",
    });
    expect(first.asked).toEqual([]);
  });
});
