/** The planner treats a Sync that a user wrote as a group of one cluster and one template. */
import { expect, test } from "vitest";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { PlannerWorld, silentLog } from "#test/support/planner-world.ts";

const owner: Owner = { namespace: "shop", kind: "Sync", name: "tool" };

async function userSync(): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  await made.setSource("aaa");
  const row: OwnerRow = {
    ...keys.object("shop", "Sync", "tool"),
    type: "Sync",
    schema: rowSchema,
    version: 1,
    namespace: "shop",
    name: "tool",
    uid: "tool",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: made.now.toISOString(),
    operations: {},
    spec: syncSpec.parse({ cluster: "c1", source: "app" }),
    status: { conditions: [] },
  };
  await made.table.write([{ put: row }]);
  return made;
}

async function plan(made: PlannerWorld) {
  const { table, sender, blobs } = made;
  const [clock, until] = [{ now: () => made.now }, new Date(made.now.getTime() + 60_000)];
  await planOwner(
    owner,
    { until },
    { table, sender, blobs, clock, ids: randomIds, log: silentLog, installation: "test" },
  );
  return (await table.get(keys.object("shop", "Sync", "tool")))?.status;
}

test("a Sync of an unregistered cluster reports ClusterNotFound, and is assigned when the cluster is registered", async () => {
  const made = await userSync();
  expect(await plan(made)).toMatchObject({ state: "ClusterNotFound" });
  expect(made.stages()).toEqual({ all: "-" });
  await made.addCluster("c1", "all");
  await plan(made);
  await made.renderAll();
  await plan(made);
  expect((await made.sync("c1", "tool"))?.desired).toMatchObject({ action: "apply", revision: "main@sha1:aaa" });
  await made.observe("c1", "Ready", { name: "tool" });
  await plan(made);
  expect(await plan(made)).toMatchObject({ state: "Complete", clusters: { selected: 1, ready: 1 } });
});

test("an idle check of a Sync writes nothing, and does not read the fleet", async () => {
  const made = await userSync();
  await made.addCluster("c1", "all");
  await plan(made);
  await made.renderAll();
  await plan(made);
  await made.observe("c1", "Ready", { name: "tool" });
  await plan(made);
  made.advanceClock(700);
  await plan(made);
  const before = JSON.stringify(made.table.all());
  const query = made.table.query.bind(made.table);
  made.table.query = (range) => {
    expect(range.pk).not.toBe("FLEET");
    return query(range);
  };
  await made.addCluster("other", "all");
  const others = JSON.stringify(made.table.all());
  await plan(made);
  expect(JSON.stringify(made.table.all())).toBe(others);
  expect(others).not.toBe(before);
});
