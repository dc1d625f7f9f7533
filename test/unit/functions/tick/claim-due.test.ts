import { beforeEach, describe, expect, test } from "vitest";
import { claimDue } from "#functions/tick/claim-due.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { dueAtOf, dueAttributes, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, rowTypeOf } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Metrics, Table } from "#shared/ports.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { DisturbedPorts, lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { polledNames } from "#test/support/polled-names.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const owner = { namespace: "shop", kind: "SyncGroup" as const, name: "web" };

let table: MemoryTable;
let sender: MemorySender;
let now: Date;
let counted: Record<string, number>;
/** The values of the metric DueLag, tick by tick. */
let lags: number[];
const metrics: Metrics = {
  count(name, value) {
    counted[name] = (counted[name] ?? 0) + value;
  },
  seconds(name, value) {
    expect(name).toBe("DueLag");
    lags.push(value);
  },
};
beforeEach(() => {
  table = new MemoryTable();
  sender = new MemorySender();
  now = new Date(at);
  counted = {};
  lags = [];
});

const tick = async (through: Table = table) => {
  const { sent } = await claimDue({ table: through, sender, clock: { now: () => now }, log: silentLog, metrics });
  return sent;
};

/** A whole row: one of another shape is left alone. */
function whole(key: RowKey): { readonly type: string; readonly name?: string } {
  const sync = keys.sync.parse(key);
  if (sync !== undefined) return { ...syncRowOf(sync.cluster), ...sync };
  const cluster = keys.cluster.parse(key);
  if (cluster !== undefined) return { ...clusterRow(), name: cluster.cluster };
  return { type: rowTypeOf(key) ?? "Test" };
}

async function due(key: RowKey, seconds: number, more: Partial<Row> = {}): Promise<void> {
  const row: Row = {
    ...whole(key),
    ...key,
    schema: rowSchema,
    version: 1,
    ...dueAttributes(key, later(at, seconds)),
    ...more,
  };
  await table.write([{ put: row }]);
}

/** Counts the calls of each method of a table. */
function counting(through: Table): Table & { readonly calls: Record<string, number> } {
  const calls: Record<string, number> = {};
  const counted = Object.entries(through).map(([name, method]) => [
    name,
    (...args: readonly unknown[]) => {
      calls[name] = (calls[name] ?? 0) + 1;
      return method(...args);
    },
  ]);
  return { ...through, ...Object.fromEntries(counted), calls };
}

