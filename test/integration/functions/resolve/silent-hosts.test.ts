/** A host takes connections and answers nothing: its Sources ask it one at a time, and those of other hosts go on. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type BlackHole, startBlackHole } from "#test/support/black-hole.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const rules = addressRules("127.0.0.1");
const minute = 60_000;
let server: FileServer;
let hole: BlackHole;
let http: GuardedHttpRemote;
let now: Date;
let first: SourceWorld | undefined;
let chart: Uint8Array;

/** Clients give up soon while nothing answers, and late while something does. */
function waitFor(timeoutSeconds: number): void {
  http = new GuardedHttpRemote({ rules, timeoutSeconds });
}

beforeEach(async () => {
  chart = await tarGz([{ name: "web/Chart.yaml", body: "apiVersion: v2\nname: web\nversion: 1.0.0\n" }]);
  server = await startFileServer(({ url }) => {
    if (url.startsWith("/gone/")) return { status: 404 };
    if (url.startsWith("/hangs/")) return "silent";
    if (url.endsWith(".tgz")) return { body: chart };
    return { body: "apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [web-1.0.0.tgz]}\n" };
  });
  hole = await startBlackHole(Number(new URL(server.url).port));
  now = new Date("2026-03-01T10:00:00.000Z");
  first = undefined;
  waitFor(30);
});
afterEach(async () => {
  await hole.stop();
  await server.stop();
});

async function sourceAt(url: string, name: string): Promise<SourceWorld> {
  const options = { source: { namespace: "shop", name }, uid: `uid of ${name}` };
  const world = new SourceWorld(first?.table, { ...options, ...(first && { blobs: first.blobs }) });
  first ??= world;
  world.now = now;
  await world.put({ helm: { url, chart: "web" } });
  return world;
}

const behindHole = (path: string) => `http://127.0.0.1:${hole.port}${path}`;
const many = (count: number, urlOf: (index: number) => string, name: string) =>
  Promise.all(Array.from({ length: count }, (_, index) => sourceAt(urlOf(index), `${name}-${index}`)));
const readyOf = ({ status: { conditions } }: SourceRow) => conditions.find(({ type }) => type === "Ready");
const isReady = async (world: SourceWorld) => readyOf(await world.row())?.status === "True";

async function resolve(world: SourceWorld): Promise<SourceRow> {
  world.now = now;
  world.http = http;
  return world.resolve();
}

/** Resolves what is due, as the timer of a minute asks for. @returns the number of Sources that became ready. */
async function round(worlds: readonly SourceWorld[]): Promise<number> {
  now = new Date(now.getTime() + minute);
  let became = 0;
  for (const world of worlds) {
    const { dueKey } = await world.row();
    if (dueKey !== undefined && dueAtOf(dueKey) > now.toISOString()) continue;
    const before = await isReady(world);
    await resolve(world);
    if (!before && (await isReady(world))) became += 1;
  }
  return became;
}

test("two hundred Sources of a silent host leave the time to others, ask it some times in two hours, and come back spread [source.away.others]", async () => {
  const silent = await many(200, (index) => behindHole(`/r-${index}`), "silent");
  const good = await many(5, (index) => `${server.url}/g-${index}`, "good");
  hole.swallow();
  waitFor(0.2);
  const worlds = [...silent, ...good];
  // The good ones come last, behind all others.
  for (const world of silent) await resolve(world);
  waitFor(30);
  for (const world of good) await resolve(world);
  expect(await Promise.all(good.map(isReady))).toEqual(good.map(() => true));
  expect(hole.taken()).toBe(2);
  const waiting = await silent.at(-1)?.row();
  expect(waiting && readyOf(waiting)).toMatchObject({
    reason: "HostSilent",
    message: `127.0.0.1:${hole.port} has answered nothing since 2026-03-01T10:00:00.000Z; one Source asks it again after 2026-03-01T10:00:10.000Z, and the others wait for its answer`,
  });
  waitFor(0.2);
  for (let minutes = 0; minutes < 120; minutes++) await round(silent);
  expect(hole.taken()).toBeGreaterThan(10);
  expect(hole.taken()).toBeLessThan(25);
  hole.release();
  waitFor(30);
  const became: number[] = [];
  for (let minutes = 0; minutes < 20; minutes++) became.push(await round(worlds));
  expect(became.reduce((sum, some) => sum + some)).toBe(200);
  // The longest pause and the interval, in minutes.
  expect(became.findLastIndex((some) => some > 0)).toBeLessThanOrEqual(16);
  expect(Math.max(...became)).toBeLessThan(80);
}, 120_000);

test("only one of many Sources asks a silent host at the end of its pause, and the answer frees the others [source.away.others]", async () => {
  const worlds = await many(20, (index) => behindHole(`/r-${index}`), "silent");
  hole.swallow();
  waitFor(0.2);
  for (const world of worlds.slice(0, 2)) await resolve(world);
  now = new Date(now.getTime() + minute);
  hole.swallow();
  await Promise.all(worlds.map((world) => resolve(world)));
  expect(hole.taken()).toBe(1);
  hole.release();
  waitFor(30);
  now = new Date(now.getTime() + minute);
  const [one, other] = worlds;
  if (one === undefined || other === undefined) throw new Error("no Sources");
  expect(readyOf(await resolve(one))).toMatchObject({ status: "True" });
  expect(readyOf(await resolve(other))).toMatchObject({ status: "True" });
});

test("a host that refuses is not silent, and neither is one whose one repository hangs [source.away.others]", async () => {
  const hanging = await sourceAt(`${server.url}/hangs`, "hanging");
  const others = await many(3, (index) => `${server.url}/r-${index}`, "other");
  for (const world of others) {
    waitFor(0.2);
    expect(readyOf(await resolve(hanging))).toMatchObject({ reason: "UpstreamUnavailable" });
    waitFor(30);
    expect(readyOf(await resolve(world))).toMatchObject({ status: "True" });
  }
  const gone = await many(5, (index) => `${server.url}/gone/${index}`, "gone");
  for (const world of gone) expect(readyOf(await resolve(world))).toMatchObject({ reason: "UpstreamNotFound" });
});
