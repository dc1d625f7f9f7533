import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { makeLocalHome } from "#test/support/local-home.ts";

const home = await makeLocalHome();
const { cli } = home;

/** Accepts connections and never answers. */
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

/** Waits until the process is gone. Its new parent has to collect its exit code first. */
async function untilGone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 10_000 });
}

test("local down ends a machine that fetches from a silent git server, and a machine that does not react to signals", async () => {
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
  // The Source is still there after a start.
  expect(await cli("local up")).toMatchObject({ code: 0 });
  const again = await home.status();
  expect((await cli("get sources -o json")).out).toContain('"slow"');
  // A stopped process reacts to no signal, like one that has run out of memory.
  process.kill(again.pid, "SIGSTOP");
  expect(await cli("local down")).toMatchObject({
    code: 0,
    out: "local is down\n",
    err: expect.stringContaining(`process ${again.pid} does not end after SIGTERM, and is killed`),
  });
  await untilGone(again.pid);
});
