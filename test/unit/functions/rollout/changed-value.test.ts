/** A value that few clusters use changes: only their renderings are made anew, and only they are assigned. */
import { expect, test } from "vitest";
import { desiredClusters, distinctInputs } from "#shared/fleet/forecast/desired-clusters.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { desiredPlan, type PlannedOwner } from "#shared/fleet/rollout/desired-plan.ts";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const path = "clusters/{{ cluster.name }}/{{ cluster.values.size | default(std) }}";
const three = ["c7", "c77", "c99"];
const names = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`);

test("a value of three among 10,000 clusters adds three distinct inputs", () => {
  const template = {
    name: "app",
    source: "app",
    parameters: { SIZE: "{{ cluster.values.size | default(std) }}" },
    substitute: true,
  };
  const spec = syncGroupSpec.parse({ clusters: { all: true }, templates: [template] });
  const owner: PlannedOwner = { type: "SyncGroup", namespace: "shop", name: "web", spec, operations: {} };
  const artifact = { revision: "main@sha1:1", digest: "sha256:1" };
  const desired = desiredPlan(owner, new Map([["app", { status: { artifact } }]]));
  if (!desired.ok) throw new Error(desired.message);
  const inputsWith = (values: (name: string) => FleetRow["values"]) => {
    const fleet = names(10_000).map((name) => ({ name, uid: name, labels: {}, values: values(name) }));
    return distinctInputs(desiredClusters(owner, desired.plan, fleet)).distinct;
  };
  const before = inputsWith(() => ({}));
  const after = inputsWith((name) => (three.includes(name) ? { size: `of-${name}` } : { other: name }));
  expect(before.map(({ clusters }) => clusters.length)).toEqual([10_000]);
  expect(after.map(({ clusters }) => clusters.length).sort((a, b) => b - a)).toEqual([9_997, 1, 1, 1]);
  // All other clusters keep the input that they had.
  expect(after.find(({ clusters }) => clusters.length > 1)?.digest).toBe(before[0]?.digest);
});

test("a value of three clusters causes three renderings and three targets, and no other cluster's row is written", async () => {
  const world = new PlannerWorld();
  await world.setSource("aaa");
  for (const name of names(120)) await world.addCluster(name, "all");
  await world.setGroup({ maxConcurrent: "100%" }, [{ name: "app", source: "app", path }]);
  await world.rollOut();
  const versions = async () =>
    Object.fromEntries(
      await Promise.all(names(120).map(async (name) => [name, (await world.sync(name))?.version] as const)),
    );
  const renderings = () => new Set(world.rows<RenderingRow>("Rendering").map(({ input }) => input));
  const [before, made] = [await versions(), renderings()];
  expect(made.size).toBe(120);

  for (const name of three) {
    const key = keys.fleet(name);
    const row = await world.table.get(key);
    if (row === undefined) throw new Error(`there is no ${name}`);
    const put: FleetRow = { ...row, values: { size: "large" } };
    await world.table.write([{ put }, fleetVersionUpdate(name)]);
  }
  world.sender.take();
  await world.rollOut();
  expect([...renderings()].filter((input) => !made.has(input))).toHaveLength(3);
  const after = await versions();
  expect(names(120).filter((name) => after[name] !== before[name])).toEqual(three);
  const woken = world.sender.take().flatMap((message) => (message.to === "apply" ? [message.cluster] : []));
  expect([...new Set(woken)].sort()).toEqual(three);
});
