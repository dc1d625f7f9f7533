import { createServer as createSecureServer } from "node:https";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { type ScriptedAnswer, type ScriptedServer, startScriptedServer } from "#test/support/scripted-server.ts";

const transfer = new HttpTransfer();
const bytes = new Uint8Array(Buffer.from("a: 1\n"));

let server: ScriptedServer;
let url: string;
beforeAll(async () => {
  server = await startScriptedServer();
  url = `${server.endpoint}/bucket/key?X-Amz-Signature=s1gn`;
});
afterAll(() => server.stop());

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function failed(message: string) {
  return {
    code: "TransferFailed",
    retry: "transient",
    message: expect.stringMatching(new RegExp(`^the transfer failed: ${message}`)),
  };
}

test("a download and an upload need only the URL", async () => {
  server.restart(() => ({ status: 200, body: "b: 2\n" }));
  expect(Buffer.from(await transfer.download(url)).toString()).toBe("b: 2\n");
  await transfer.upload(url, bytes);
  expect(server.requests).toMatchObject([
    { method: "GET", url: "/bucket/key?X-Amz-Signature=s1gn", body: "" },
    { method: "PUT", url: "/bucket/key?X-Amz-Signature=s1gn", body: "a: 1\n", headers: { "content-length": "5" } },
  ]);
  expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
  expect(server.requests[0]?.headers).not.toHaveProperty("content-length");
});

describe("a temporary error", () => {
  test.each<[string, ScriptedAnswer, string]>([
    ["a broken connection", "reset", "the other side closed the connection .*socket hang up"],
    ["500", { status: 500 }, "S3 answered 500 to a presigned (GET|PUT)$"],
    ["503", { status: 503 }, "S3 answered 503 to a presigned (GET|PUT)$"],
  ])("a transfer is tried three times after %s", async (_what, answer, message) => {
    for (const move of [() => transfer.download(url), () => transfer.upload(url, bytes)]) {
      server.restart((_request, index) => (index < 2 ? answer : { status: 200 }));
      await move();
      expect(server.requests).toHaveLength(3);
      server.restart(() => answer);
      await expect(move()).rejects.toMatchObject(failed(message));
      expect(server.requests).toHaveLength(3);
    }
  });
});

test.each([300, 307, 403, 404, 499])("a transfer is not tried again after the status %i", async (status) => {
  server.restart(() => ({ status, headers: { location: "/elsewhere" } }));
  await expect(transfer.download(url)).rejects.toMatchObject(failed(`S3 answered ${status} to a presigned GET$`));
  await expect(transfer.upload(url, bytes)).rejects.toMatchObject(failed(`S3 answered ${status} to a presigned PUT$`));
  expect(server.requests).toHaveLength(2);
});

test("an upload never overwrites, and counts as done if an earlier try without an answer has stored it", async () => {
  server.restart((_request, index) => (index === 0 ? "reset" : { status: 412 }));
  await transfer.upload(url, bytes);
  expect(server.requests.map(({ headers }) => headers["if-none-match"])).toEqual(["*", "*"]);
});

test("an upload is tried again after a conflict with another write", async () => {
  server.restart((_request, index) => (index === 0 ? { status: 409 } : { status: 200 }));
  await transfer.upload(url, bytes);
  expect(server.requests).toHaveLength(2);
});

test("the body of a refusal is not read to its end", async () => {
  server.restart(() => ({ status: 403, body: "x".repeat(20_000_000) }));
  await expect(transfer.download(url)).rejects.toMatchObject(failed("S3 answered 403"));
  await vi.waitFor(() => expect(server.cutOff()).toBe(1), { timeout: 30_000 });
});

test("a download of exactly the allowed size succeeds, and one byte more is an error", async () => {
  const small = new HttpTransfer({ maxDownloadBytes: 5 });
  server.restart((_request, index) => ({ status: 299, body: index === 0 ? "12345" : "123456" }));
  expect(await small.download(url)).toHaveLength(5);
  await expect(small.download(url)).rejects.toMatchObject(failed("the download is larger than 5 bytes$"));
  expect(server.requests).toHaveLength(2);
});

test("a download from a server that falls silent is an error", async () => {
  const impatient = new HttpTransfer({ silenceMs: 50 });
  // The server announces a body and sends none of it.
  server.restart(() => ({ status: 200, headers: { "content-length": "5" } }));
  await expect(impatient.download(url)).rejects.toMatchObject(failed(""));
});

test("a transfer to an https URL verifies the certificate", async () => {
  const secure = createSecureServer(await createTlsCertificate(), (_request, response) => response.end());
  const { origin, stop } = await listenOnLoopback(secure);
  stops.push(stop);
  await expect(transfer.download(`${origin}/key`)).rejects.toMatchObject(failed(".*certificate"));
});
