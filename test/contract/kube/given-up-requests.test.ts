/** A request that the client gave up is not sent later, when the network works again. */
import { once } from "node:events";
import { createServer as createHttps } from "node:https";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { KubeTransport } from "#shared/adapters/kube/kube-transport.ts";

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** More than the other side takes without reading, so that the rest waits in the kernel of the client. */
const body = "x".repeat(400_000);

/** A server behind a network that can stall, and the requests that it got whole. */
async function startStallable() {
  const tls = await createTlsCertificate();
  const got: string[] = [];
  const server = createHttps(tls, async (request, response) => {
    // A request that ends in the middle is none.
    const whole = await text(request).catch(() => undefined);
    if (whole !== undefined) got.push(`${request.method} ${request.url} ${whole.length}`);
    response.end("{}");
  });
  const behind = await listenOnLoopback(server);
  const near: Socket[] = [];
  let stalling: (() => void) | undefined;
  const network = createServer((socket) => {
    near.push(socket);
    const far = connect(behind.port, "127.0.0.1");
    far.pipe(socket);
    socket.on("data", (chunk) => {
      far.write(chunk);
      if (stalling === undefined) return;
      socket.pause();
      stalling();
    });
    socket.on("error", () => far.destroy());
    socket.on("close", () => far.end());
    far.on("error", () => socket.destroy());
  });
  network.listen(0, "127.0.0.1");
  await once(network, "listening");
  const { port } = network.address() as { readonly port: number };
  const caData = Buffer.from(tls.cert).toString("base64");
  const credentials = { token: async () => "t0k3n" };
  const transport = new KubeTransport({ server: `https://127.0.0.1:${port}`, caData, credentials });
  closers.push(
    () => behind.stop(),
    () => void network.close(),
    () => transport.close(),
  );
  return {
    got,
    transport,
    /** Stalls the network in the middle of the next request. @returns when it has stalled. */
    stall: () =>
      new Promise<void>((resolve) => {
        stalling = resolve;
      }),
    /** Lets the network work again, and waits until everything that was on its way has come. */
    async recover() {
      const ended = near.map((socket) => (socket.closed ? Promise.resolve() : once(socket, "close")));
      stalling = undefined;
      for (const socket of near) socket.resume();
      await Promise.allSettled(ended);
    },
  };
}

const ask = { maxBodyBytes: 1_000, timeoutMs: 20_000 } as const;

test.each(["its time is up", "the connection is closed"] as const)(
  "a write that the client gave up because %s does not happen when the network works again",
  async (why) => {
    const { got, transport, stall, recover } = await startStallable();
    await transport.send({ ...ask, method: "GET", path: "/first" });
    const stalled = stall();
    const isTimeout = why === "its time is up";
    const given = transport.send({
      ...ask,
      ...{ method: "PATCH", path: "/late", body, timeoutMs: isTimeout ? 500 : 20_000 },
    });
    if (!isTimeout) void stalled.then(() => transport.close());
    await expect(given).rejects.toMatchObject({ reason: isTimeout ? "ETIMEDOUT" : "ECONNRESET" });
    await recover();
    await transport.send({ ...ask, method: "GET", path: "/newer" });
    expect(got).toEqual(["GET /first 0", "GET /newer 0"]);
  },
);
