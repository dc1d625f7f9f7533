/** Templates whose files a commit does not change keep the artifact, and the renderings, that they have. */
import { expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { blobLifeDays } from "#shared/fleet/blob-life.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const daySeconds = 86_400;
const folders = ["a", "b", "c"] as const;
const templates = folders.map((name) => ({ name, source: "app", path: name }));
type Files = Partial<Readonly<Record<(typeof folders)[number], string>>>;

/** Stores a commit with this content of each folder, as `resolve` does. */
async function push(world: PlannerWorld, commit: string, files: Files): Promise<void> {
  await world.setSource(commit);
  const row = await world.table.get(keys.object("shop", "Source", "app"));
  if (row?.status.artifact === undefined) throw new Error("no Source");
  const digests = Object.entries(files).map(([name, content]) => [name, digestOf(content)] as const);
  const artifact = { ...row.status.artifact, digest: digestOf(files), folders: Object.fromEntries(digests) };
  const put: SourceRow = { ...row, status: { ...row.status, artifact } };
  await world.table.write([{ put }]);
  await world.blobs.overwrite(blobKeys.artifact(artifact.digest), Buffer.from(commit));
}

async function settled(more: Partial<Readonly<Record<string, unknown>>> = {}): Promise<PlannerWorld> {
  let now = () => new Date(0);
  const world = new PlannerWorld({ table: new MemoryTable(), blobs: new MemoryBlobStore(() => now()) });
  now = () => world.now;
  for (const name of ["c1", "c2"]) await world.addCluster(name, "all");
  await push(world, "one", { a: "a1", b: "b1", c: "c1" });
  await world.setGroup(
    { maxConcurrent: "100%" },
    templates.map((template) => ({ ...template, ...more })),
  );
  await world.rollOut();
  world.sender.take();
  return world;
}

const renderings = (world: PlannerWorld) => world.rows<RenderingRow>("Rendering");
const asked = (world: PlannerWorld) => world.sender.take().filter((message) => message.to === "render");
const attempts = async (world: PlannerWorld, cluster: string) =>
  Promise.all(folders.map(async (name) => (await world.sync(cluster, `web.${name}`))?.desired.attempt));
const pins = (world: PlannerWorld) =>
  world
    .rollouts()
    .at(-1)
    ?.plan.templates.map(({ revision, artifactRevision, artifactDigest }) => ({
      revision,
      artifactRevision,
      artifactDigest,
    }));

const one = digestOf({ a: "a1", b: "b1", c: "c1" });
const two = digestOf({ a: "a2", b: "b1", c: "c1" });
const revisionOf = (commit: string) => `main@sha1:${commit}`;

test("a commit in one folder is rendered for its template alone, and the rollout has its revision", async () => {
  const world = await settled();
  expect(renderings(world)).toHaveLength(3);
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  expect(asked(world)).toHaveLength(1);
  expect(
    renderings(world)
      .map(({ artifactDigest, path }) => [path, artifactDigest])
      .toSorted(),
  ).toEqual(
    [
      ["a", one],
      ["a", two],
      ["b", one],
      ["c", one],
    ].toSorted(),
  );
  expect(world.rollouts().map(({ revision }) => revision)).toEqual([revisionOf("one"), revisionOf("two")]);
  expect(pins(world)).toEqual([
    { revision: revisionOf("two"), artifactDigest: two },
    { revision: revisionOf("two"), artifactRevision: revisionOf("one"), artifactDigest: one },
    { revision: revisionOf("two"), artifactRevision: revisionOf("one"), artifactDigest: one },
  ]);
  expect(await attempts(world, "c1")).toEqual([2, 1, 1]);
});

test("each template keeps the artifact of the last commit that changed its folder", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  await push(world, "three", { a: "a2", b: "b2", c: "c1" });
  await world.rollOut();
  const three = digestOf({ a: "a2", b: "b2", c: "c1" });
  expect(pins(world)).toEqual([
    { revision: revisionOf("three"), artifactRevision: revisionOf("two"), artifactDigest: two },
    { revision: revisionOf("three"), artifactDigest: three },
    { revision: revisionOf("three"), artifactRevision: revisionOf("one"), artifactDigest: one },
  ]);
  expect(await attempts(world, "c2")).toEqual([2, 2, 1]);
});

test("renderings that clusters have are not requested again, however old they are", async () => {
  const world = await settled();
  world.advanceClock(10 * daySeconds);
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  expect(asked(world)).toHaveLength(1);
});

test("a cluster that joins later gets the same renderings, of which old ones are requested with the revision of their artifact", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  world.advanceClock(10 * daySeconds);
  world.sender.take();
  await world.addCluster("c3", "all");
  await world.rollOut();
  expect(renderings(world)).toHaveLength(4);
  expect(asked(world).map(({ source }) => source?.revision)).toEqual(["two", "one", "one"].map(revisionOf));
  expect(await attempts(world, "c3")).toEqual([1, 1, 1]);
});

