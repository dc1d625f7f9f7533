/** A discovery that dies between any two writes or messages, or runs twice at once, ends like one that did not die. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { canonicalJson } from "#shared/base/json.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, type Row } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { MessageSender, Table } from "#shared/ports.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const account = "444455556666";
let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  world.trust(account, "apps");
});

afterEach(() => world.stop());

class Killed extends Error {}

interface Stage {
  readonly table: Table;
  readonly sender: MessageSender;
  /** The messages that were sent. */
  readonly messages: Message[];
  /** The number of writes and sends. */
  effects: number;
}

/** A copy of the table, on which the scan is killed instead of an effect, or right after it. */
async function stageOf(rows: readonly Row[], kill?: { readonly at: number; readonly when: "before" | "after" }) {
  const copy = new MemoryTable({ pageItems: 1000 });
  for (const row of rows) await copy.write([{ put: row }]);
  const stage: Stage & { alive(): void } = {
    messages: [],
    effects: 0,
    table: copy,
    sender: { send: (messages) => effect(async () => void stage.messages.push(...messages)) },
    alive() {
      killed = undefined;
    },
  };
  let killed = kill;
  async function effect(happens: () => Promise<void>): Promise<void> {
    const at = stage.effects++;
    if (killed?.at === at && killed.when === "before") throw new Killed();
    await happens();
    if (killed?.at === at) throw new Killed();
  }
  const write: Table["write"] = (writes) => effect(() => MemoryTable.prototype.write.call(copy, writes));
  return Object.assign(stage, { rows: () => copy.all(), table: Object.assign(copy, { write }) });
}

const passing = new Set([
  "version",
  "dueKey",
  "dueShard",
  "describedAt",
  "scannedAt",
  "since",
  "uid",
  "scanId",
  "createdAt",
  "at",
  "assignedAt",
]);

/** Rows without times, versions and random names. */
function ended(rows: readonly Row[]): readonly unknown[] {
  return rows.map((row) => JSON.parse(JSON.stringify(row, (key, value) => (passing.has(key) ? undefined : value))));
}

function distinct(messages: readonly Message[]): readonly string[] {
  return [...new Set(messages.map((message) => canonicalJson(message)))].sort();
}

/** Some clusters are new, some have changed tags, one has been gone for a day, and the tags of one are not selected. */
async function beforeManyThings({ forget = true } = {}): Promise<readonly Row[]> {
  const gone = forget ? { after: "24h", action: "Forget", maxPerDay: "50%" } : undefined;
  const tags = { matchLabels: { starling: "yes" } };
  const spec = { name: "{{ eks.name }}", interval: "24h", labels: { fromTags: { ring: "ring" } }, gone };
  const add = (name: string, ring = "broad") => world.add(arnOf(name, account), { starling: "yes", ring });
  for (const name of ["a", "b", "c", "d"]) add(name);
  await world.apply(discoveryDocument("apps", { accounts: [account], tags }, spec), {
    apiVersion: "starling.dev/v1alpha1",
    kind: "SyncGroup",
    metadata: { namespace: "shop", name: "web" },
    spec: { clusters: { all: true }, templates: [{ name: "app", source: "app", path: "all" }] },
  });
  await world.scan("apps");
  await world.table.write([{ put: syncRowOf("d", { observed: {} }) }, { put: syncRowOf("a", { observed: {} }) }]);
  world.clusters.remove(arnOf("d", account));
  world.pass(1);
  await world.scan("apps");
  world.pass(25);
  world.sender.take();
  add("a", "canary");
  world.add(arnOf("b", account), { ring: "broad" });
  // There are more clusters than one transaction takes.
  for (let at = 10; at < 32; at++) add(`n${at}`);
  return world.table.all();
}

test.each([
  ["and forgets a cluster", { forget: true, left: 25, least: 6 }],
  ["and forgets no cluster", { forget: false, left: 26, least: 4 }],
])(
  "a scan that dies between any two effects %s ends like one that did not die, and every message is sent",
  async (_, given) => {
    const rows = await beforeManyThings(given);
    const lived = await stageOf(rows);
    await world.scan("apps", lived);
    const last = lived.effects;
    expect(last).toBeGreaterThan(given.least);
    world.pass(1);
    await world.scan("apps", lived);
    const want = ended(lived.rows());
    expect(lived.rows().flatMap((row) => (row.type === "Fleet" ? [row.sk] : []))).toHaveLength(given.left);
    for (const when of ["before", "after"] as const) {
      for (let at = 0; at < last; at++) {
        const stage = await stageOf(rows, { at, when });
        await expect(world.scan("apps", stage), `killed ${when} ${at}`).rejects.toThrow(Killed);
        stage.alive();
        world.pass(0.1);
        await world.scan("apps", stage);
        world.pass(0.1);
        await world.scan("apps", stage);
        expect(ended(stage.rows()), `after a death ${when} ${at}`).toEqual(want);
        expect(distinct(stage.messages), `messages after a death ${when} ${at}`).toEqual(distinct(lived.messages));
      }
    }
  },
  240_000,
);

test("a scan that wakes up after another one changes nothing that the other one wrote", async () => {
  const rows = await beforeManyThings();
  const lived = await stageOf(rows);
  await world.scan("apps", lived);
  world.pass(1);
  await world.scan("apps", lived);
  const want = ended(lived.rows());

  const stage = await stageOf(rows);
  const inventory = world.sandbox();
  const { promise: asleep, resolve: wakeUp } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const sleepy = {
    names: inventory.names.bind(inventory),
    tags: inventory.tags.bind(inventory),
    parameters: inventory.parameters.bind(inventory),
    accountsOf: inventory.accountsOf.bind(inventory),
    async describe(...args: Parameters<typeof inventory.describe>) {
      const answer = await inventory.describe(...args);
      begin();
      await asleep;
      return answer;
    },
  };
  const first = world.scan("apps", { ...stage, sandbox: sleepy });
  await begun;
  world.pass(1);
  await world.scan("apps", stage);
  const after = stage.rows();
  wakeUp();
  await first;
  expect(ended(after)).toEqual(want);
  expect(stage.rows().filter(({ type }) => type !== "FleetVersion")).toEqual(
    after.filter(({ type }) => type !== "FleetVersion"),
  );
});

test("one of two scans that begin at the same time ends before it sends a request", async () => {
  const rows = await beforeManyThings();
  const stage = await stageOf(rows);
  world.operations();
  const both = await Promise.allSettled([world.scan("apps", stage), world.scan("apps", stage)]);
  expect(both.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  expect(world.operations().filter((operation) => operation === "tagging GetResources")).toHaveLength(1);
});

test("a ClusterDiscovery that a newer version wrote is not changed", async () => {
  await world.apply(discoveryDocument("apps", { accounts: [account] }, { name: "{{ eks.name }}", interval: "6h" }));
  await world.scan("apps");
  await world.table.write([{ update: keys.discovery("apps"), set: { schema: newestRowSchema + 1 } }]);
  const before = canonicalJson(world.table.all());
  world.pass(6);
  await expect(world.scan("apps")).rejects.toMatchObject({ code: "NewerRow" });
  expect(canonicalJson(world.table.all())).toBe(before);
});
