/** Idle Syncs are checked together: the cluster and the table count the requests of these checks. */
import type { Interception } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { due, dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import { nextRoutine } from "#shared/fleet/rows/routine.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";

const worker = forEachTest(startPatientWorker);
const five = ["a", "b", "c", "d", "e"];
/** The interval of a routine check with its jitter, which is at most 5 %. */
const intervalSeconds = 640;

const forbidden = { status: 403, body: { kind: "Status", apiVersion: "v1", reason: "Forbidden", code: 403 } };

const objectsOf = (name: string) => [namespace(name), configMap(`${name}/one`), configMap(`${name}/two`)];

async function inSync(names: readonly string[], apply: Parameters<typeof worker.world.assign>[2] = {}): Promise<void> {
  for (const name of names) await worker.world.assign(name, objectsOf(name), apply);
  await worker.world.work();
  for (const name of names) expect(await worker.world.phase(name)).toBe("Ready");
  worker.host.clearRequests();
}

async function rowOf(name: string): Promise<SyncRow> {
  const row = await worker.world.sync(name);
  if (row === undefined) throw new Error(`there is no Sync ${name}`);
  return row;
}

const versions = async (names: readonly string[]) =>
  (await Promise.all(names.map(rowOf))).map(({ version }) => version);

/** Lets time pass and works. @returns the calls to the table that cost write units. */
async function writesAfter(seconds: number): Promise<readonly string[]> {
  const calls: string[] = [];
  const { table } = worker.world;
  const counted: Table = {
    get: (key) => table.get(key),
    getMany: (rowKeys, reading) => table.getMany(rowKeys, reading),
    query: (query) => table.query(query),
    queryIndex: (query) => table.queryIndex(query),
    update(write) {
      calls.push(`update ${write.update.sk}`);
      return table.update(write);
    },
    write(writes) {
      calls.push(`write ${writes.flatMap((write) => ("put" in write ? [write.put.sk] : [])).join(" ")}`.trim());
      return table.write(writes);
    },
  };
  worker.world.aheadMs += seconds * 1000;
  await worker.world.work({ table: counted });
  return calls;
}

function lists(): readonly string[] {
  return worker.host.requests().map(({ method, path }) => `${method} ${path.replace(/\?.*/, "")}`);
}

const leaseRow = () => worker.world.lease();

async function leaseDueAt(): Promise<string> {
  return dueAtOf((await leaseRow())?.dueKey ?? "#");
}

async function edit(path: string, body: object): Promise<void> {
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  await byHand(connection, { method: "PATCH", path, body });
  worker.host.clearRequests();
}

function editOne(name: string): Promise<void> {
  return edit(`/api/v1/namespaces/${name}/configmaps/one`, { data: { k: "edited" } });
}

describe("idle Syncs", () => {
  test("idle Syncs cost one LIST for each kind, and only the lease in the table", async () => {
    await inSync(five);
    const before = await versions(five);
    for (const round of [1, 2, 3]) {
      worker.host.clearRequests();
      expect(await writesAfter(intervalSeconds), `round ${round}`).toEqual(["update LEASE", "update LEASE"]);
      expect([...lists()].sort(), `round ${round}`).toEqual(["GET /api/v1/configmaps", "GET /api/v1/namespaces"]);
    }
    expect(await versions(five)).toEqual(before);
  });

  test("idle Syncs are due with their cluster, and by themselves a day after that", async () => {
    await inSync(five);
    const { routine = {} } = (await leaseRow()) ?? {};
    expect(Object.keys(routine)).toEqual(["600"]);
    expect(await leaseDueAt()).toBe(nextRoutine("c1", routine));
    for (const name of five) {
      const row = await rowOf(name);
      expect(dueAtOf(row.dueKey ?? "#")).toBe(later(nextWork(row) ?? "", 86_400));
    }
  });

  test("idle Syncs are not checked early, whatever starts the worker", async () => {
    await inSync(five);
    expect(await writesAfter(500)).toEqual(["update LEASE", "update LEASE"]);
    expect(lists()).toEqual([]);
  });

  test("idle Syncs are checked by themselves when the cluster's timer is lost, and the timer is set again", async () => {
    await inSync(five);
    const row = await leaseRow();
    if (row === undefined) throw new Error("there is no lease");
    const { dueKey: _key, dueShard: _shard, routine: _routine, ...bare } = row;
    await worker.world.table.write([{ put: { ...bare, version: row.version + 1 }, when: { version: row.version } }]);
    const own = (await rowOf("a")).dueKey ?? "#";
    worker.world.aheadMs = Date.parse(dueAtOf(own)) - Date.now() + 1000;
    expect((await writesAfter(0)).join()).toContain("SYNC#tests#a");
    expect((await rowOf("a")).dueKey).not.toBe(own);
    expect(Date.parse(await leaseDueAt())).toBeGreaterThan(worker.world.clock.now().getTime());
  });

  test("idle Syncs of a table from before the routine are checked together, and written once", async () => {
    await inSync(five);
    const lease = await leaseRow();
    if (lease === undefined) throw new Error("there is no lease");
    const { dueKey: _key, dueShard: _shard, routine: _routine, ...bare } = lease;
    const puts = await Promise.all(
      five.map(async (name) => {
        const row = await rowOf(name);
        return { put: { ...due(row, nextWork(row)), version: row.version + 1 }, when: { version: row.version } };
      }),
    );
    const old = { put: { ...bare, version: lease.version + 1 }, when: { version: lease.version } };
    await worker.world.table.write([old, ...puts]);
    const first = await writesAfter(intervalSeconds);
    expect(first.filter((call) => call.startsWith("write SYNC"))).toHaveLength(5);
    expect(await writesAfter(intervalSeconds)).toEqual(["update LEASE", "update LEASE"]);
  });

  test("idle Syncs have intervals of their own", async () => {
    await inSync(["often"]);
    await inSync(["seldom"], { interval: "1h" });
    const checked: string[][] = [];
    for (let minute = 0; minute < 70; minute += 10) {
      worker.host.clearRequests();
      await writesAfter(intervalSeconds);
      const paths = worker.host.requests().filter(({ path }) => path.includes("configmaps"));
      checked.push(paths.map(({ path }) => path.replace(/\?.*/, "")));
    }
    const own = (name: string) => checked.flat().filter((path) => path.includes(`/${name}/`)).length;
    const both = checked.flat().filter((path) => path === "/api/v1/configmaps").length;
    expect(own("often") + both).toBe(7);
    expect(own("seldom") + both).toBe(1);
  });

  test("idle Syncs that changed are written, and the others are not", async () => {
    await inSync(five);
    const before = await versions(five);
    await editOne("c");
    const calls = await writesAfter(intervalSeconds);
    expect((await rowOf("c")).observed?.drift).toMatchObject({ objects: 1, corrected: true });
    expect(calls.filter((call) => call.includes("SYNC#"))).toEqual(["write SYNC#tests#c"]);
    const after = await versions(five);
    expect(after.map((version, index) => version - (before[index] ?? 0))).toEqual([0, 0, 1, 0, 0]);
  });

  describe("idle Syncs with an object that another writer changes", () => {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "a" },
      spec: { ports: [{ name: "http", port: 80 }], selector: { app: "web" } },
    };
    const leaseAlone = ["update LEASE", "update LEASE"];
    const touched = (kind: string, round: number) =>
      edit(`/api/v1/namespaces/a/${kind}`, { metadata: { annotations: { round: String(round) } } });

    async function inSyncWithService(): Promise<void> {
      await worker.world.assign("a", [...objectsOf("a"), service]);
      await worker.world.work();
      expect(await worker.world.phase("a")).toBe("Ready");
      await touched("services/web", 0);
      expect(await writesAfter(intervalSeconds)).toEqual(["update LEASE", "write SYNC#tests#a"]);
    }

    test("idle Syncs whose object every check reads completely are written once a day, and changes are still found", async () => {
      await inSyncWithService();
      for (const round of [1, 2, 3]) {
        await touched("services/web", round);
        expect(await writesAfter(intervalSeconds), `round ${round}`).toEqual(leaseAlone);
        expect(
          lists().filter((line) => line.includes("services")),
          `round ${round}`,
        ).toHaveLength(1);
      }
      await edit("/api/v1/namespaces/a/services/web", { spec: { selector: { app: "other" } } });
      await writesAfter(intervalSeconds);
      expect((await rowOf("a")).observed?.drift).toMatchObject({ objects: 1, corrected: true });
      const { inventory } = (await rowOf("a")).observed ?? {};
      await touched("services/web", 4);
      expect((await writesAfter(86_400)).join()).toContain("SYNC#tests#a");
      expect((await rowOf("a")).observed?.inventory).not.toBe(inventory);
    });

    test("idle Syncs are written if that saves the next check a LIST", async () => {
      await inSyncWithService();
      await touched("configmaps/one", 1);
      expect(await writesAfter(intervalSeconds)).toEqual(["update LEASE", "write SYNC#tests#a"]);
      worker.host.clearRequests();
      expect(await writesAfter(intervalSeconds)).toEqual(leaseAlone);
      expect(lists().filter((line) => line.includes("configmaps"))).toHaveLength(1);
    });
  });

  test.each(["to be reported only", "of a Sync that is suspended"] as const)(
    "idle Syncs with drift %s are written and reported once, and again when more objects differ",
    async (which) => {
      await inSync(["a"], { drift: which === "to be reported only" ? "report" : "correct" });
      if (which === "of a Sync that is suspended") await worker.world.suspend("a");
      await editOne("a");
      worker.world.sender.take();
      expect(await writesAfter(intervalSeconds)).toEqual(["update LEASE", "write SYNC#tests#a"]);
      expect(worker.world.sender.take().filter(({ to }) => to === "report")).toHaveLength(1);
      const { drift } = (await rowOf("a")).observed ?? {};
      for (const round of [1, 2]) {
        await writesAfter(intervalSeconds);
        expect(worker.world.sender.take(), `round ${round}`).toEqual([]);
        expect((await rowOf("a")).observed, `round ${round}`).toMatchObject({ drift });
      }
      await edit("/api/v1/namespaces/a/configmaps/two", { data: { k: "edited" } });
      await writesAfter(intervalSeconds);
      expect(worker.world.sender.take().filter(({ to }) => to === "report")).toHaveLength(1);
      expect((await rowOf("a")).observed?.drift).toMatchObject({ objects: 2, corrected: false });
    },
  );

  test("idle Syncs are checked one by one if the worker may not list all namespaces", async () => {
    await inSync(five);
    await editOne("d");
    worker.host.intercept(({ phase, path }) =>
      phase === "before" && path.startsWith("/api/v1/configmaps") ? forbidden : "pass",
    );
    await writesAfter(intervalSeconds);
    worker.host.intercept(undefined);
    expect((await rowOf("d")).observed?.drift).toMatchObject({ objects: 1, corrected: true });
    for (const name of ["a", "b", "c", "e"]) expect((await rowOf(name)).observed?.drift).toBeUndefined();
  });

  test("idle Syncs are checked in several runs if one run is too short for all", async () => {
    await inSync(five);
    worker.world.aheadMs += intervalSeconds * 1000;
    let checks = 0;
    // Each request takes as long as a turn, so the run ends after two requests.
    const stop = worker.host.onRequest(({ path }) => {
      if (path.startsWith("/api/v1/configmaps")) checks++;
      worker.world.aheadMs += 60_000;
    });
    const before = await versions(five);
    await worker.world.work({ remainingMs: 100_000 });
    stop();
    const after = await versions(five);
    const rewritten = after.filter((version, index) => version !== before[index]).length;
    expect(checks).toBeGreaterThan(0);
    expect(rewritten).toBeGreaterThan(0);
    expect(rewritten).toBeLessThan(5);
    // The run has taken so long that the slow lane goes on.
    expect(worker.world.sender.take()).toContainEqual({ to: "applySlow", cluster: "c1" });
    await worker.world.work();
    expect(Date.parse(await leaseDueAt())).toBeGreaterThan(worker.world.clock.now().getTime());
  });
});