test("the artifacts that templates are rendered from stay stored, and no others", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  await push(world, "three", { a: "a2", b: "b2", c: "c1" });
  for (let number = 0; number < 12; number++) {
    await push(world, `more-${number}`, { a: "a2", b: `more-${number}`, c: "c1" });
    await world.rollOut();
  }
  for (let day = 0; day < 100; day += 5) {
    world.advanceClock(5 * daySeconds);
    world.blobs.expire(blobLifeDays);
    await world.plan();
  }
  const kept = world.blobs.keys().filter((key) => key.startsWith("artifacts/"));
  expect(kept).toEqual(expect.arrayContaining([one, two].map(blobKeys.artifact)));
  expect(kept).not.toContain(blobKeys.artifact(digestOf({ a: "a2", b: "b2", c: "c1" })));
});

test("templates are rendered from the new artifact when the earlier one is lost", async () => {
  const world = await settled();
  await world.blobs.lose(blobKeys.artifact(one));
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  const pin = { revision: revisionOf("two"), artifactDigest: two };
  expect(pins(world)).toEqual([pin, pin, pin]);
  expect(renderings(world).filter(({ artifactDigest }) => artifactDigest === two)).toHaveLength(3);
});

test("a template with other fields, or of files without a digest of their own, is rendered from the new artifact", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1" });
  await world.setGroup({ maxConcurrent: "100%" }, [
    ...templates.slice(0, 1),
    { ...templates[1], namePrefix: "x-" },
    ...templates.slice(2),
  ]);
  await world.rollOut();
  // Other fields are another input of the same artifact.
  const at = digestOf({ a: "a2", b: "b1" });
  expect(
    renderings(world)
      .map(({ artifactDigest, path }) => [path, artifactDigest])
      .toSorted(),
  ).toEqual(
    [
      ["a", one],
      ["a", at],
      ["b", one],
      ["b", one],
      ["c", one],
      ["c", at],
    ].toSorted(),
  );
});

test("the plan has the same hash with earlier artifacts, so that nothing is rolled out again", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  const before = world.rollouts().length;
  for (let checks = 0; checks < 3; checks++) {
    world.advanceClock(daySeconds);
    await world.rollOut();
  }
  await push(world, "three", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  expect(world.rollouts()).toHaveLength(before);
});

test("a rollback gives every template what it had", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  await push(world, "three", { a: "a2", b: "b2", c: "c1" });
  await world.rollOut();
  world.sender.take();
  await world.operate({ rollback: { by: "ana", at: world.now.toISOString(), to: 2, reason: "worse" } });
  await world.rollOut();
  expect(asked(world)).toEqual([]);
  const inputs = await Promise.all(folders.map(async (name) => (await world.sync("c1", `web.${name}`))?.desired.input));
  const known = new Map(renderings(world).map(({ input, artifactDigest }) => [input, artifactDigest]));
  expect(inputs.map((input) => known.get(input ?? ""))).toEqual([two, one, one]);
});

test("a template that a guard keeps stays as it is planned, and starts no rollout", async () => {
  const world = await settled();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  await world.setGroup({ maxConcurrent: "100%" }, templates.slice(0, 2), { all: true }, {});
  await world.plan();
  expect(world.rolloutState().guard?.withheld).toMatchObject([{ kind: "templates" }]);
  expect(world.rollouts()).toHaveLength(2);
});

test("values of another Source keep their artifact, and are requested with its revision", async () => {
  const world = await settled();
  const valuesAt = (path: string) => ({ helm: { valuesFrom: [{ source: "app", path }] } });
  await world.setSource("chart", "chart", "chart");
  await world.blobs.overwrite(blobKeys.artifact(digestOf("chart")), Buffer.from("chart"));
  await world.setGroup(
    { maxConcurrent: "100%" },
    ["a/v.yaml", "b/v.yaml"].map((path, index) => ({
      name: `t${index}`,
      source: "chart",
      render: valuesAt(path),
      apply: { defaultNamespace: "shop" },
    })),
  );
  await world.rollOut();
  world.sender.take();
  await push(world, "two", { a: "a2", b: "b1", c: "c1" });
  await world.rollOut();
  const besidesOf = () => asked(world).map(({ besides = [] }) => besides.map((each) => [each.revision, each.besides]));
  expect(besidesOf()).toEqual([[[revisionOf("two"), two]]]);
  world.advanceClock(10 * daySeconds);
  await world.addCluster("c3", "all");
  await world.rollOut();
  expect(besidesOf()).toEqual([[[revisionOf("two"), two]], [[revisionOf("one"), one]]]);
});
