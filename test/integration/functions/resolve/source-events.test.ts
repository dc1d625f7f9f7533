/** Events of Sources on a bus: the real client, and EventBridge's protocol on loopback. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { EventStore } from "#local/aws/services/event-store.ts";
import { type PutEntry, startEvents } from "#local/aws/services/events-server.ts";
import { EventBridgeBus } from "#shared/adapters/aws/event-bridge-bus.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow, SourceStatus } from "#shared/fleet/rows/object-rows.ts";
import { withoutPending } from "#shared/fleet/sources/source-events.ts";
import type { EventBus, GitRemote, Table } from "#shared/ports.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const accessKey = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
const spec = { git: { url: "https://git.example.com/shop.git", ref: { branch: "main" } } };
const away = new StarlingError("git.example.com does not answer", { code: "UpstreamUnavailable", retry: "transient" });
const commitOf = (number: number) => String(number).padStart(40, "0");

/** Any detail of an event, as a program outside reads it. */
interface Detail {
  readonly id: string;
  readonly sequence: number;
  readonly name: string;
  readonly revision?: string;
  readonly availability?: string;
}

const validators = Object.fromEntries(
  (["revision", "availability"] as const).map((word) => {
    const schema = JSON.parse(readFileSync(`docs/events/source-${word}-changed.schema.json`, "utf8"));
    const ajv = new Ajv2020({ allErrors: true });
    formats.default(ajv);
    return [`Source ${word === "revision" ? "Revision" : "Availability"} Changed`, ajv.compile(schema)];
  }),
);

let store: EventStore;
let server: Awaited<ReturnType<typeof startEvents>>;
let client: EventBridgeClient;
let refuse: (entry: PutEntry) => string | undefined;
let world: SourceWorld;
/** The state of the git server. */
let git: { commit: number; failure?: StarlingError; listed: number };

beforeEach(async () => {
  store = new EventStore();
  refuse = () => undefined;
  const principals = new Principals([{ ...accessKey, principalArn: "arn:aws:iam::000000000000:user/ana" }]);
  server = await startEvents({ principals, store, buses: ["default"], refuse: (entry) => refuse(entry) });
  client = clientWith(accessKey);
  git = { commit: 1, listed: 0 };
  world = worldOf("app");
});

afterEach(async () => {
  client.destroy();
  await server.stop();
  for (const { source, detailType, detail, time, bus } of store.list()) {
    expect([source, bus]).toEqual(["starling", "default"]);
    const validate = validators[detailType];
    if (validate === undefined) throw new Error(`no schema for ${detailType}`);
    expect([validate(detail), validate.errors]).toEqual([true, null]);
    expect((detail as { readonly time: string }).time.slice(0, 19)).toBe(time.slice(0, 19));
  }
});

function clientWith(credentials: typeof accessKey): EventBridgeClient {
  return new EventBridgeClient({ endpoint: server.endpoint, region: "us-east-1", credentials, maxAttempts: 1 });
}

const busOf = (asked: EventBridgeClient) =>
  new EventBridgeBus(asked, "default", { now: () => world?.now ?? new Date(0) });

const remote: GitRemote = {
  async listRefs() {
    git.listed++;
    if (git.failure !== undefined) throw git.failure;
    return [{ ref: "refs/heads/main", oid: commitOf(git.commit) }];
  },
  async fetchTree(_repository, { oid }) {
    const commit = { oid, subject: "", authorName: "ana", authorEmail: "ana@example.com", committedAt: "" };
    const files = [{ path: "a.yaml", executable: false, content: Buffer.from(oid) }];
    return { commit, raw: { commit: Buffer.alloc(0) }, files };
  },
};

function worldOf(name: string, table = new MemoryTable()): SourceWorld {
  const made = new SourceWorld(table, { source: { namespace: "shop", name } });
  made.git = remote;
  made.bus = busOf(client);
  return made;
}

