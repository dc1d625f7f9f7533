import { describe, expect, test } from "vitest";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** Writes that a worker must not make, whatever its assignment asks for. */
describe.each(clusterTargets)("writes that a worker on $name does not make", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const begin = (): Promise<WorkerWorld> =>
    new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
  const pathOf = (ns: string, name: string) => `/api/v1/namespaces/${ns}/configmaps/${name}`;
  const suspended = { by: "maintainers", at: "2026-11-20T08:00:00.000Z", number: 1 };

  test("the worker prunes nothing while an object of the new rendering is still being deleted", async () => {
    const world = await begin();
    const kept = [namespace("going"), configMap("going/anew")];
    await world.assign("going", [...kept, configMap("going/left")]);
    await world.work();
    const hold = (finalizers: readonly string[] | null) =>
      cluster.raw("PATCH", pathOf("going", "anew"), { as: "merge-patch", body: { metadata: { finalizers } } });
    await hold(["example.com/hold"]);
    await cluster.raw("DELETE", pathOf("going", "anew"));
    await world.assign("going", kept);
    await world.work();
    expect(await world.phase("going")).toBe("Applying");
    expect(await cluster.statusOf(pathOf("going", "left"))).toBe(200);

    await hold(null);
    world.aheadMs += 60_000;
    await world.work();
    expect(await world.phase("going")).toBe("Ready");
    expect(await cluster.statusOf(pathOf("going", "anew"))).toBe(200);
    expect(await cluster.statusOf(pathOf("going", "left"))).toBe(404);
  });

  test("the worker prunes nothing when one object could not be applied", async () => {
    const world = await begin();
    await world.assign("refused", [namespace("refused"), configMap("refused/left")]);
    await world.work();
    await world.assign("refused", [namespace("refused"), configMap("refused/bad", { k: 1 })]);
    await world.work();
    expect(await world.phase("refused")).toBe("Failed");
    expect(await cluster.statusOf(pathOf("refused", "left"))).toBe(200);
  });

  describe.each(["Sync", "SyncGroup"] as const)("a Sync whose owner, a %s, is suspended", (kind) => {
    const name = `suspended-${kind.toLowerCase()}`;

    /** The Sync on the cluster as the planner assigns it for a Sync of a user, or for a group. */
    async function assigned(world: WorkerWorld): Promise<void> {
      await world.assign(name, [namespace(name), configMap(`${name}/c`)]);
      const row = await world.sync(name);
      if (row === undefined) throw new Error("it was assigned");
      const next: SyncRow = { ...row, owner: { namespace: "tests", kind, name } };
      await world.table.write([{ put: next }]);
    }

    async function setSuspended(world: WorkerWorld, operations: SyncGroupRow["operations"]): Promise<void> {
      await world.setOwner(name, { operations });
      if (kind === "Sync") return;
      // Both kinds are read alike, and this row gets the group's key.
      const sync = await world.table.get(keys.object("tests", "Sync", name));
      if (sync === undefined) throw new Error("it was set");
      await world.table.write([
        { delete: sync },
        { put: { ...sync, ...keys.object("tests", "SyncGroup", name), type: "SyncGroup" } },
      ]);
    }

    test("the Sync is not applied for the first time, and its drift is not corrected", async () => {
      const world = await begin();
      await assigned(world);
      await setSuspended(world, { suspended });
      await world.work();
      expect(await world.phase(name)).toBeUndefined();
      expect(await cluster.statusOf(`/api/v1/namespaces/${name}`)).toBe(404);

      await setSuspended(world, {});
      await world.work();
      expect(await world.phase(name)).toBe("Ready");

      await setSuspended(world, { suspended });
      await cluster.raw("DELETE", pathOf(name, "c"));
      world.aheadMs += 700_000;
      await world.work();
      expect(await cluster.statusOf(pathOf(name, "c"))).toBe(404);

      await setSuspended(world, {});
      world.aheadMs += 700_000;
      await world.work();
      expect(await cluster.statusOf(pathOf(name, "c"))).toBe(200);
    });
  });

  test("the worker applies no bytes that differ from the rendering", async () => {
    const world = await begin();
    const objects = [namespace("tampered"), configMap("tampered/c")];
    await world.assign("tampered", objects);
    const { digest } = encodeRendering(objects);
    const other = encodeRendering([...objects, configMap("tampered/planted")]);
    await world.blobs.overwrite(blobKeys.rendering(digest), other.bytes);
    await world.work();
    expect((await world.sync("tampered"))?.observed?.applied).toBeUndefined();
    expect(await world.phase("tampered")).not.toBe("Ready");
    expect(await cluster.statusOf("/api/v1/namespaces/tampered")).toBe(404);
  });
});
