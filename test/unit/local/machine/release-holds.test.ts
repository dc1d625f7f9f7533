import { expect, test } from "vitest";
import { abandonLease, acquireLease } from "#functions/apply/lease/lease.ts";
import { renderInput } from "#functions/render/render-input.ts";
import { resolveSource } from "#functions/resolve/resolve.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { releaseHolds } from "#local/machine/release-holds.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { dueAtOf, dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { nextRoutine } from "#shared/fleet/rows/routine.ts";
import { newestRowSchema, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Log } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noBuckets } from "#test/support/no-buckets.ts";
import { noHttp } from "#test/support/no-http.ts";
import { noRole } from "#test/support/no-role.ts";
import { silentMetrics } from "#test/support/planner-world.ts";

const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };
const now = new Date("2026-03-01T10:00:00.000Z");
const source = { namespace: "shop", name: "web" };
const input = "sha256:in";

/** The fetches and builds of this machine never end, so a function that begins one is killed in the middle of it. */
class DyingMachine {
  readonly table = new MemoryTable();
  readonly sender = new MemorySender();
  readonly begun: string[] = [];
  #ids = 0;

  async give(...rows: readonly Row[]): Promise<void> {
    for (const put of rows) await this.table.write([{ put }]);
  }

  /** @returns when the work hangs in a fetch or build, or ends. */
  async untilBegun(work: (ports: ReturnType<DyingMachine["ports"]>) => Promise<void>): Promise<void> {
    await new Promise<void>((hangs, fails) => {
      work(this.ports(hangs)).then(hangs, fails);
    });
  }

  ports(hangs: () => void) {
    const never = (what: string) => {
      this.begun.push(what);
      hangs();
      return new Promise<never>(() => {});
    };
    return {
      table: this.table,
      blobs: new MemoryBlobStore(),
      sender: this.sender,
      http: noHttp,
      ...noBuckets,
      git: {
        listRefs: async () => [{ ref: "refs/heads/main", oid: "a".repeat(40) }],
        fetchTree: () => never("fetch"),
      },
      secrets: { read: async () => "" },
      builder: { build: () => never("build") },
      clock: { now: () => now },
      ids: { unique: () => `worker-${this.#ids++}` },
      log: silent,
      turns: 1,
    };
  }
}

const sourceRow: SourceRow = {
  ...keys.object("shop", "Source", "web"),
  ...source,
  type: "Source",
  schema: rowSchema,
  version: 1,
  uid: "u1",
  labels: {},
  annotations: {},
  generation: 1,
  createdAt: now.toISOString(),
  spec: sourceSpec.parse({ git: { url: "https://git.example/shop", ref: { branch: "main" } } }),
  operations: {},
  status: { conditions: [] },
};
const rendering: RenderingRow = {
  ...keys.rendering(input),
  type: "Rendering",
  schema: rowSchema,
  version: 1,
  input,
  artifactDigest: "sha256:a",
  path: ".",
  engine: "e",
  state: "Pending",
  requestedAt: now.toISOString(),
  tries: 0,
};

const resolve = (machine: DyingMachine) =>
  machine.untilBegun((ports) =>
    resolveSource(
      { to: "resolve", source },
      { ...ports, role: noRole, events: undefined },
      {
        getRemainingTimeInMillis: () => 180_000,
      },
    ),
  );
const renderIt = (machine: DyingMachine) => machine.untilBegun((ports) => renderInput({ to: "render", input }, ports));

test("a machine that starts after a kill fetches and renders at once the Sources and renderings that were in progress", async () => {
  const machine = new DyingMachine();
  await machine.give(sourceRow, rendering);
  for (const work of [resolve, renderIt]) {
    await work(machine);
    await work(machine);
  }
  expect(machine.begun).toEqual(["fetch", "build"]);

  await releaseHolds(machine.table, now);
  const { table, sender } = machine;
  await claimDue({ table, sender, clock: { now: () => now }, log: silent, metrics: silentMetrics });
  expect(
    sender
      .take()
      .map(({ to }) => to)
      .sort(),
  ).toEqual(["render", "resolve"]);
  await resolve(machine);
  await renderIt(machine);
  expect(machine.begun).toEqual(["fetch", "build", "fetch", "build"]);
  const row = await table.get(sourceRow);
  expect(row?.status.fetch).toMatchObject({ starts: 2 });
});

test("a killed worker's lease is released and keeps its fence, although a newer version of Starling has written another lease", async () => {
  const { table } = new DyingMachine();
  const fleet = (cluster: string) => ({ ...keys.fleet(cluster), type: "Directory", schema: rowSchema, version: 1 });
  const newer = { ...keys.lease("newer"), type: "Lease", schema: newestRowSchema + 1, version: 1, owner: "somebody" };
  for (const put of [fleet("idle"), fleet("mine"), fleet("newer"), newer]) await table.write([{ put }]);
  const until = new Date(now.getTime() + 45_000);
  expect(await acquireLease("mine", { owner: "killed", now, until }, table)).toMatchObject({ fence: 1 });
  expect(await acquireLease("mine", { owner: "next", now, until }, table)).toBeUndefined();

  await releaseHolds(table, now);
  const lease = await acquireLease("mine", { owner: "next", now, until }, table);
  expect(lease).toMatchObject({ fence: 2 });
  expect(lease?.death).toBeUndefined();
});

test("an idle cluster keeps the time of its routine check, and a cluster with a killed worker is due now", async () => {
  const { table } = new DyingMachine();
  const routine = { 600: now.toISOString() };
  for (const cluster of ["idle", "mine"]) {
    const put = { ...keys.fleet(cluster), type: "Directory", schema: rowSchema, version: 1 };
    await table.write([{ put }]);
    const until = new Date(now.getTime() + 45_000);
    const lease = await acquireLease(cluster, { owner: "killed", now, until }, table);
    if (lease !== undefined && cluster === "idle") await abandonLease(lease, routine, table);
  }
  // The tick has sent a message for this row, and the message is lost.
  await table.update({
    update: keys.lease("idle"),
    set: { ...dueAttributes(keys.lease("idle"), "2027") },
    add: { dispatches: 1 },
  });
  await releaseHolds(table, now);
  const rows = await table.getMany([keys.lease("idle"), keys.lease("mine")]);
  expect(rows.map(({ dueKey, dispatches }) => [dueAtOf(dueKey ?? "#"), dispatches])).toEqual([
    [nextRoutine("idle", routine), undefined],
    [now.toISOString(), undefined],
  ]);
});

test("a row whose message was lost is due now, and a row without a message keeps its due time", async () => {
  const { table } = new DyingMachine();
  const later = "2026-03-01T10:15:00.000Z";
  const [sent, idle] = ["sent", "idle"].map((name) => {
    const key = keys.object("shop", "SyncGroup", name);
    return { ...key, ...dueAttributes(key, later), type: "SyncGroup", schema: rowSchema, version: 1 };
  }) as [Row, Row];
  for (const put of [{ ...sent, dispatches: 4 }, idle]) await table.write([{ put }]);

  await releaseHolds(table, now);
  const { dueKey, dispatches } = (await table.get(keys.object("shop", "SyncGroup", "sent"))) ?? sent;
  expect({ dueKey, dispatches }).toEqual({
    dueKey: dueAttributes(sent, now.toISOString()).dueKey,
    dispatches: undefined,
  });
  expect(await table.get(keys.object("shop", "SyncGroup", "idle"))).toEqual(idle);
});