const details = (): Detail[] => store.list().map(({ detail }) => detail as Detail);
const briefly = () => details().map(({ sequence, revision, availability }) => [sequence, revision ?? availability]);
const rowOf = async (name = "app", { table } = world) => {
  const row = await table.get(keys.object("shop", "Source", name));
  if (row === undefined) throw new Error("the Source is gone");
  return row;
};
const revisionOf = (number: number) => `main@sha1:${commitOf(number)}`;

/** Time passes until the row is due, and the tick's message comes. */
async function whenDue(of = world, name = "app"): Promise<SourceRow> {
  const { dueKey = "" } = await rowOf(name, of);
  of.now = new Date(dueAtOf(dueKey));
  return of.resolve();
}

describe("events of a Source", () => {
  beforeEach(() => world.put(spec));

  test("a new revision is one event with the one before, and a poll without news is none [source.events.revision] [source.events.schema]", async () => {
    const { status: first } = await world.resolve();
    git.commit = 2;
    const { status: second } = await whenDue();
    for (let poll = 0; poll < 5; poll++) await whenDue();
    // The artifact is stored once more, which is no news.
    world.passDays(30);
    await whenDue();
    expect(git.listed).toBe(8);
    expect(briefly()).toEqual([
      [1, revisionOf(1)],
      [2, "available"],
      [3, revisionOf(2)],
    ]);
    const [revision, available, next] = store.list();
    expect(revision).toMatchObject({
      detailType: "Source Revision Changed",
      detail: {
        ...{ installation: "starling.111122223333.eu-west-1", namespace: "shop", name: "app", uid: "u1" },
        ...{ digest: first.artifact?.digest, origin: spec.git.url, time: "2026-03-01T10:00:00.000Z" },
      },
    });
    expect(revision?.detail).not.toHaveProperty("previous");
    expect(available).toMatchObject({
      detailType: "Source Availability Changed",
      detail: { availability: "available", reason: "Succeeded", since: "2026-03-01T10:00:00.000Z" },
    });
    expect(next?.detail).toMatchObject({
      digest: second.artifact?.digest,
      previous: { revision: revisionOf(1), digest: first.artifact?.digest },
    });
    expect((await rowOf()).status.events).toEqual({ last: 3 });
  });

  test("an upstream that goes away and comes back is two events, however often it is asked meanwhile [source.events.availability]", async () => {
    await world.resolve();
    const { status } = await whenDue();
    const staleSince = world.now.toISOString();
    git.failure = away;
    await whenDue();
    const left = world.now.toISOString();
    for (let poll = 0; poll < 4; poll++) expect((await whenDue()).status.staleSince).toBe(staleSince);
    delete git.failure;
    expect((await whenDue()).status).not.toHaveProperty("staleSince");
    const { revision, digest } = status.artifact ?? {};
    const gone = { availability: "unavailable", reason: "UpstreamUnavailable", since: left };
    expect(store.list().slice(2)).toMatchObject([
      { detail: { sequence: 3, ...gone, message: away.message, artifact: { revision, digest }, staleSince } },
      { detail: { sequence: 4, availability: "available", previous: gone, since: world.now.toISOString() } },
    ]);
    expect(store.list()).toHaveLength(4);
  });

  test("a Source that never had an artifact is unavailable without one", async () => {
    git.failure = away;
    await world.resolve();
    expect(briefly()).toEqual([[1, "unavailable"]]);
    expect(store.list()[0]?.detail).not.toHaveProperty("artifact");
    expect(store.list()[0]?.detail).not.toHaveProperty("previous");
    expect(store.list()[0]?.detail).not.toHaveProperty("staleSince");
    await whenDue();
    expect((await rowOf()).status).not.toHaveProperty("staleSince");
  });

  test("a Source that fails since a version did not record when it became stale is stale since its first failure", async () => {
    await world.resolve();
    git.failure = away;
    await whenDue();
    const since = world.now.toISOString();
    await whenDue();
    const { staleSince: _staleSince, ...status } = (await rowOf()).status;
    const before = await rowOf();
    const next: SourceRow = { ...before, version: before.version + 1, status };
    await world.table.write([{ put: next }]);
    await whenDue();
    expect((await whenDue()).status.staleSince).toBe(since);
  });

  test("no event has the query of the URL of an archive", async () => {
    let status = 403;
    const body = await tarGz([{ name: "a.yaml", body: "a" }]);
    const server = await startFileServer(() => ({ status, body }));
    const url = `${server.url}/app.tar.gz?token=s3cret`;
    const sha256 = createHash("sha256").update(body).digest("hex");
    await world.put({ archive: { url, sha256 } });
    await world.resolve();
    status = 200;
    await whenDue();
    await server.stop();
    expect(briefly()).toEqual([
      [1, "unavailable"],
      [2, `sha256:${sha256}`],
      [3, "available"],
    ]);
    expect(store.list()[0]?.detail).toMatchObject({ message: expect.stringContaining("/app.tar.gz") });
    expect(store.list()[1]?.detail).toMatchObject({ origin: `${server.url}/app.tar.gz` });
    expect(JSON.stringify(store.list())).not.toContain("s3cret");
  });

  test("a message that is cut in the middle of a character is the same text in every delivery", async () => {
    git.failure = new StarlingError(`${"a".repeat(296)}${"\u{1f600}".repeat(9)}`, {
      code: "UpstreamUnavailable",
      retry: "transient",
    });
    await world.resolve();
    const [{ message = "" } = {}] = details() as { readonly message?: string }[];
    expect([message.length, message.isWellFormed()]).toEqual([300, true]);
  });

  test("a row of a version without events has none for what it says already, and begins with 1", async () => {
    world.bus = undefined;
    await world.resolve();
    expect((await rowOf()).status).not.toHaveProperty("events");
    world.bus = busOf(client);
    await whenDue();
    expect(store.list()).toEqual([]);
    git.commit = 2;
    await whenDue();
    expect(briefly()).toEqual([[1, revisionOf(2)]]);
  });
});

