import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { makeLocalHome } from "#test/support/local-home.ts";

const home = await makeLocalHome();
const { cli } = home;

/** Takes connections, and says nothing. */
const sockets = new Set<Socket>();
const silent = createServer((socket) => {
  sockets.add(socket);
  socket.on("error", () => {});
});

afterAll(async () => {
  await cli("local down");
  for (const socket of sockets) socket.destroy();
  silent.close();
  home.remove();
});

/** Whoever adopted it has to ask for its exit code. */
async function untilGone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 10_000 });
}

test("goes down while a repository is being fetched that never answers, and when it hears nothing", async () => {
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : undefined;
  expect(await cli("local up --clusters 1")).toMatchObject({ code: 0 });
  const { pid } = await home.status();
  const source = `{apiVersion: starling.dev/v1alpha1, kind: Source, metadata: {name: slow}, spec: {git: {url: "https://127.0.0.1:${port}/x"}}}`;
  writeFileSync(join(home.folder, "source.yaml"), source);
  expect(await cli("apply -f source.yaml")).toMatchObject({ code: 0 });
  await vi.waitFor(() => expect(sockets.size).toBeGreaterThan(0), { timeout: 30_000 });
  expect(await cli("local down")).toMatchObject({ code: 0, out: "local is down\n" });
  await untilGone(pid);
  // What was asked for is not forgotten.
  expect(await cli("local up")).toMatchObject({ code: 0 });
  const again = await home.status();
  expect((await cli("get sources -o json")).out).toContain('"slow"');
  // As one whose memory is gone: it hears nothing any more.
  process.kill(again.pid, "SIGSTOP");
  expect(await cli("local down")).toMatchObject({
    code: 0,
    out: "local is down\n",
    err: expect.stringContaining(`process ${again.pid} does not end after SIGTERM, and is killed`),
  });
  await untilGone(again.pid);
});
