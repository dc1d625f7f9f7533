import { beforeEach, describe, expect, test } from "vitest";
import { findArtifact } from "#functions/api/read/find-artifact.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RevisionRow } from "#shared/fleet/rows/revision-row.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const source = { namespace: "shop", name: "app" };
const server = forAllTests(startOwnGitServer);
let world: SourceWorld;
let repository: string;
let number = 0;

beforeEach(async () => {
  number += 1;
  repository = `app-${number}`;
  await server.createRepository(repository, { "a.yaml": "0" });
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

const specOf = (more: object = {}) => ({ git: { url: server.url(repository), ref: { branch: "main" } }, ...more });

async function revisions(): Promise<readonly RevisionRow[]> {
  const query = { ...ranges.revisions(source), newestFirst: true } as const;
  return Array.fromAsync(allItems((start) => world.table.query({ ...query, ...start })));
}

/** Days pass, after which the Source may be polled; the table and the storage forget what nobody kept. */
async function pass(days: number, { isPolled }: { readonly isPolled: boolean }): Promise<void> {
  world.passDays(days);
  const seconds = world.now.getTime() / 1000;
  const expired = (await revisions()).filter(({ expiresAt = 0 }) => expiresAt < seconds);
  for (const row of expired) await world.table.write([{ delete: { pk: row.pk, sk: row.sk } }]);
  if (isPolled) await world.resolve();
}

/** @returns the revisions of the last two pushes, the newest first. */
async function pushFour(): Promise<readonly string[]> {
  const pushed: string[] = [];
  for (const text of ["1", "2", "3", "4"]) {
    const commit = await server.commitFiles(repository, { "a.yaml": text }, { message: text });
    pushed.unshift(`main@sha1:${commit}`);
    await pass(1, { isPolled: true });
  }
  return pushed.slice(0, 2);
}

async function passHalfYear(): Promise<void> {
  for (let days = 0; days < 180; days += 5) await pass(5, { isPolled: true });
}

const revisionsIn = (rows: readonly RevisionRow[]) => rows.map(({ artifact }) => artifact.revision);

describe("the revisions of a Source after half a year", () => {
  test("as many as it retains are listed and stored, and no other [source.artifact.retained]", async () => {
    await world.put(specOf({ retain: 2 }));
    const newest = await pushFour();
    expect(world.blobs.keys()).toHaveLength(4);
    await passHalfYear();
    const kept = await revisions();
    expect(revisionsIn(kept)).toEqual(newest);
    const digests = kept.map(({ artifact }) => blobKeys.artifact(artifact.digest));
    expect([...world.blobs.keys()].sort()).toEqual(digests.sort());
  });

  test("only the present artifact is stored if it retains none [source.artifact.retained]", async () => {
    await world.put(specOf());
    const [newest] = await pushFour();
    await passHalfYear();
    expect(revisionsIn(await revisions())).toEqual([newest]);
    expect(world.blobs.keys()).toHaveLength(1);
  });

  test("the one that it had all the time is found for a month after the next one came", async () => {
    await world.put(specOf());
    const [former = ""] = await pushFour();
    await passHalfYear();
    const then = world.now.toISOString();
    await pass(1, { isPolled: false });
    await server.commitFiles(repository, { "a.yaml": "5" }, { message: "5" });
    await world.resolve();
    for (let day = 0; day < 29; day++) await pass(1, { isPolled: true });
    const ports = { table: world.table, clock: { now: () => world.now } };
    for (const reference of [then, former.slice(-40)])
      expect(await findArtifact(ports, source, reference)).toMatchObject({ revision: former, present: false });
    const { key } = await findArtifact(ports, source, then);
    expect([...world.blobs.keys()]).toContain(key);
  });

  test("those that it retains stay while git is away", async () => {
    await world.put(specOf({ retain: 2 }));
    const newest = await pushFour();
    world.git = {
      listRefs: () => Promise.reject(new Error("git is away")),
      fetchTree: () => Promise.reject(new Error("git is away")),
    };
    await passHalfYear();
    expect(revisionsIn(await revisions())).toEqual(newest);
    expect(world.blobs.keys()).toHaveLength(2);
  });

  test("those that it retains stay while it is suspended, and its timer wakes it", async () => {
    await world.put(specOf({ retain: 2 }));
    const newest = await pushFour();
    const key = keys.object(source.namespace, "Source", source.name);
    const row = await world.table.get(key);
    if (row === undefined) throw new Error("the Source is gone");
    const suspended = { by: "me", at: world.now.toISOString(), number: 1 };
    const put: SourceRow = { ...row, version: row.version + 1, operations: { suspended } };
    await world.table.write([{ put }]);
    await world.resolve();
    for (let day = 0; day < 180; day++) {
      const dueAt = (await world.table.get(key))?.dueKey?.slice(0, 10) ?? "";
      await pass(1, { isPolled: dueAt !== "" && dueAt <= world.now.toISOString().slice(0, 10) });
    }
    expect(revisionsIn(await revisions())).toEqual(newest);
    expect(world.blobs.keys()).toHaveLength(2);
  });

  test("a second poll of a day reads no revision", async () => {
    await world.put(specOf({ retain: 2 }));
    await pushFour();
    const { query } = world.table;
    let reads = 0;
    world.table.query = (...args) => {
      reads += 1;
      return query.apply(world.table, args) as never;
    };
    await world.resolve();
    expect(reads).toBe(0);
    world.passDays(1);
    await world.resolve();
    expect(reads).toBeGreaterThan(0);
  });
});