describe("a tick over the rows that are due", () => {
  test("a tick sends the message of each row that is due, and leaves the others", async () => {
    await due(keys.sync("c1", "shop", "web.app"), -1);
    await due(keys.rendering("sha256:aa"), 0);
    await due(keys.rolloutState(owner), 1);
    expect(await tick()).toBe(2);
    expect(sender.take()).toEqual(
      expect.arrayContaining([
        { to: "apply", cluster: "c1" },
        { to: "render", input: "sha256:aa" },
      ]),
    );
    expect(await tick()).toBe(0);
    now = new Date(later(at, 1));
    expect(await tick()).toBe(1);
    expect(sender.take()).toEqual([{ to: "rollout", owner }]);
  });

  test.each([
    ["has a count of messages that is no number", { dispatches: "x" as unknown as number }],
    ["has a time that is none", { dueKey: "!" }],
    ["cannot be updated, because it is too large", {}],
  ])("a row that %s keeps no other row waiting", async (_what, more) => {
    const odd = keys.sync("c1", "shop", "odd");
    // The first of its shard.
    await due(odd, -3600, { dueShard: "DUE#03", ...more });
    for (let index = 0; index < 30; index++)
      await due(keys.sync(`c2-${index}`, "shop", "web"), -1, { dueShard: "DUE#03" });
    const refusing: Table = {
      ...lagging(table, table),
      update: (write) =>
        write.update.sk === odd.sk
          ? Promise.reject(new StarlingError("too large", { code: "RowTooLarge", retry: "permanent" }))
          : table.update(write),
    };
    await tick(refusing);
    const woken = sender.take().flatMap((message) => (message.to === "apply" ? [message.cluster] : []));
    expect(woken.filter((cluster) => cluster !== "c1")).toHaveLength(30);
    expect(lags.every((lag) => Number.isFinite(lag))).toBe(true);
    expect(counted).toEqual({ NewerRows: 1 });
  });

  test("a tick that finds no row that is due sends nothing", async () => {
    expect(await tick()).toBe(0);
    expect(sender.take()).toEqual([]);
  });

  test("a tick sends one message for a page of a cluster's Syncs, however many of them are due", async () => {
    const key = (index: number) => keys.sync("c1", "shop", `web.t${index}`);
    for (let index = 0; index < 30; index++) {
      // All rows are in one shard, so that they share pages.
      await due(key(index), -1, { dueShard: "DUE#03" });
    }
    await tick();
    const messages = sender.take();
    expect(messages.length).toBeLessThanOrEqual(2);
    expect(messages[0]).toEqual({ to: "apply", cluster: "c1" });
  });

  test("a tick that finds no row that is due only reads the shards", async () => {
    const through = counting(lagging(table, table));
    await tick(through);
    expect(Object.keys(through.calls)).toEqual(["queryIndex"]);
  });

  test("a tick goes through every page of a shard", async () => {
    for (let index = 0; index < 80; index++) {
      await due(keys.sync(`c${index}`, "shop", "web.app"), -1, { dueShard: "DUE#03" });
    }
    expect(await tick()).toBe(80);
    expect(new Set(sender.take().map((message) => JSON.stringify(message))).size).toBe(80);
  });

  test("a tick ends although the index still shows claimed rows", async () => {
    for (let index = 0; index < 80; index++) {
      await due(keys.sync(`c${index}`, "shop", "web.app"), -1, { dueShard: "DUE#03" });
    }
    const older = new MemoryTable();
    for (const row of table.all()) await older.write([{ put: row }]);
    const through = counting(lagging(table, older));
    expect(await tick(through)).toBe(80);
    expect(through.calls.update).toBe(80);
  });

  test("a tick that cannot claim a row fails, and sends nothing for the row", async () => {
    await due(keys.sync("c1", "shop", "web.app"), -1);
    const through: Table = { ...lagging(table, table), update: () => Promise.reject(new Error("no table")) };
    await expect(tick(through)).rejects.toThrow("no table");
    expect(sender.take()).toEqual([]);
  });

  test("a tick goes through any number of rows", async () => {
    for (let index = 0; index < 300; index++) await due(keys.sync(`c${index}`, "shop", "web.app"), -index);
    expect(await tick()).toBe(300);
    expect(new Set(sender.take().map((message) => JSON.stringify(message))).size).toBe(300);
    expect(await tick()).toBe(0);
  });

  test("a row that stays due is claimed again at growing intervals", async () => {
    const key = keys.sync("c1", "shop", "web.app");
    await due(key, 0);
    const waits: number[] = [];
    for (let dispatches = 0; dispatches < 8; dispatches++) {
      expect(await tick()).toBe(1);
      const row = await table.get(key);
      expect(row?.dispatches).toBe(dispatches + 1);
      const next = dueAtOf(row?.dueKey ?? "");
      expect(next).toBe(watchdogAt(now, dispatches));
      waits.push((Date.parse(next) - now.getTime()) / 1000);
      now = new Date(next);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900]);
  });

  test("a tick changes only the due time and the number of dispatches of a row", async () => {
    const key = keys.sync("c1", "shop", "web.app");
    await due(key, 0, { statePk: "S", stateSk: "Ready#c1" });
    const before = await table.get(key);
    await tick();
    const { dueKey: _a, dispatches: _b, ...after } = (await table.get(key)) ?? {};
    const { dueKey: _c, dispatches: _d, ...kept } = before ?? {};
    expect(after).toEqual(kept);
  });
});

