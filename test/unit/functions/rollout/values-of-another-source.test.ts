/** Charts whose values are files of another Source, and the rollouts that a commit there causes. */
import { expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { blobLifeDays } from "#shared/fleet/blob-life.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const valuesFrom = [{ path: "own.yaml" }, { source: "fleet", path: "env/{{ cluster.labels.env }}.yaml" }];
const chart = {
  name: "app",
  source: "app",
  render: { helm: { valuesFrom } },
  apply: { defaultNamespace: "shop" },
  overrides: [{ clusters: { names: ["alone"] }, render: { helm: { valuesFrom: valuesFrom.slice(0, 1) } } }],
};

/** Stores the artifact as `resolve` does. */
async function push(world: PlannerWorld, name: string, commit: string, content = commit): Promise<void> {
  await world.setSource(commit, content, name);
  await world.blobs.overwrite(blobKeys.artifact(digestOf(content)), Buffer.from(content));
}

async function settled(): Promise<PlannerWorld> {
  let now = () => new Date(0);
  const world = new PlannerWorld({ table: new MemoryTable(), blobs: new MemoryBlobStore(() => now()) });
  now = () => world.now;
  for (const name of ["alone", "one", "two"]) await world.addCluster(name, "all", { labels: { env: "prod" } });
  await push(world, "app", "a1");
  await push(world, "fleet", "f1");
  await world.setGroup({ maxConcurrent: "100%" }, [chart]);
  await world.rollOut();
  world.sender.take();
  return world;
}

const inputs = (world: PlannerWorld) => world.rows<RenderingRow>("Rendering").map(({ input }) => input);

test("a commit of either Source starts a rollout, and a commit of values changes only the clusters that use them", async () => {
  const world = await settled();
  expect(inputs(world)).toHaveLength(2);
  const versions = async () =>
    Promise.all(["alone", "one", "two"].map(async (name) => (await world.sync(name))?.version));
  const [made, before] = [inputs(world), await versions()];

  await push(world, "fleet", "f2");
  await world.rollOut();
  expect(world.rollouts().map(({ number, revision }) => [number, revision])).toEqual([
    [1, "main@sha1:a1"],
    [2, "main@sha1:a1"],
  ]);
  expect(inputs(world).filter((input) => !made.includes(input))).toHaveLength(1);
  const after = await versions();
  expect(after.map((version, index) => version === before[index])).toEqual([true, false, false]);
  const asked = world.sender.take().filter((message) => message.to === "render");
  const [namespace, source] = ["shop", { namespace: "shop", name: "app", revision: "main@sha1:a1" }];
  const besides = [{ namespace, name: "fleet", revision: "main@sha1:f2", besides: digestOf("f2") }];
  const fresh = inputs(world).find((input) => !made.includes(input));
  expect(asked.find(({ input }) => input === fresh)).toMatchObject({ source, besides });
  const row = world.rows<RenderingRow>("Rendering").find(({ input }) => input === fresh);
  expect(row?.sources).toEqual([source, ...besides]);
  expect(row?.render?.helm?.valuesFrom).toEqual([
    { path: "own.yaml", optional: false },
    { path: "env/prod.yaml", optional: false, from: { source: "fleet", artifactDigest: digestOf("f2") } },
  ]);

  // Another commit with the same content changes nothing.
  await push(world, "fleet", "f3", "f2");
  await world.rollOut();
  expect(world.rollouts()).toHaveLength(2);
  await push(world, "app", "a2");
  await world.rollOut();
  expect((await versions()).map((version, index) => version === after[index])).toEqual([false, false, false]);
});

test("a group whose Source of values does not exist starts no rollout, and names the missing Source", async () => {
  const world = await settled();
  await world.setGroup({}, [{ ...chart, render: { helm: { valuesFrom: [{ source: "none", path: "v.yaml" }] } } }]);
  await world.plan();
  expect(world.rollouts()).toHaveLength(1);
  const { status } = await world.group();
  expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
    message: expect.stringContaining("template app: there is no Source none in namespace shop"),
  });
});

test("the artifacts of values stay stored for as long as a rollout names them", async () => {
  const world = await settled();
  const daySeconds = 86_400;
  for (let day = 0; day < 100; day += 5) {
    world.advanceClock(5 * daySeconds);
    world.blobs.expire(blobLifeDays);
    await world.plan();
  }
  const kept = world.blobs.keys().filter((key) => key.startsWith("artifacts/"));
  expect(kept.toSorted()).toEqual(
    [digestOf("a1"), digestOf("f1")].map((digest) => blobKeys.artifact(digest)).toSorted(),
  );
});
