/** The function resolve dies while it fetches: with the emulators, a real git server and sandboxes that are killed. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { InvocationReport } from "#local/aws/lambda/event-source-loop.ts";
import { createTlsCertificate, type TlsCertificate } from "#local/base/tls-certificate.ts";
import { commitInto, initRepository, repositoryFolder } from "#local/git/repository.ts";
import { type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import { type MachineOptions, startMachine } from "#local/machine/machine.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Condition, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { everyRow } from "#test/support/every-row.ts";
import { type GatedGit, startGatedGit } from "#test/support/gated-git.ts";

/** Longer than a function may run with its reserve, and shorter than the interval of a Source. */
const aDeadFunctionMs = 190_000;
/** The wait after three fetches that died one after the other. */
const firstWaitMs = 300_000;
const patience = { timeout: 90_000, interval: 50 };

let tls: TlsCertificate;
beforeAll(async () => {
  tls = await createTlsCertificate();
});

/** One Source, `team/fleet`, that follows `main`; nothing happens unless the test says so. */
interface World {
  readonly git: GatedGit;
  readonly ended: readonly InvocationReport[];
  commit(text: string): Promise<string>;
  row(): Promise<SourceRow>;
  ready(): Promise<Condition | undefined>;
  /** Moves all clocks, and sends everything that is due. */
  later(ms: number): Promise<void>;
  /** Sends a message in addition to those of the tick. */
  send(): Promise<void>;
  reconcile(): Promise<void>;
  /** Somebody applies the document with a label. */
  label(): Promise<void>;
  /** Kills the sandboxes of resolve. */
  kill(): void;
  revisions(): Promise<readonly string[]>;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const key = keys.object("team", "Source", "fleet");

async function startWorld(options: Pick<MachineOptions, "overrun"> = {}): Promise<World> {
  const root = await mkdtemp(join(tmpdir(), "starling-starts-"));
  stops.push(() => rm(root, { recursive: true, force: true }));
  const folder = repositoryFolder(root, "fleet");
  await initRepository(folder);
  const commit = (text: string) => commitInto({ folder, files: { "a.yaml": text }, message: text });
  await commit("a: 1");
  const git = await startGatedGit(root, tls);
  stops.unshift(() => git.stop());
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) };
  const ended: InvocationReport[] = [];
  const machine = await startMachine({
    tickEveryMs: "manual",
    gitCa: tls.cert,
    sandboxes: (_name, wire) => wire({ clock }),
    onInvocation: (report) => void (report.functionName === "resolve" && ended.push(report)),
    ...options,
  });
  stops.unshift(() => machine.stop());
  const table = new DynamoTable(machine.aws.dynamo, machine.environment.table);
  const session: ApiSession = openApiSession(machine.api);
  const document = {
    apiVersion: "starling.dev/v1alpha1",
    kind: "Source",
    metadata: { name: "fleet", namespace: "team" },
    spec: { git: { url: git.url("fleet"), ref: { branch: "main" } }, interval: "24h" },
  };
  await session.apply([document]);
  const queueUrl = machine.environment.queues.resolve;
  const world: World = {
    git,
    ended,
    commit,
    async row() {
      const row = await table.get(key);
      if (row === undefined) throw new Error("the Source is gone");
      return row;
    },
    async ready() {
      return (await world.row()).status.conditions.find(({ type }) => type === "Ready");
    },
    async later(ms) {
      aheadMs += ms;
      await machine.tick();
    },
    async send() {
      const body = JSON.stringify({ to: "resolve", source: { namespace: "team", name: "fleet" } });
      await machine.aws.sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body }));
    },
    async reconcile() {
      await session.call("POST", "/v1/namespaces/team/sources/fleet/reconcile", {});
    },
    async label() {
      await session.apply([{ ...document, metadata: { ...document.metadata, labels: { team: "a" } } }]);
    },
    kill() {
      for (const source of machine.sources.get("resolve") ?? []) source.kill();
    },
    async revisions() {
      const items = await everyRow(table, { pk: keys.revision({ namespace: "team", name: "fleet" }, "", "").pk });
      return items.map(({ sk }) => sk);
    },
  };
  return world;
}

async function untilEnded(world: World, count: number): Promise<void> {
  await vi.waitFor(() => expect(world.ended).toHaveLength(count), patience);
}