describe("rows of a newer version in a shard", () => {
  const theirs = { schema: newestRowSchema + 1 };
  const rows: Readonly<Record<string, RowKey>> = {
    Sync: keys.object("shop", "Sync", "one"),
    SyncGroup: keys.object("shop", "SyncGroup", "web"),
    Source: keys.object("shop", "Source", "app"),
    Cluster: keys.cluster("c1"),
    SyncOnCluster: keys.sync("c1", "shop", "web.app"),
    Lease: keys.lease("c1"),
    RolloutState: keys.rolloutState(owner),
    Rendering: keys.rendering("sha256:aa"),
  };

  test.each(Object.entries(rows))(
    "a row of a newer version delays no message of its shard, and is not written: %s",
    async (_, key) => {
      const shard = { dueShard: "DUE#03" };
      await due(key, -60, { ...theirs, ...shard });
      for (let index = 0; index < 60; index++) await due(keys.sync(`d${index}`, "shop", "web.app"), -1, shard);
      const before = (await table.getMany([key], { newer: "kept" }))[0];
      expect(await tick()).toBe(60);
      expect(sender.take()).toHaveLength(60);
      expect(counted).toEqual({ NewerRows: 1 });
      expect((await table.getMany([key], { newer: "kept" }))[0]).toEqual(before);
      expect(await tick()).toBe(0);
    },
  );

  test("rows of a newer version that fill whole pages are passed over", async () => {
    const shard = { dueShard: "DUE#03" };
    for (let index = 0; index < 60; index++) {
      await due(keys.sync(`d${index}`, "shop", "web.app"), -60, { ...theirs, ...shard });
    }
    await due(keys.sync("c1", "shop", "web.app"), -1, shard);
    expect(await tick()).toBe(1);
    expect(sender.take()).toEqual([{ to: "apply", cluster: "c1" }]);
  });
});

describe("the metric DueLag", () => {
  test("the metric is counted with each tick, and is zero when no row was due", async () => {
    await tick();
    await due(keys.sync("c1", "shop", "web.app"), 60);
    await tick();
    expect(lags).toEqual([0, 0]);
  });

  test("the metric is the lateness of the latest row in any shard", async () => {
    await due(keys.sync("c1", "shop", "web.app"), -7, { dueShard: "DUE#03" });
    await due(keys.sync("c2", "shop", "web.app"), -1800, { dueShard: "DUE#04" });
    for (let index = 0; index < 60; index++) {
      await due(keys.sync(`d${index}`, "shop", "web.app"), -1, { dueShard: "DUE#04" });
    }
    await tick();
    expect(lags).toEqual([1800]);
  });

  test("the metric does not grow with repeated messages for a row, because their receiver may have had nothing to write", async () => {
    const key = keys.sync("c1", "shop", "web.app");
    await due(key, -2);
    for (let times = 0; times < 8; times++) {
      await tick();
      now = new Date(Date.parse(dueAtOf((await table.get(key))?.dueKey ?? "")) + 3000);
    }
    expect(lags).toEqual([2, 3, 3, 3, 3, 3, 3, 3]);
  });

  test("the metric leaves out unreadable rows, and rows that another tick has claimed", async () => {
    await due(keys.sync("c2", "shop", "web.app"), -900);
    const older = new MemoryTable();
    for (const row of table.all()) await older.write([{ put: row }]);
    await due(keys.sync("c1", "shop", "web.app"), -1800, { schema: newestRowSchema + 1 });
    await tick();
    await tick(lagging(table, older));
    expect(lags).toEqual([900, 0]);
  });

  test("the metric is not counted by a tick that failed", async () => {
    await due(keys.sync("c1", "shop", "web.app"), -900);
    const through: Table = { ...lagging(table, table), update: () => Promise.reject(new Error("no table")) };
    await expect(tick(through)).rejects.toThrow("no table");
    expect(lags).toEqual([]);
  });
});

describe("two simultaneous ticks", () => {
  test.each([1, 2, 3, 4, 5])("two simultaneous ticks claim each row once (%i)", async (seed) => {
    for (let index = 0; index < 20; index++) await due(keys.sync(`c${index}`, "shop", "web.app"), -1);
    const ports = (jitter: number) => new DisturbedPorts({ table, sender }, { jitter }).table;
    const sent = await Promise.all([tick(ports(seed)), tick(ports(seed + 100))]);
    expect(sent[0] + sent[1]).toBe(20);
    expect(sender.take()).toHaveLength(20);
    expect((await table.get(keys.sync("c0", "shop", "web.app")))?.dispatches).toBe(1);
  });
});

