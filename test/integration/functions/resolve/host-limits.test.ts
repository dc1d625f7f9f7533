import { afterEach, beforeEach, expect, test } from "vitest";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

let server: FileServer;
let status: number;
let headers: Record<string, string>;

beforeEach(async () => {
  status = 429;
  headers = { "retry-after": "600" };
  server = await startFileServer(() => ({ status, headers, body: "no" }));
});
afterEach(() => server.stop());

/** The adapters read the clock of the machine, so that these worlds have it, too. */
function worldOf(shared?: SourceWorld): SourceWorld {
  const world = new SourceWorld(shared?.table);
  world.now = new Date();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  return world;
}

const readyOf = ({ status: { conditions } }: SourceRow) => conditions.find(({ type }) => type === "Ready");
const minutesUntil = (at: string, from: Date) => (Date.parse(at) - from.getTime()) / 60_000;
const git = { git: { url: "" } };
beforeEach(() => {
  git.git.url = `${server.url}/shop.git`;
});

test.each<[string, () => object]>([
  ["git", () => git],
  ["helm", () => ({ helm: { url: server.url, chart: "web" } })],
  ["oci", () => ({ oci: { url: `oci://${new URL(server.url).host}/shop` } })],
])("a Source of %s waits as long as the host says, and says so [source.limits.wait]", async (_, spec) => {
  const world = worldOf();
  await world.put(spec());
  const row = await world.resolve();
  expect(readyOf(row)).toMatchObject({ reason: "RateLimited", message: expect.stringContaining("(HTTP 429) until") });
  expect(minutesUntil(dueAtOf(row.dueKey ?? ""), world.now)).toBeGreaterThan(9.9);
  expect(server.asked.length).toBe(1);
});

test("the limit of a host counts for all Sources with the same credentials, without a request of theirs [source.limits.shared]", async () => {
  const first = worldOf();
  await first.put(git);
  await first.resolve();
  for (let index = 0; index < 5; index++) {
    const other = worldOf(first);
    await other.put({ helm: { url: server.url, chart: `web-${index}` } });
    expect(readyOf(await other.resolve())).toMatchObject({
      reason: "RateLimited",
      message: expect.stringContaining("allows no more anonymous requests until"),
    });
  }
  expect(server.asked.length).toBe(1);
});

test("the limit of a host to which an index leads counts for no Source of the index's own host [source.limits.other-credentials]", async () => {
  const index = `apiVersion: v1\nentries:\n  web:\n  - urls: [${server.url}/web.tgz]\n    version: 1.0.0\n`;
  const own = await startFileServer(({ url }) => (url === "/index.yaml" ? { body: index } : { status: 404 }));
  try {
    const first = worldOf();
    await first.put({ helm: { url: own.url, chart: "web" } });
    expect(readyOf(await first.resolve())).toMatchObject({
      reason: "RateLimited",
      message: expect.stringContaining(`${new URL(server.url).host} allows no more requests`),
    });
    const other = worldOf(first);
    await other.put({ git: { url: `${own.url}/shop.git` } });
    expect(readyOf(await other.resolve())).toMatchObject({ reason: "GitNotFound" });
  } finally {
    await own.stop();
  }
});

test("other credentials are asked for themselves [source.limits.other-credentials]", async () => {
  const first = worldOf();
  await first.put(git);
  await first.resolve();
  const other = worldOf(first);
  other.secrets.set("starling/git/a", JSON.stringify({ host: new URL(server.url).host, token: "t" }));
  await other.put({ git: { ...git.git, credentials: { secret: "starling/git/a", kind: "bearer" } } });
  expect(readyOf(await other.resolve())).toMatchObject({ message: expect.stringContaining("(HTTP 429)") });
  expect(server.asked.length).toBe(2);
});

test("after the limit the host is asked again, and its Sources are spread over their interval [source.limits.after]", async () => {
  const world = worldOf();
  await world.put(git);
  await world.resolve();
  status = 404;
  headers = {};
  world.now = new Date(world.now.getTime() + 601_000);
  expect(readyOf(await world.resolve())).toMatchObject({ reason: "GitNotFound" });
  expect(server.asked.length).toBe(2);
});