describe("an assignment while the routine is running", () => {
  /** At the first request that fits, assigns `new`, whose worker finds the lease taken, and lets a second pass. */
  function assignAt(isMeant: (method: string, path: string) => boolean): void {
    let isAssigned = false;
    worker.host.intercept(async ({ method, path, phase }): Promise<Interception> => {
      if (isAssigned || phase !== "before" || !isMeant(method, path)) return "pass";
      isAssigned = true;
      worker.host.clearRequests();
      await worker.world.assign("new", objectsOf("new"));
      await worker.world.work();
      worker.world.aheadMs += 1000;
      return "pass";
    });
  }

  /** The requests before the first write for `new`. */
  function untilBegun(): readonly string[] {
    const all = lists();
    const first = all.findIndex((line) => line.startsWith("PATCH") && line.includes("/namespaces/new"));
    expect(first).toBeGreaterThanOrEqual(0);
    return all.slice(0, first);
  }

  test("a new assignment waits only for the requests that were sent before it", async () => {
    await inSync(five, { drift: "off" });
    worker.world.aheadMs += intervalSeconds * 1000;
    assignAt((_method, path) => path.startsWith("/api/v1/namespaces/a/configmaps/one"));
    await worker.world.work();
    expect(await worker.world.phase("new")).toBe("Ready");
    expect(untilBegun().filter((line) => line.includes("/configmaps/two"))).toEqual([]);
    // The routine goes on after the new assignment.
    for (const name of five) expect(lists()).toContain(`GET /api/v1/namespaces/${name}/configmaps/two`);
    expect(Date.parse(await leaseDueAt())).toBeGreaterThan(worker.world.clock.now().getTime());
  });

  test("a new assignment waits for a correction that has begun", async () => {
    await inSync(["a"]);
    await editOne("a");
    worker.world.aheadMs += intervalSeconds * 1000;
    assignAt((method) => method !== "GET");
    await worker.world.work();
    expect(await worker.world.phase("new")).toBe("Ready");
    expect(untilBegun()).toContain("PATCH /api/v1/namespaces/a/configmaps/one");
    expect((await rowOf("a")).observed?.drift).toMatchObject({ objects: 1, corrected: true });
  });
});

