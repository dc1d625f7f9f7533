import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { labelsOf } from "#shared/kube/kube-object.ts";
import type { Table } from "#shared/ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** The table, with some of its methods replaced. */
function tableWith(table: Table, methods: Partial<Table>): Table {
  return new Proxy(table, {
    get(inner, name) {
      const member: unknown = Reflect.get(methods, name) ?? Reflect.get(inner, name);
      return typeof member === "function" ? member.bind(inner) : member;
    },
  });
}

describe.each(clusterTargets)("the worker of one cluster on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  function begin(): Promise<WorkerWorld> {
    return new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
  }

  test("a lease whose answer was lost, and that the SDK requested again, is held", async () => {
    const world = await begin();
    await world.assign("lost-answer", [namespace("lost-answer")]);
    let lost = false;
    const table = tableWith(world.table, {
      async update(write) {
        if (!lost && write.update.sk === "LEASE") {
          lost = true;
          await world.table.update(write);
        }
        return world.table.update(write);
      },
    });
    await world.work({ table });
    expect(await world.phase("lost-answer")).toBe("Ready");
    expect((await world.sync("lost-answer"))?.deaths).toBeUndefined();
    expect((await world.lease())?.owner).toBeUndefined();
  });

  test("Syncs that the run had no time for are reported at once", async () => {
    const world = await begin();
    await world.assign("first", [namespace("no-time-1")]);
    await world.assign("second", [namespace("no-time-2")]);
    const connector: ClusterConnector = {
      async connect() {
        world.aheadMs += 295_000;
        return cluster.client;
      },
      distrust() {},
    };
    await world.work({ connector });
    expect(await world.phase("second")).toBeUndefined();
    // The run has taken so long that the slow lane goes on.
    expect(world.sender.take()).toContainEqual({ to: "applySlow", cluster: "c1" });
  });

  test("rows that were written before the table failed are reported", async () => {
    const world = await begin();
    await world.assign("written", [namespace("written-1")]);
    await world.assign("yet-to-write", [namespace("written-2")]);
    let writes = 0;
    const table = tableWith(world.table, {
      async write(given) {
        writes += 1;
        if (writes > 1) throw new Error("the table is away");
        return world.table.write(given);
      },
    });
    await expect(world.work({ table })).rejects.toThrow("the table is away");
    expect(await world.phase("written")).toBe("Ready");
    expect(await world.phase("yet-to-write")).toBeUndefined();
    const about = { kind: "Sync", cluster: "c1", namespace: "tests", name: "written" };
    expect(world.sender.take()).toContainEqual({ to: "report", about });
  });

  test("a lease that was requested once during the run is released after one more check, and no message is sent", async () => {
    const world = await begin();
    await world.assign("asked-once", [namespace("asked-once")]);
    let desired = false;
    const table = tableWith(world.table, {
      async write(writes) {
        if (!desired) await world.table.update({ update: keys.lease("c1"), add: { desired: 1 } });
        desired = true;
        return world.table.write(writes);
      },
    });
    await world.work({ table });
    expect(await world.phase("asked-once")).toBe("Ready");
    expect((await world.lease())?.owner).toBeUndefined();
    expect(world.sender.take()).not.toContainEqual({ to: "apply", cluster: "c1" });
  });

  test("a lease that is requested at every turn is released in the end, and a message is sent", async () => {
    const world = await begin();
    await world.assign("desired", [namespace("desired")]);
    // The lease is requested even before any worker has had it.
    const lease = { type: "Lease", schema: rowSchema };
    const want = () => world.table.update({ update: keys.lease("c1"), set: lease, add: { desired: 1 } });
    const table = tableWith(world.table, {
      async write(writes) {
        if (writes.some((write) => "update" in write)) await want();
        return world.table.write(writes);
      },
      async update(write) {
        if (write.remove !== undefined) await want();
        return world.table.update(write);
      },
    });
    await world.work({ table });
    expect(await world.phase("desired")).toBe("Ready");
    expect((await world.lease())?.owner).toBeUndefined();
    expect(world.sender.take()).toContainEqual({ to: "apply", cluster: "c1" });
  });

  test.each([
    ["correct", true],
    ["report", false],
  ] as const)("a check reports the drift that it finds, with drift %s", async (drift, corrected) => {
    const world = await begin();
    const name = `drift-${drift}`;
    await world.assign(name, [namespace(name), configMap(`${name}/c`)], { drift });
    await world.work();
    expect(await world.phase(name)).toBe("Ready");
    world.sender.take();

    await cluster.raw("DELETE", `/api/v1/namespaces/${name}/configmaps/c`);
    world.aheadMs += 700_000;
    await world.work();
    expect((await world.sync(name))?.observed?.drift).toMatchObject({ objects: 1, corrected });
    const about = { kind: "Sync", cluster: "c1", namespace: "tests", name };
    expect(world.sender.take()).toContainEqual({ to: "report", about });
  });

  test("an object that is deleted while the others become ready is restored", async () => {
    const world = await begin();
    const path = "/api/v1/namespaces/put-back/configmaps/c";
    await world.assign("put-back", [namespace("put-back"), configMap("put-back/c"), deployment("put-back/web")]);
    await world.work();
    expect(await world.phase("put-back")).toBe("Verifying");
    await cluster.raw("DELETE", path);
    for (let check = 0; check < 3; check++) {
      world.aheadMs += 60_000;
      await world.work();
    }
    expect(await cluster.statusOf(path)).toBe(200);
  });

  test.each(["correct", "report", "off"] as const)(
    "an object that is kept and no longer in git may be deleted by people, with drift %s",
    async (drift) => {
      const world = await begin();
      const name = `kept-${drift}`;
      const path = `/api/v1/namespaces/${name}/configmaps/kept`;
      await world.assign(name, [namespace(name), configMap(`${name}/kept`)]);
      await world.work();
      await world.assign(name, [namespace(name)], { prune: false, drift });
      await world.work();
      expect(await cluster.statusOf(path)).toBe(200);
      await cluster.raw("DELETE", path);
      world.aheadMs += 700_000;
      await world.work();
      expect((await world.sync(name))?.observed).toMatchObject({ phase: "Ready", objects: { total: 1, ready: 1 } });
      expect((await world.sync(name))?.observed).not.toHaveProperty("drift");
    },
  );

  test("an object that carries the label and is no member is counted", async () => {
    const world = await begin();
    await world.assign("counted", [namespace("counted"), configMap("counted/c")]);
    await world.work();
    const mine = await cluster.raw("GET", "/api/v1/namespaces/counted/configmaps/c");
    const body = { ...configMap("counted/copy"), metadata: { name: "copy", labels: labelsOf(mine) } };
    await cluster.raw("POST", "/api/v1/namespaces/counted/configmaps", { body });
    world.aheadMs += 700_000;
    await world.work();
    expect((await world.sync("counted"))?.observed?.objects).toEqual({ total: 2, ready: 2, failed: 0, foreign: 1 });
  });

  test("an object that is lost while its Sync is suspended is not reported as about to be restored", async () => {
    const world = await begin();
    const objects = [namespace("stands-still"), configMap("stands-still/c"), deployment("stands-still/web")];
    await world.assign("stands-still", objects);
    await world.work();
    expect(await world.phase("stands-still")).toBe("Verifying");
    const suspended = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1 };
    await world.setOwner("stands-still", { operations: { suspended } });
    const path = "/api/v1/namespaces/stands-still/configmaps/c";
    await cluster.raw("DELETE", path);
    for (let check = 0; check < 3; check++) {
      world.aheadMs += 60_000;
      await world.work();
      expect((await world.sync("stands-still"))?.observed).toMatchObject({
        phase: "Verifying",
        reason: "ObjectsMissing",
        message: "ConfigMap stands-still/c was deleted; nothing is applied: suspended by ana",
      });
    }
    expect(await cluster.statusOf(path)).toBe(404);
    await world.setOwner("stands-still", {});
    for (let check = 0; check < 2; check++) {
      world.aheadMs += 60_000;
      await world.work();
    }
    expect(await cluster.statusOf(path)).toBe(200);
  });

  test("records of another cluster neither cause a prune nor start an attempt out of turn", async () => {
    const world = await begin();
    const path = "/api/v1/namespaces/accepted/configmaps/left";
    const kept = [namespace("accepted"), configMap("accepted/kept")];
    await world.assign("accepted", [...kept, configMap("accepted/left")]);
    await world.work();
    const seen = await world.sync("accepted");
    if (seen?.observed?.clusterUid === undefined) throw new Error("the cluster was asked who it is");
    // A worker that wrote while another cluster was accepted leaves such a row.
    const stray = { ...seen, version: seen.version + 1, observed: { ...seen.observed, clusterUid: "the-old-one" } };
    await world.table.write([{ put: stray }]);
    await world.work();
    expect((await world.sync("accepted"))?.observed).toMatchObject({
      phase: "Reachable",
      clusterUid: seen.observed.clusterUid,
    });
    expect((await world.sync("accepted"))?.observed).not.toHaveProperty("inventory");

    // A new cluster does not remember attempts either.
    await cluster.raw("DELETE", "/api/v1/namespaces/starling-system/configmaps/tests.accepted");
    await world.table.write([{ put: { ...stray, version: seen.version + 5 } }]);
    await world.assign("accepted", kept);
    await world.work();
    expect(await world.phase("accepted")).toBe("Ready");
    expect(await cluster.statusOf(path)).toBe(200);
  });

  test("an object that another Sync made while it was missing is left to that Sync", async () => {
    const world = await begin();
    const path = "/api/v1/namespaces/claimed-twice/configmaps/c";
    await world.assign("first-owner", [namespace("claimed-twice"), configMap("claimed-twice/c", { k: "first" })]);
    await world.work();
    await cluster.raw("DELETE", path);
    await world.assign("next-owner", [configMap("claimed-twice/c", { k: "next" })]);
    await world.work();
    for (let check = 0; check < 2; check++) {
      world.aheadMs += 700_000;
      await world.work();
    }
    expect((await cluster.raw("GET", path)).data).toEqual({ k: "next" });
    expect(await world.phase("next-owner")).toBe("Ready");
    expect((await world.sync("first-owner"))?.observed).toMatchObject({
      phase: "Failed",
      problems: [
        {
          object: "ConfigMap claimed-twice/c",
          reason: "ForeignOwner",
          message: expect.stringContaining(" belongs to Sync tests/next-owner"),
        },
      ],
    });
  });

  test("an object that a worker made anew before it died is pruned with the rest", async () => {
    const world = await begin();
    const path = "/api/v1/namespaces/made-anew/configmaps/gone";
    const kept = [namespace("made-anew"), configMap("made-anew/kept")];
    await world.assign("made-anew", [...kept, configMap("made-anew/gone")]);
    await world.work();
    await cluster.raw("DELETE", path);

    await world.assign("made-anew", [...kept, configMap("made-anew/gone"), configMap("made-anew/more")]);
    const dead = tableWith(world.table, {
      write: () => Promise.reject(new Error("the worker is dead")),
    });
    await expect(world.work({ table: dead })).rejects.toThrow("the worker is dead");
    expect(await cluster.statusOf(path)).toBe(200);

    world.aheadMs += 400_000;
    await world.assign("made-anew", kept);
    await world.work();
    expect(await world.phase("made-anew")).toBe("Ready");
    expect(await cluster.statusOf(path)).toBe(404);
  });
});