describe("a tick with an index that is behind", () => {
  test("a tick does not claim a row that was made due later, is no longer due, or is deleted", async () => {
    const [moved, done, gone] = ["moved", "done", "gone"].map((name) => keys.sync(name, "shop", "web.app")) as [
      RowKey,
      RowKey,
      RowKey,
    ];
    for (const key of [moved, done, gone]) await due(key, -1);
    const older = new MemoryTable();
    for (const row of table.all()) await older.write([{ put: row }]);
    await due(moved, 60);
    await table.update({ update: done, remove: ["dueKey", "dueShard"] });
    await table.write([{ delete: gone }]);
    const before = table.all();
    expect(await tick(lagging(table, older))).toBe(0);
    expect(table.all()).toEqual(before);
    expect(sender.take()).toEqual([]);
  });

  test("a tick does not claim a row again that was claimed before", async () => {
    await due(keys.sync("c1", "shop", "web.app"), -1);
    const older = new MemoryTable();
    for (const row of table.all()) await older.write([{ put: row }]);
    expect(await tick()).toBe(1);
    expect(await tick(lagging(table, older))).toBe(0);
  });
});

test("a tick that dies before it has sent a message delays the message by one interval", async () => {
  await due(keys.sync("c1", "shop", "web.app"), -1);
  const broken = { send: () => Promise.reject(new Error("the process is gone")) };
  await expect(
    claimDue({ table, sender: broken, clock: { now: () => now }, log: silentLog, metrics }),
  ).rejects.toThrow();
  expect(await tick()).toBe(0);
  now = new Date(watchdogAt(now, 0));
  expect(await tick()).toBe(1);
});

test("a shard that cannot be read does not keep back the messages of other shards", async () => {
  for (let index = 0; index < 100; index++) await due(keys.sync(`c${index}`, "shop", "web.app"), -1);
  const broken = dueAttributes(keys.sync("c0", "shop", "web.app"), at).dueShard;
  const lame = lagging(table, table);
  const through: Table = {
    ...lame,
    queryIndex: (query) => (query.pk === broken ? Promise.reject(new Error("refused")) : lame.queryIndex(query)),
  };
  await expect(tick(through)).rejects.toThrow("refused");
  const messages = sender.take().length;
  const left = await tick();
  expect(messages).toBeGreaterThan(left);
  expect(messages + left).toBe(100);
});

test.each<[string, RowKey, Message]>([
  ["SyncGroup", keys.object("shop", "SyncGroup", "web"), { to: "rollout", owner }],
  ["Sync of a user", keys.object("shop", "Sync", "x"), { to: "rollout", owner: { ...owner, kind: "Sync", name: "x" } }],
  ["rollout state", keys.rolloutState(owner), { to: "rollout", owner }],
  ["rendering", keys.rendering("sha256:aa"), { to: "render", input: "sha256:aa" }],
  ["Sync on a cluster", keys.sync("c1", "shop", "web.app"), { to: "apply", cluster: "c1" }],
])("a row that is due sends the message for its function: %s", async (_name, key, message) => {
  await due(key, 0);
  await tick();
  expect(sender.take()).toEqual([message]);
});

test("a tick sends one message for all Sources of one upstream, wherever their rows are", async () => {
  const add = (name: string, url: string) =>
    due(keys.object("shop", "Source", name), 0, {
      ...{ namespace: "shop", name, spec: sourceSpec.parse({ git: { url }, paths: [name] }) },
    } as Partial<SourceRow>);
  const names = Array.from({ length: 60 }, (_, index) => `app-${index}`);
  for (const name of names) await add(name, "https://git.example.com/apps.git");
  await add("other", "https://git.example.com/other.git");
  expect(await tick()).toBe(2);
  const messages = sender.take();
  expect(messages.map((message) => polledNames([message])).toSorted((a, b) => a.length - b.length)).toEqual([
    ["other"],
    names.toSorted(),
  ]);
});

test("the Sources of a tick that fails in another shard are polled", async () => {
  const spec = sourceSpec.parse({ git: { url: "https://git.example.com/apps.git" } });
  const key = keys.object("shop", "Source", "app");
  await due(key, 0, { namespace: "shop", name: "app", spec } as Partial<SourceRow>);
  const own = dueAttributes(key, at).dueShard;
  const failing: Table = {
    ...lagging(table, table),
    queryIndex: (query) => (query.pk === own ? table.queryIndex(query) : Promise.reject(new Error("throttled"))),
  };
  await expect(tick(failing)).rejects.toThrow("throttled");
  expect(polledNames(sender.take())).toEqual(["app"]);
});

test("a row of a type that no function waits for sends nothing", async () => {
  await due({ pk: "FLEET", sk: "c1" }, 0);
  expect(await tick()).toBe(0);
  expect(sender.take()).toEqual([]);
});
