import { beforeEach, describe, expect, test } from "vitest";
import { documentChange } from "#functions/api/write/object-change.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import type { Message } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { senders } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

const server = forAllTests(startOwnGitServer);
let number = 0;
let hooks: WebhookWorld;
let worlds: ReadonlyMap<string, SourceWorld>;

/** `app` includes `middle`, and `middle` includes `base`. */
beforeEach(async () => {
  number += 1;
  const table = new MemoryTable();
  hooks = new WebhookWorld(table);
  const blobs = new MemoryBlobStore(() => new Date("2026-03-01T10:00:00.000Z"));
  const made = new Map<string, SourceWorld>();
  for (const [name, included] of [["base"], ["middle", "base"], ["app", "middle"]] as const) {
    await server.createRepository(repositoryOf(name), { [`${name}.yaml`]: "1" });
    const parsed = parseDocument({
      apiVersion: "starling.dev/v1alpha1",
      kind: "Source",
      metadata: { namespace: "shop", name },
      spec: {
        git: { url: server.url(repositoryOf(name)), ref: { branch: "main" } },
        ...(included === undefined ? {} : { include: [{ source: included }] }),
      },
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    const now = new Date("2026-03-01T10:00:00.000Z");
    await hooks.table.write(documentChange(undefined, parsed.document, { now, uid: name }).writes);
    const world = new SourceWorld(table, { source: { namespace: "shop", name }, blobs, uid: name });
    world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    made.set(name, world);
    await world.resolve();
  }
  worlds = made;
  await deliver(sent());
  expect(await textsOfApp()).toEqual({ "app.yaml": "1", "middle/base/base.yaml": "1", "middle/middle.yaml": "1" });
});

const repositoryOf = (name: string) => `${name}-${number}`;
const push = (name: string, text: string) =>
  server.commitFiles(repositoryOf(name), { [`${name}.yaml`]: text }, { message: text });

function worldOf(name: string): SourceWorld {
  const world = worlds.get(name);
  if (world === undefined) throw new Error(`no Source ${name}`);
  return world;
}

const sent = () => [...worlds.values()].flatMap(({ sender }) => sender.take());

/** Passes messages to the Sources that they are for, and those that come of it. @returns the names that were polled. */
async function deliver(messages: readonly Message[]): Promise<readonly string[]> {
  const names = messages.flatMap((message) => (message.to === "resolve" ? [message.source.name] : []));
  for (const name of names) await worldOf(name).resolve();
  return names.length === 0 ? [] : [...names, ...(await deliver(sent()))];
}

async function textsOfApp(): Promise<Readonly<Record<string, string>>> {
  const files = await worldOf("app").files();
  return Object.fromEntries(files.map(({ path, content }) => [path, Buffer.from(content).toString()]));
}

test("a delivery about the repository of the first one wakes the whole chain, without a fetch of the others [source.include.chain]", async () => {
  const after = await push("base", "2");
  const fetched: string[] = [];
  for (const [name, world] of worlds) {
    const { git } = world;
    world.git = {
      listRefs: (repository, prefixes) => git.listRefs(repository, prefixes),
      fetchTree(repository, desired) {
        fetched.push(name);
        return git.fetchTree(repository, desired);
      },
    };
  }
  const before = (await worldOf("app").row()).status.artifact;
  const url = server.url(repositoryOf("base"));
  const body = JSON.stringify({
    ref: "refs/heads/main",
    before: "1".repeat(40),
    after,
    repository: { clone_url: url },
  });
  const headers = { ...senders.github.event("push"), ...senders.github.prove("s3cret", body) };
  const { status, woken } = await hooks.deliver({ host: "github", headers, body });
  expect(status).toBe(202);
  expect(await deliver(woken)).toEqual(["base", "middle", "app"]);
  expect(fetched).toEqual(["base"]);
  expect(await textsOfApp()).toMatchObject({ "app.yaml": "1", "middle/base/base.yaml": "2" });
  const { artifact } = (await worldOf("app").row()).status;
  expect(artifact?.revision).toBe(before?.revision);
  expect(artifact?.digest).not.toBe(before?.digest);
});

interface Pause {
  /** Resolves when the invocation waits. */
  readonly reached: Promise<void>;
  go(): void;
}

/** The next invocation waits once, where `hold` is called. */
function pause(arm: (hold: () => Promise<void>) => void): Pause {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isOver = false;
  arm(async () => {
    if (isOver) return;
    isOver = true;
    reached.resolve();
    await released.promise;
  });
  return { reached: reached.promise, go: () => released.resolve() };
}

const atListing = (world: SourceWorld) =>
  pause((hold) => {
    const { git } = world;
    world.git = {
      async listRefs(repository, prefixes) {
        const listed = await git.listRefs(repository, prefixes);
        await hold();
        return listed;
      },
      fetchTree: (repository, desired) => git.fetchTree(repository, desired),
    };
  });

const atFetch = (world: SourceWorld) =>
  pause((hold) => {
    const { git } = world;
    world.git = {
      listRefs: (repository, prefixes) => git.listRefs(repository, prefixes),
      async fetchTree(repository, desired) {
        await hold();
        return git.fetchTree(repository, desired);
      },
    };
  });

/** @param which - the number of the write, from 1 on. */
const beforeWrite = (which: number) => (world: SourceWorld) =>
  pause((hold) => {
    let count = 0;
    world.watch = (table: Table) => ({
      ...table,
      get: (...args) => table.get(...args),
      getMany: (...args) => table.getMany(...args),
      query: (...args) => table.query(...args),
      async write(writes) {
        count += 1;
        if (count === which) await hold();
        return table.write(writes);
      },
    });
  });

describe("two Sources that change at the same time", () => {
  test.each([
    ["has listed its own references", atListing],
    ["records that it fetches", beforeWrite(1)],
    ["fetches its own files", atFetch],
    ["writes its artifact", beforeWrite(2)],
    ["records whom it has informed", beforeWrite(3)],
  ])(
    "no change is lost when the included one gets another artifact while the other %s [source.include.nothing-lost]",
    async (_, stop) => {
      await push("middle", "2");
      await push("app", "2");
      const app = worldOf("app");
      const paused = stop(app);
      const slow = app.resolve();
      await paused.reached;
      await worldOf("middle").resolve();
      expect(await deliver(sent())).toEqual(["app"]);
      paused.go();
      await slow;
      await deliver(sent());
      expect(await textsOfApp()).toMatchObject({ "app.yaml": "2", "middle/middle.yaml": "2" });
      const [row, middle] = [await app.row(), await worldOf("middle").row()];
      expect(row.status.artifact?.included?.[0]?.digest).toBe(middle.status.artifact?.digest);
      // The next poll finds nothing else.
      expect((await app.resolve()).status.artifact).toEqual(row.status.artifact);
    },
  );
});
