import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";

test.each([
  ["http", async () => createServer()],
  ["https, before its handshake", async () => createTlsServer({ ...(await createTlsCertificate()) })],
])("a silent connection does not delay the end of a server: %s", async (_name, make) => {
  const server = await make();
  const { port, stop } = await listenOnLoopback(server);
  const accepted = once(server, "connection");
  const client = connect(port, "127.0.0.1");
  const closed = once(client, "close");
  await accepted;
  await stop();
  await closed;
  expect(server.listening).toBe(false);
});

test("a port that is taken is an error", async () => {
  const first = createServer();
  const { port, stop } = await listenOnLoopback(first);
  await expect(listenOnLoopback(createServer(), (first.address() as AddressInfo).port)).rejects.toThrow(`${port}`);
  await stop();
});