test("three fetches that die are reported, and the next one begins after a wait, or when somebody asks for it [source.poll.dying]", async () => {
  const world = await startWorld();
  world.git.beforeFetch(() => world.kill());

  // The message of the API started the first fetch.
  await untilEnded(world, 1);
  expect(world.ended[0]).toMatchObject({ outcome: "killed" });
  const first = (await world.row()).status;
  expect(first.fetch).toMatchObject({ starts: 1, generation: 1, revision: expect.stringContaining("main@sha1:") });
  expect(first.conditions).toEqual([]);

  // While the fetch could still run, a duplicate message asks for another poll and starts no fetch.
  await world.send();
  await untilEnded(world, 2);
  expect(world.ended[1]).toMatchObject({ outcome: "returned", failedMessageIds: [] });
  expect((await world.row()).status).toEqual({ ...first, fetch: { ...first.fetch, desired: true } });
  expect(world.git.fetches()).toBe(1);
  expect(world.git.listings()).toBe(1);

  await world.later(aDeadFunctionMs);
  await untilEnded(world, 3);
  expect(await world.ready()).toMatchObject({
    status: "False",
    reason: "GitFetchInterrupted",
    message: expect.stringMatching(/^the fetch of main@sha1:[0-9a-f]{40} that began at .* never ended \(out of memory/),
  });
  expect((await world.row()).status).not.toHaveProperty("handledReconcile");

  await world.later(aDeadFunctionMs);
  await untilEnded(world, 4);
  expect((await world.row()).status.fetch).toMatchObject({ starts: 3 });
  expect(world.git.fetches()).toBe(3);

  await world.later(aDeadFunctionMs);
  await untilEnded(world, 5);
  expect(await world.ready()).toMatchObject({
    status: "False",
    reason: "GitFetchInterrupted",
    message: expect.stringMatching(
      /^3 fetches of main@sha1:.* never ended.*tried again at .*remove large files.*starling reconcile/,
    ),
  });
  expect(world.git.fetches()).toBe(3);

  // The fourth fetch begins by itself, and the wait after it is twice as long.
  await world.later(firstWaitMs);
  await untilEnded(world, 6);
  expect((await world.row()).status.fetch).toMatchObject({ starts: 4 });
  expect(world.git.fetches()).toBe(4);
  await world.later(aDeadFunctionMs + firstWaitMs);
  await untilEnded(world, 7);
  expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^4 fetches of main@sha1:/) });
  expect(world.git.fetches()).toBe(4);

  // Somebody asks for a reconcile, and the fetch succeeds.
  world.git.beforeFetch(() => {});
  await world.reconcile();
  await untilEnded(world, 8);
  expect(world.git.fetches()).toBe(5);
  const { status } = await world.row();
  expect(await world.ready()).toMatchObject({ status: "True", reason: "Succeeded" });
  for (const gone of ["fetch", "refused", "failures"]) expect(status).not.toHaveProperty(gone);
  expect(status.handledReconcile).toBeDefined();
}, 240_000);

test("three fetches that die for another reason than the commit delay the artifact by a quarter of an hour", async () => {
  const world = await startWorld();
  world.git.beforeFetch((fetch) => {
    if (fetch <= 3) world.kill();
  });
  for (const ended of [1, 2, 3]) {
    await untilEnded(world, ended);
    await world.later(aDeadFunctionMs);
  }
  await untilEnded(world, 4);
  expect(await world.ready()).toMatchObject({ status: "False", reason: "GitFetchInterrupted" });
  await world.later(firstWaitMs);
  await untilEnded(world, 5);
  expect(world.git.fetches()).toBe(4);
  expect(await world.ready()).toMatchObject({ status: "True", reason: "Succeeded" });
  for (const gone of ["fetch", "failures"]) expect((await world.row()).status).not.toHaveProperty(gone);
}, 240_000);

test("another revision is fetched without the wait that follows fetches that died", async () => {
  const world = await startWorld();
  world.git.beforeFetch(() => world.kill());
  await untilEnded(world, 1);
  await world.later(aDeadFunctionMs);
  await untilEnded(world, 2);
  expect((await world.row()).status.fetch).toMatchObject({ starts: 2 });
  const second = await world.commit("a: 2");
  // The function that died may still fetch, and only one may fetch at a time.
  await world.send();
  await untilEnded(world, 3);
  expect(world.git.fetches()).toBe(2);
  await world.later(aDeadFunctionMs);
  await untilEnded(world, 4);
  expect((await world.row()).status.fetch).toMatchObject({ starts: 1, revision: `main@sha1:${second}` });
  world.git.beforeFetch(() => {});
  await world.later(aDeadFunctionMs);
  await untilEnded(world, 5);
  expect(await world.ready()).toMatchObject({ status: "True" });
  expect((await world.row()).status.artifact).toMatchObject({ revision: `main@sha1:${second}` });
}, 240_000);