/** A function that dies at one of its steps: nothing that it does afterwards happens. */
class Mortal {
  readonly #died = Promise.withResolvers<"died">();
  #steps: number;

  constructor(steps: number) {
    this.#steps = steps;
  }

  async #pass(): Promise<void> {
    if (this.#steps-- > 0) return;
    this.#died.resolve("died");
    await new Promise(() => {});
  }

  async #step<T>(work: () => Promise<T>): Promise<T> {
    await this.#pass();
    const done = await work();
    await this.#pass();
    return done;
  }

  table(table: Table): Table {
    const get: Table["get"] = (key) => table.get(key);
    const query: Table["query"] = (query) => table.query(query);
    return Object.assign(Object.create(table) as Table, {
      get,
      query,
      write: (writes: Parameters<Table["write"]>[0]) => this.#step(() => table.write(writes)),
    });
  }

  bus(bus: EventBus): EventBus {
    return { send: (events) => this.#step(() => bus.send(events)) };
  }

  outlive(work: Promise<unknown>): Promise<"died" | "done"> {
    return Promise.race([this.#died.promise, work.then(() => "done" as const)]);
  }
}

describe("a function that dies at any of its steps", () => {
  test.each<[string, Partial<typeof git>, readonly unknown[]]>([
    ["a new revision", { commit: 2 }, [revisionOf(2)]],
    ["an upstream that went away", { failure: away }, ["unavailable"]],
  ])(
    "loses no event of %s, and a repeated one has the same id [source.events.at-least-once]",
    async (_, happened, events) => {
      let deaths = 0;
      for (let steps = 0; ; steps++) {
        const name = `app-${steps}`;
        git = { commit: 1, listed: 0 };
        const one = worldOf(name);
        await one.put(spec);
        await one.resolve();
        git = { ...git, ...happened };
        const mortal = new Mortal(steps);
        const { bus } = one;
        one.watch = (table) => mortal.table(table);
        one.bus = bus && mortal.bus(bus);
        const end = await mortal.outlive(one.resolve());
        one.watch = (table) => table;
        one.bus = bus;
        for (let poll = 0; poll < 6; poll++) await whenDue(one, name);
        const mine = details().filter((detail) => detail.name === name);
        const byId = new Map(mine.map((detail) => [detail.id, detail]));
        for (const detail of mine) expect(detail).toEqual(byId.get(detail.id));
        const distinct = [...byId.values()].sort((a, b) => a.sequence - b.sequence);
        // A fetch that died has an event, too, and is over when the next one succeeds.
        const words = distinct.map(({ revision, availability }) => revision ?? availability);
        expect(distinct.map(({ sequence }) => sequence)).toEqual(distinct.map((_, index) => index + 1));
        expect(words.slice(0, 2)).toEqual([revisionOf(1), "available"]);
        const ofDeath = words.length - 2 - events.length;
        expect(words.slice(2)).toEqual(ofDeath === 0 ? events : ["unavailable", ...events, "available"]);
        expect((await rowOf(name, one)).status.events).toEqual({ last: distinct.length });
        if (end === "done") break;
        deaths++;
      }
      expect(deaths).toBeGreaterThanOrEqual(events[0] === "unavailable" ? 6 : 8);
    },
  );
});

describe("a bus that takes no events", () => {
  beforeEach(() => world.put(spec));

  test.each([
    ["throttles", "ThrottlingException"],
    ["is gone", "ResourceNotFoundException"],
  ])(
    "the bus %s: the poll succeeds, and the events follow with the same ids [source.events.no-bus]",
    async (_, code) => {
      const refused: string[] = [];
      refuse = ({ Detail }) => {
        refused.push(JSON.parse(Detail).id);
        return code;
      };
      const { status } = await world.resolve();
      expect(status.conditions).toContainEqual(expect.objectContaining({ type: "Ready", status: "True" }));
      expect(status.announced).toBe(`${status.artifact?.revision} ${status.artifact?.digest}`);
      expect(world.errors).toEqual([expect.stringMatching(`events could not be sent: .*"events":2.*${code}`)]);
      const waits: number[] = [];
      for (let poll = 0; poll < 8; poll++) {
        const { dueKey = "" } = await rowOf();
        waits.push((Date.parse(dueAtOf(dueKey)) - world.now.getTime()) / 1000);
        await whenDue();
      }
      expect(waits.slice(0, 3)).toEqual([30, 60, 120]);
      expect(Math.max(...waits)).toBeLessThanOrEqual(900);
      refuse = () => undefined;
      await whenDue();
      expect(briefly()).toEqual([
        [1, revisionOf(1)],
        [2, "available"],
      ]);
      expect(new Set(refused)).toEqual(new Set(details().map(({ id }) => id)));
      expect((await rowOf()).status.events).toEqual({ last: 2 });
    },
    60_000,
  );

  test("a part of a call that is refused is sent again in the same poll", async () => {
    let left = 1;
    refuse = ({ DetailType }) =>
      DetailType === "Source Availability Changed" && left-- > 0 ? "InternalFailure" : undefined;
    await world.resolve();
    expect(briefly()).toEqual([
      [1, revisionOf(1)],
      [2, "available"],
    ]);
    expect(world.errors).toEqual([]);
  });

  test("a role without the right and a bus that does not answer are named in the log, and nothing else fails", async () => {
    const stranger = clientWith({ ...accessKey, accessKeyId: "AKOTHER" });
    world.bus = busOf(stranger);
    await world.resolve();
    await server.stop();
    world.bus = busOf(client);
    const { status } = await whenDue();
    stranger.destroy();
    expect(world.errors).toEqual([
      expect.stringContaining("the bus default takes no events: UnrecognizedClientException"),
      expect.stringContaining("EventBridge did not answer"),
    ]);
    expect(status.events).toMatchObject({ last: 2, tries: 1, pending: [{ sequence: 1 }, { sequence: 2 }] });
  });

  test("a bus without an answer is asked once in half a minute, however many Sources have events", async () => {
    let asked = 0;
    const silent = createServer((socket) => {
      asked++;
      socket.destroy();
    });
    await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
    const { port } = silent.address() as AddressInfo;
    const endpoint = `http://127.0.0.1:${port}`;
    const cut = new EventBridgeClient({ endpoint, region: "us-east-1", credentials: accessKey, maxAttempts: 1 });
    const bus = busOf(cut);
    for (const name of ["a", "b", "c", "d"]) {
      const one = worldOf(name);
      one.bus = bus;
      await one.put(spec);
      const { status } = await one.resolve();
      expect(status.events?.pending).toHaveLength(2);
    }
    expect(asked).toBe(1);
    world.now = new Date(world.now.getTime() + 31_000);
    await expect(
      bus.send([{ type: "Source Revision Changed", time: "2026-03-01T10:00:00.000Z", detail: {} }]),
    ).rejects.toThrow();
    cut.destroy();
    await new Promise((closed) => silent.close(closed));
    expect(asked).toBe(2);
  });

  test("the newest twenty events wait, and the log says how many are lost [source.events.no-bus]", async () => {
    refuse = () => "ResourceNotFoundException";
    await world.resolve();
    for (let commit = 2; commit < 23; commit++) {
      git.commit = commit;
      await whenDue();
    }
    const lost = world.errors.filter((line) => line.startsWith("the oldest events are dropped unsent"));
    expect(lost).toHaveLength(3);
    refuse = () => undefined;
    await whenDue();
    expect(details().map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, index) => index + 4));
  });

  test("events of a suspended Source are sent without a poll [source.events.no-bus]", async () => {
    refuse = () => "ResourceNotFoundException";
    await world.resolve();
    const row = await rowOf();
    const suspended = { by: "ana", at: world.now.toISOString(), number: 1 };
    const put: SourceRow = { ...row, version: row.version + 1, operations: { suspended } };
    await world.table.write([{ put }]);
    refuse = () => undefined;
    await whenDue();
    expect([git.listed, store.list().length]).toEqual([1, 2]);
    const { dueKey, status } = await rowOf();
    expect(status.events).toEqual({ last: 2 });
    // Nothing is left to do before the artifact is stored once more.
    expect(Date.parse(dueAtOf(dueKey ?? "")) - world.now.getTime()).toBeGreaterThan(86_400_000);
  });

  test("an installation that sends no events any more forgets those that wait", async () => {
    refuse = () => "ResourceNotFoundException";
    const { status } = await world.resolve();
    expect(status.events?.pending).toHaveLength(2);
    world.bus = undefined;
    expect((await whenDue()).status.events).toEqual({ last: 2 });
    expect(withoutPending({ conditions: [] } satisfies SourceStatus)).toEqual({ conditions: [] });
  });
});

test("500 Sources that are unavailable at once send an event each to a bus that takes 100 at a time [source.events.many]", async () => {
  const table = new MemoryTable();
  const worlds = Array.from({ length: 500 }, (_, index) => ({
    name: `app-${index}`,
    one: worldOf(`app-${index}`, table),
  }));
  git.failure = away;
  let room = 100;
  refuse = () => (room-- > 0 ? undefined : "ThrottlingException");
  await Promise.all(worlds.map(({ one }) => one.put(spec)));
  let left = worlds;
  for (let round = 1; left.length > 0; round++) {
    expect(round).toBeLessThan(7);
    const polled = await Promise.all(
      left.map(async ({ one, name }) => ({ one, name, row: await (round === 1 ? one.resolve() : whenDue(one, name)) })),
    );
    for (const { row } of polled)
      expect(row.status.conditions).toContainEqual(expect.objectContaining({ status: "False" }));
    left = polled.filter(({ row }) => row.status.events?.pending !== undefined);
    room = 100;
  }
  expect(store.list()).toHaveLength(500);
  expect(new Set(details().map(({ id }) => id)).size).toBe(500);
}, 120_000);
