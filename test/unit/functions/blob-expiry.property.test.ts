/** While months pass, blobs that a row refers to stay, and other blobs expire, although functions die between two calls. */
import { describe, expect, test } from "vitest";
import { createRandom, type Random } from "#local/base/random.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { CollectionWorld } from "#test/support/collection-world.ts";
import { rings, web } from "#test/support/planner-story.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const day = 86_400;
const clusters = { c1: "canary", r1: "rest", r2: "rest" };

/** A second implementation, which uses none of the code that renews. */
function namedBy({ desired, observed }: SyncRow): readonly string[] {
  const { applied } = observed ?? {};
  const named = [desired.renderDigest, desired.instead?.renderDigest, applied?.renderDigest];
  return [...named, ...(applied?.unsettled ?? [])].flatMap((digest) => digest ?? []);
}

function renderingsOf(world: CollectionWorld): ReadonlySet<string> {
  const given = world.syncs().flatMap(({ pk, sk }) => [...(world.given.get(sk + pk) ?? [])]);
  return new Set([...world.syncs().flatMap(namedBy), ...given].map(blobKeys.rendering));
}

function sourceOf(world: CollectionWorld): SourceRow | undefined {
  return world.made.rows<SourceRow>("Source")[0];
}

/**
 * The artifacts from which a cluster that joins is rendered, and those from which a desired rendering would be made
 * again.
 */
function artifactsOf(world: CollectionWorld): ReadonlySet<string> {
  const rollouts = world.made.rows<RolloutRow>("Rollout").filter(({ expiresAt }) => expiresAt === undefined);
  const ofRollouts = rollouts.flatMap(({ plan }) => plan.templates.map(({ artifactDigest }) => artifactDigest));
  const desired = inputsOf(world);
  const rows = world.made.rows<RenderingRow>("Rendering").filter(({ input }) => desired.has(input));
  const ofRows = rows.map(({ artifactDigest }) => artifactDigest);
  return new Set(
    [...ofRollouts, ...ofRows, sourceOf(world)?.status.artifact?.digest ?? []].flat().map(blobKeys.artifact),
  );
}

/** The renderings that are desired, by their inputs. */
function inputsOf(world: CollectionWorld): ReadonlySet<string> {
  return new Set(world.syncs().flatMap(({ desired }) => [desired.input ?? [], desired.instead?.input ?? []].flat()));
}

/** @param lost - the blobs that expired while no function ran, and that nothing has needed since. */
function expectNeeded(world: CollectionWorld, lost: ReadonlySet<string>): void {
  const needed = renderingsOf(world).union(artifactsOf(world));
  expect([...needed.difference(lost)].filter((key) => !world.has(key))).toEqual([]);
  expect([...world.missed].filter((key) => !lost.has(key))).toEqual([]);
  const rows = new Set(world.made.rows<RenderingRow>("Rendering").map(({ input }) => input));
  expect([...inputsOf(world)].filter((input) => !rows.has(input))).toEqual([]);
}

/**
 * Desired blobs are restored after a time in which no function ran. Other tried renderings may be lost; later clusters
 * are rendered from artifacts that are fetched then. @returns the blobs that are lost.
 */
async function expectHealed(world: CollectionWorld): Promise<ReadonlySet<string>> {
  const before = [...renderingsOf(world).union(artifactsOf(world))].filter((key) => !world.has(key));
  for (let round = 0; round < 10; round++) await world.settle();
  const desired = world.syncs().flatMap(({ desired }) => desired.renderDigest ?? []);
  const artifact = sourceOf(world)?.status.artifact?.digest ?? "";
  expect([...desired.map(blobKeys.rendering), blobKeys.artifact(artifact)].filter((key) => !world.has(key))).toEqual(
    [],
  );
  return new Set(before);
}