describe("a routine that new assignments interrupt again and again", () => {
  const isListOfMaps = (method: string, path: string) => method === "GET" && /\/configmaps(\?|$)/.test(path);
  let assigned = 0;

  /** At each list of ConfigMaps, assigns `new` again, whose worker finds the lease taken, and lets a second pass. */
  function assignAtEachList(): void {
    assigned = 0;
    worker.host.intercept(async ({ method, path, phase }): Promise<Interception> => {
      if (phase !== "before" || !isListOfMaps(method, path)) return "pass";
      await worker.world.assign("new", [namespace("new"), configMap("new/one", { k: String(assigned++) })]);
      await worker.world.work();
      worker.world.aheadMs += 1000;
      return "pass";
    });
  }

  /** The most lists that came after an assignment of `new`, and before the first write for it. */
  function mostWaitedFor(): number {
    let most = 0;
    let waited = 0;
    for (const line of lists()) {
      if (line.startsWith("PATCH") && line.includes("/namespaces/new")) waited = 0;
      if (/configmaps$/.test(line)) most = Math.max(most, waited++);
    }
    return most;
  }

  /** The delay of the routine, in seconds, when it corrected a change in `a`. */
  async function seenAfter(): Promise<number> {
    const dueAt = Date.parse(await leaseDueAt());
    worker.world.aheadMs += dueAt - worker.world.clock.now().getTime();
    for (let minute = 0; minute < 60; minute++) {
      await worker.world.work();
      expect(await worker.world.phase("new")).toBe("Ready");
      const late = (worker.world.clock.now().getTime() - dueAt) / 1000;
      if ((await rowOf("a")).observed?.drift?.corrected === true) return late;
      worker.world.aheadMs += 60_000;
    }
    return Number.POSITIVE_INFINITY;
  }

  test("the routine yields for an interval, and then checks all Syncs, one at a time", async () => {
    await inSync(["a", "b"]);
    await editOne("a");
    assignAtEachList();
    const late = await seenAfter();
    expect(late).toBeGreaterThanOrEqual(600);
    expect(late).toBeLessThan(600 + 2 * 60);
    expect(assigned).toBeGreaterThan(20);
    // A Sync that differs causes a second list; `b` is checked after the Syncs that were assigned meanwhile.
    expect(mostWaitedFor()).toBe(1);
  });
});