test("only one of two functions fetches at a time [source.poll.newest]", async () => {
  const world = await startWorld();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.git.beforeFetch(() => opened);
  await vi.waitFor(() => expect(world.git.fetches()).toBe(1), patience);
  await world.send();
  await untilEnded(world, 1);
  open();
  await untilEnded(world, 2);
  expect(world.git.fetches()).toBe(1);
  expect(await world.ready()).toMatchObject({ status: "True" });
  expect(await world.revisions()).toHaveLength(1);
}, 240_000);

test("after fifty pushes during a fetch, only the newest commit is fetched [source.poll.newest]", async () => {
  const world = await startWorld();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.git.beforeFetch(() => opened);
  await vi.waitFor(() => expect(world.git.fetches()).toBe(1), patience);
  let newest = "";
  for (let push = 1; push <= 50; push++) {
    newest = await world.commit(`a: ${push}`);
    await world.send();
  }
  await untilEnded(world, 50);
  expect(world.git.listings()).toBe(1);
  open();
  await untilEnded(world, 51);
  expect((await world.row()).status.artifact).toMatchObject({ revision: `main@sha1:${newest}` });
  expect((await world.row()).status).not.toHaveProperty("fetch");
  expect(await world.ready()).toMatchObject({ status: "True" });
  expect({ listings: world.git.listings(), fetches: world.git.fetches() }).toEqual({ listings: 2, fetches: 2 });
  expect(await world.revisions()).toHaveLength(2);
}, 240_000);

test("a burst of messages without a fetch in progress makes one fetch [receiver.burst]", async () => {
  const world = await startWorld();
  await untilEnded(world, 1);
  const before = world.git.fetches();
  const newest = await world.commit("a: 2");
  await Promise.all(Array.from({ length: 50 }, () => world.send()));
  await untilEnded(world, 51);
  expect(world.ended.filter(({ outcome }) => outcome !== "returned")).toEqual([]);
  expect(world.git.fetches() - before).toBe(1);
  expect((await world.row()).status.artifact).toMatchObject({ revision: `main@sha1:${newest}` });
}, 240_000);

test("a change of the Source during its fetch causes no second fetch", async () => {
  const world = await startWorld();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.git.beforeFetch(() => opened);
  await vi.waitFor(() => expect(world.git.fetches()).toBe(1), patience);
  await world.label();
  await untilEnded(world, 1);
  open();
  await untilEnded(world, 2);
  expect(world.git.fetches()).toBe(1);
  const { labels, status } = await world.row();
  expect(labels).toEqual({ team: "a" });
  expect(status.artifact).toBeDefined();
}, 240_000);

test("a reconcile does not wait for a fetch that may hang", async () => {
  const world = await startWorld();
  world.git.beforeFetch((fetch) => {
    if (fetch === 1) world.kill();
  });
  await untilEnded(world, 1);
  await world.reconcile();
  await untilEnded(world, 2);
  expect(world.git.fetches()).toBe(2);
  expect(await world.ready()).toMatchObject({ status: "True" });
}, 240_000);

test("a fetch that was given up and wakes up after another one has finished changes nothing [source.poll.dying]", async () => {
  const world = await startWorld({ overrun: "abandoned" });
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.git.beforeFetch((fetch) => {
    if (fetch > 1) return undefined;
    world.kill();
    return opened;
  });
  await untilEnded(world, 1);
  await world.later(aDeadFunctionMs);
  await untilEnded(world, 2);
  expect(world.git.fetches()).toBe(2);
  expect(await world.ready()).toMatchObject({ status: "True" });
  const { artifact } = (await world.row()).status;
  const listings = world.git.listings();
  open();
  // The function finds that the row is about another fetch, and polls again.
  await vi.waitFor(() => expect(world.git.listings()).toBe(listings + 1), patience);
  await world.send();
  await untilEnded(world, 3);
  const { status } = await world.row();
  expect(status.artifact).toEqual(artifact);
  expect(status).not.toHaveProperty("fetch");
  expect(await world.ready()).toMatchObject({ status: "True" });
  expect(await world.revisions()).toHaveLength(1);
}, 240_000);