function expectGone(world: CollectionWorld): void {
  const inFolder = (folder: string) => world.blobs.keys().filter((key) => key.startsWith(`${folder}/`));
  const renderings = renderingsOf(world);
  expect(inFolder("renderings").filter((key) => !renderings.has(key))).toEqual([]);
  const desired = inputsOf(world);
  const rows = world.made.rows<RenderingRow>("Rendering");
  expect(rows.map(({ input }) => input).filter((input) => !desired.has(input))).toEqual([]);
  const artifacts = artifactsOf(world);
  expect(inFolder("artifacts").filter((key) => !artifacts.has(key))).toEqual([]);
}

type Act = (world: CollectionWorld, random: Random) => Promise<void> | void;

const nobody = { by: "ana", at: "2026-11-21T08:00:00.000Z" };

const acts: Readonly<Record<string, Act>> = {
  push: (world, random) => world.push(`${random.integer(0, 1_000_000)}`),
  revert: (world, random) => world.push(world.commits[random.integer(0, world.commits.length - 1)]?.content ?? ""),
  // Clusters that are reachable only by this timer.
  unplug: (world, random) => void world.unplugged.add(random.chance(0.5) ? "r1" : "c1"),
  plug: (world) => world.unplugged.clear(),
  fail: (world, random) => void world.failing.add(random.chance(0.5) ? "r2" : "c1"),
  remedy: (world) => world.failing.clear(),
  suspend: (world) => world.made.operate({ suspended: nobody }),
  resume: (world) => world.made.operate({}),
  join: async (world, random) => {
    const names = new Set(world.clusters().map(({ name }) => name));
    const name = `x${random.integer(0, 3)}`;
    if (!names.has(name)) await world.join(name, "rest");
  },
  refresh: (world) => world.made.operate({ refresh: nobody }),
};

async function play(seed: number, story: { readonly deaths: number; readonly steps: number }) {
  const random = createRandom(seed);
  const world = new CollectionWorld();
  await world.begin(clusters, { ...rings, maxConcurrent: 2, progressDeadline: "1h" }, web);
  world.death = () =>
    random.chance(story.deaths)
      ? { at: random.integer(1, 30), when: random.chance(0.5) ? "before" : "after" }
      : undefined;
  const names = Object.keys(acts);
  const lost = new Set<string>();
  for (let step = 0; step < story.steps; step++) {
    const name = names[random.integer(0, names.length - 1)] ?? "";
    await acts[name]?.(world, random);
    await world.pass(random.chance(0.2) ? random.integer(30, 150) : random.integer(1, 10));
    expectNeeded(world, lost);
    if (!random.chance(0.1)) continue;
    world.standStill(random.integer(40, 100) * day);
    for (const key of await expectHealed(world)) lost.add(key);
  }
  world.death = () => undefined;
  return { world, lost };
}

/** A story of years takes as long as fifty runs of other properties. */
const runs = Math.ceil(propertyRuns(50) / 50);
const seeds = propertySeeds.flatMap((seed) => Array.from({ length: runs }, (_, run) => seed * 1000 + run));

describe("months of pushes, silence and deaths", { timeout: 120_000 }, () => {
  test.each(seeds)(
    "needed blobs stay and other blobs expire through months of pushes, silence and deaths (seed %i)",
    async (seed) => {
      const { world, lost } = await play(seed, { deaths: 0.1, steps: 15 });
      world.unplugged.clear();
      world.failing.clear();
      await world.made.operate({});
      await world.pass(280);
      expectNeeded(world, lost);
      expectGone(world);
    },
  );
});

test("a rendering that is lost together with its row is made again", {
  timeout: 60_000,
}, async () => {
  const world = await new CollectionWorld().begin(clusters, { ...rings, maxConcurrent: 2 }, web);
  for (let round = 0; round < 3; round++) await world.settle();
  const desired = [...renderingsOf(world)];
  expect(desired).toHaveLength(1);
  for (const row of world.made.rows<RenderingRow>("Rendering")) await world.made.table.write([{ delete: row }]);
  for (const key of desired) world.blobs.lose(key);
  await world.settle();
  expect([...world.missed]).toEqual(desired);
  for (let round = 0; round < 3; round++) await world.settle();
  expect(desired.filter((key) => !world.has(key))).toEqual([]);
  expectNeeded(world, new Set(desired));
});
