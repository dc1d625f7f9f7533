/** Two functions write one row: a write of one function between the other's read and write is not lost. */
import { describe, expect, test } from "vitest";
import { acquireLease } from "#functions/apply/lease/lease.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { dueAttributes, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Gap, inEveryGap } from "#test/support/every-gap.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { type ApiFixture, apiFixture, cluster, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

/** Every writer reads before it writes; a writer with a single call would have no gap. */
const fewestGaps = 2;

describe("the API and another writer", () => {
  const groupPath = "/v1/namespaces/payments/syncgroups/shop";
  const group = (path: string) => syncGroup("shop", [{ name: "web", source: "app", path }]);

  /** One request, with another writer right before one of its calls. */
  async function requests(gap: Gap, rival: (api: ApiFixture) => Promise<unknown>): Promise<ApiFixture> {
    const table = new MemoryTable();
    const api = apiFixture(table);
    const documents = [source("app"), cluster("c1", { env: "prod" }), group("old")];
    await api.call("POST", "/v1/apply", { documents });
    await table.write([{ put: syncRow("c1", "shop.web") }]);
    return apiFixture(
      table,
      gap(table, async () => {
        await rival(api);
      }),
    );
  }

  async function ownerRow({ table }: ApiFixture): Promise<OwnerRow | undefined> {
    return table.get(keys.object("payments", "SyncGroup", "shop"));
  }

  test.each(["suspend", "reconcile"] as const)("an apply does not undo a %s", async (verb) => {
    const gaps = await inEveryGap(async (gap) => {
      let answer: { readonly status: number } | undefined;
      const api = await requests(gap, async (other) => {
        answer = await other.call("POST", `${groupPath}/${verb}`, { reason: "INC-1" });
      });
      expect(await api.call("POST", "/v1/apply", { documents: [group("new")] })).toMatchObject({ status: 200 });
      const row = await ownerRow(api);
      expect(row).toMatchObject({ generation: 2, spec: { templates: [{ path: "new" }] } });
      const act = verb === "suspend" ? row?.operations.suspended : row?.operations.reconcile;
      expect(act?.reason).toBe(answer === undefined ? undefined : "INC-1");
      if (answer !== undefined) expect(answer.status).toBe(200);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("a suspend does not undo an apply", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let path = "old";
      const api = await requests(gap, async (other) => {
        path = "new";
        await other.call("POST", "/v1/apply", { documents: [group(path)] });
      });
      const answer = await api.call("POST", `${groupPath}/suspend`, { reason: "INC-1" });
      expect(answer).toMatchObject({ status: 200, body: { outcome: "configured" } });
      expect(await ownerRow(api)).toMatchObject({
        spec: { templates: [{ path }] },
        operations: { suspended: { reason: "INC-1" } },
      });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("an apply keeps the status that the planner wrote meanwhile", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let said: string | undefined;
      const api = await requests(gap, async (other) => {
        const row = await ownerRow(other);
        if (row === undefined) throw new Error("there is no group");
        said = "Rolling";
        const status = { ...row.status, state: "Rolling" as const };
        await other.table.write([{ put: { ...row, status, version: row.version + 1 } as OwnerRow }]);
      });
      await api.call("POST", "/v1/apply", { documents: [group("new")] });
      expect(await ownerRow(api)).toMatchObject({ generation: 2, spec: { templates: [{ path: "new" }] } });
      expect((await ownerRow(api))?.status.state).toBe(said);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("the second of two applies sees the first", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let rivals = 0;
      const api = await requests(gap, async (other) => {
        rivals++;
        await other.call("POST", "/v1/apply", { documents: [group("theirs")] });
      });
      await api.call("POST", "/v1/apply", { documents: [group("mine")] });
      const { generation, spec } = (await ownerRow(api)) ?? {};
      expect({ generation, spec }).toMatchObject({ generation: 2 + rivals, spec: { templates: [{ path: "mine" }] } });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("an apply keeps what a worker wrote about the Cluster meanwhile", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let seen: string | undefined;
      const api = await requests(gap, async (other) => {
        const row = await other.table.get(keys.cluster("c1"));
        if (row === undefined) throw new Error("there is no Cluster");
        seen = "v1.36.2";
        const status = { ...row.status, kubernetesVersion: seen };
        await other.table.write([{ put: { ...row, status, version: row.version + 1 } as ClusterRow }]);
      });
      await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "test" })] });
      expect(await api.table.get(keys.cluster("c1"))).toMatchObject({ labels: { env: "test" } });
      expect(await api.table.get(keys.fleet("c1"))).toMatchObject({ labels: { env: "test" } });
      expect((await api.table.get(keys.cluster("c1")))?.status).toMatchObject(
        seen === undefined ? {} : { kubernetesVersion: seen },
      );
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("a Sync that is forgotten with its Cluster stays forgotten, and no attempt number is used again", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let attempt = 0;
      const key = keys.sync("c1", "payments", "shop.web");
      const api = await requests(gap, async (other) => {
        const [row, fleet] = [await other.table.get(key), await other.table.get(keys.fleet("c1"))];
        if (row === undefined) return;
        if (fleet === undefined) {
          // The write of a planner that had read the row before.
          await other.table.update({ update: key, set: { reconcile: 7 }, add: { version: 1 } });
          return;
        }
        // The planner may assign only where the cluster is registered.
        attempt = row.desired.attempt + 1;
        const next: SyncRow = { ...row, version: row.version + 1, desired: { ...row.desired, attempt } };
        await other.table.write([{ put: next, when: { version: row.version } }]);
      });
      const path = "/v1/clusters/c1?cascade=orphan&confirm=true";
      expect(await api.call("DELETE", path)).toMatchObject({ status: 200 });
      const row = await api.table.get(key);
      expect(row?.desired.action).toBe("orphan");
      expect(row?.desired.attempt).toBeGreaterThan(attempt);
      expect(row).not.toHaveProperty("observed");
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("the fence of a worker that acquires the lease of a forgotten Cluster is not lowered", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let fence = 0;
      const key = keys.lease("c1");
      const [long, ago] = [new Date("2026-11-20T07:00:00Z"), new Date("2026-11-20T07:01:00Z")];
      const api = await requests(gap, async ({ table }) => {
        const now = new Date("2026-11-20T08:00:00Z");
        fence =
          (await acquireLease("c1", { owner: "second", now, until: new Date("2026-11-20T08:00:45Z") }, table))?.fence ??
          0;
      });
      await acquireLease("c1", { owner: "first", now: long, until: ago }, api.table);
      expect(await api.call("DELETE", "/v1/clusters/c1?cascade=orphan&confirm=true")).toMatchObject({ status: 200 });
      expect(await api.table.get(key)).toMatchObject({ fence: Math.max(fence, 1) });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });
});

describe("the planner and another writer", () => {
  const clusters = ["a", "b"];

  /** All clusters run the first revision, and the second is rendered: the next call assigns it. */
  async function begun(): Promise<PlannerWorld> {
    const made = await fresh();
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll();
    return made;
  }

  /** The first revision is rendered: the next call assigns it. */
  async function fresh(): Promise<PlannerWorld> {
    const made = new PlannerWorld();
    for (const name of clusters) await made.addCluster(name, "all");
    await made.setSource("aaa");
    await made.setGroup({ maxConcurrent: "100%" });
    await made.plan();
    await made.renderAll();
    return made;
  }

  async function desiredOf(made: PlannerWorld, name: string) {
    return (await made.sync(name))?.desired;
  }

  test("the planner does not erase what a worker observed", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const made = await begun();
      let saw = false;
      await made.plan(
        gap(made.table, async () => {
          saw = true;
          await made.observe("a", "Ready", { reason: "SeenMeanwhile", attempt: 1 });
        }),
      );
      expect((await desiredOf(made, "a"))?.attempt).toBe(2);
      expect((await made.sync("a"))?.observed?.reason).toBe(saw ? "SeenMeanwhile" : "Ready");
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test.each(["suspended", "deletion"] as const)(
    "the planner starts nothing after the group is changed to %s, and does not undo that",
    async (verb) => {
      const gaps = await inEveryGap(async (gap) => {
        const made = await begun();
        const act = { by: "ana", at: made.now.toISOString() };
        let assigned: readonly unknown[] | undefined;
        await made.plan(
          gap(made.table, async () => {
            await made.operate(verb === "suspended" ? { suspended: act } : { deletion: { ...act, cascade: "delete" } });
            assigned = await Promise.all(clusters.map((name) => desiredOf(made, name)));
          }),
        );
        if (assigned === undefined) return;
        expect((await made.group()).operations[verb]).toMatchObject(act);
        if (verb === "deletion") return;
        expect(await Promise.all(clusters.map((name) => desiredOf(made, name)))).toEqual(assigned);
      });
      expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
    },
  );

  test("the planner does not undo a new spec, and follows it", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const made = await begun();
      const templates = [{ name: "app", source: "app", path: "other" }];
      await made.plan(gap(made.table, () => made.setGroup({ maxConcurrent: 1 }, templates)));
      await made.setGroup({ maxConcurrent: 1 }, templates);
      expect((await made.group()).spec.templates).toMatchObject(templates);
      await made.rollOut();
      expect(made.rollouts().at(-1)?.plan.templates).toMatchObject([{ path: "other" }]);
      expect(made.stages()).toEqual({ all: String(made.rolloutState().last) });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test.each([
    ["runs a revision", begun],
    ["is new", fresh],
  ] as const)(
    "the planner assigns nothing to a cluster that %s and is unregistered meanwhile",
    async (_what, begin) => {
      const gaps = await inEveryGap(async (gap) => {
        const made = await begin();
        let forgotten: unknown;
        let isGone = false;
        await made.plan(
          gap(made.table, async () => {
            isGone = true;
            await unregister(made, "a");
            forgotten = await desiredOf(made, "a");
          }),
        );
        if (isGone) expect(await desiredOf(made, "a")).toEqual(forgotten);
        else expect(await desiredOf(made, "a")).toMatchObject({ action: "apply" });
        expect(await desiredOf(made, "b")).toMatchObject({
          action: "apply",
          revision: made.rollouts().at(-1)?.revision,
        });
      });
      expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
    },
  );

  test("the planner decides once when two calls run at the same time", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const made = await begun();
      await made.plan(gap(made.table, () => made.plan()));
      for (const name of clusters) expect(await desiredOf(made, name)).toMatchObject({ attempt: 2, rollout: 2 });
      expect(made.stageRuns().map(({ phase }) => phase)).toEqual(["Passed", "Updating"]);
      expect(made.stageRun("all").counts).toMatchObject({ Assigned: 2, Waiting: 0 });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  /** Unregisters a cluster as the API does: first its rows are deleted, then its Sync is forgotten. */
  async function unregister(made: PlannerWorld, name: string): Promise<void> {
    await made.removeCluster(name);
    const row = await made.sync(name);
    if (row === undefined) return;
    const { observed: _observed, ...kept } = row;
    const desired = orphaning(row.desired, { rollout: row.desired.rollout, assignedAt: made.now.toISOString() });
    await made.table.write([{ put: { ...kept, desired, version: row.version + 1 } as SyncRow }]);
  }
});

describe("the tick and another writer", () => {
  test("the tick leaves a row alone that was written meanwhile", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const table = new MemoryTable();
      const sender = new MemorySender();
      const now = new Date("2026-11-20T08:00:00.000Z");
      const key = keys.sync("c1", "payments", "shop.web");
      await table.write([{ put: { ...syncRow("c1", "shop.web"), ...dueAttributes(key, later(now, -1)) } as SyncRow }]);
      const moved = dueAttributes(key, later(now, 600));
      let isMoved = false;
      const through = gap(table, async () => {
        isMoved = true;
        await table.update({ update: key, set: { ...moved, dispatches: 0 }, add: { version: 1 } });
      });
      await claimDue({ table: through, sender, clock: { now: () => now }, log: silentLog, metrics: silentMetrics });
      const row = await table.get(key);
      if (isMoved) expect(row).toMatchObject({ ...moved, dispatches: 0, version: 2 });
      else expect(sender.take()).toEqual([{ to: "apply", cluster: "c1" }]);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });
});
