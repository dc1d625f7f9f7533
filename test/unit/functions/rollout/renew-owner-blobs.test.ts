/**
 * Blobs in a bucket whose lifecycle removes old ones: the planner keeps the blobs that a group needs, and no others
 * stay.
 */
import { describe, expect, test } from "vitest";
import { storedList } from "#shared/adapters/stored-list.ts";
import { digestOf } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { blobLifeDays } from "#shared/fleet/blob-life.ts";
import { lastStageRunOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { BlobStore } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { allSay, revise, rings } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const days = 86_400;

/** A group in two stages whose first rollout is everywhere. */
async function settled(bucketOf = (store: MemoryBlobStore): MemoryBlobStore => store) {
  let now = () => new Date(0);
  const blobs = bucketOf(new MemoryBlobStore(() => now()));
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 100 }), blobs });
  now = () => made.now;
  for (const [name, ring] of [
    ["c1", "canary"],
    ["r1", "rest"],
  ] as const)
    await made.addCluster(name, ring);
  await made.setSource("aaa");
  await made.setGroup({ ...rings, maxConcurrent: 2 });
  await made.rollOut();
  return made;
}

/** Checks that the lists to which the rollout state and its stage runs refer are stored. */
async function checkNeeded(made: PlannerWorld): Promise<void> {
  const rolloutState = made.rolloutState();
  const stageRuns = new Map(made.stageRuns().map((stageRun) => [stageRunKey(stageRun), stageRun]));
  const pages = rolloutState.stages.flatMap((stage) => lastStageRunOf(stage, stageRuns)?.pages ?? []);
  for (const key of [rolloutState.members ?? "", ...pages.map((page) => page.key)])
    expect(await storedList(made.blobs, key)).not.toEqual([]);
}

async function pass(made: PlannerWorld, many: number): Promise<void> {
  for (let day = 0; day < many; day += 5) {
    made.advanceClock(5 * days);
    made.blobs.expire(blobLifeDays);
    await made.plan();
    await checkNeeded(made);
  }
}

describe("lists of clusters", { timeout: 60_000 }, () => {
  test("the planner keeps lists stored for as long as a row names them, while nothing changes", async () => {
    const made = await settled();
    const before = made.blobs.keys();
    await pass(made, 200);
    expect(made.blobs.keys()).toEqual(before);
    expect(made.rolloutState().membersVersion).toBe(1);
  });

  test("the planner keeps the lists of a stage run in progress, and of a suspended group", async () => {
    const made = await settled();
    await revise(made, "bbb");
    await allSay(made, "Ready");
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await made.observe("r1", "Applying");
    await pass(made, 150);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    expect(made.stageRun("rest")).toMatchObject({ snapshot: 4, size: 1 });
  });

  test("the planner keeps the lists of an idle stage, however often clusters join another stage", async () => {
    const made = await settled();
    for (let day = 0; day < 150; day += 10) {
      await made.addCluster(`x${day}`, "rest");
      await made.plan();
      await allSay(made, "Ready");
      await pass(made, 10);
    }
    expect(made.stageRun("canary")).toMatchObject({ rollout: 1, snapshot: 1 });
  });

  test("lists that no row names expire: three hundred days of pushes leave no more of them", async () => {
    const made = await settled();
    const counts: number[] = [];
    for (let day = 10; day <= 300; day += 10) {
      await made.addCluster(`x${day}`, "rest");
      await made.removeCluster(`x${day - 10}`);
      await revise(made, `day${day}`);
      for (let stage = 0; stage < 3; stage++) await allSay(made, "Ready");
      await pass(made, 10);
      counts.push(made.blobs.keys().length);
    }
    // As lists are stored again, their number goes up and down a little. Those of ten rollouts are kept.
    expect(Math.max(...counts.slice(23))).toBeLessThanOrEqual(Math.max(...counts.slice(16, 23)));
  });

  test("the loss of a list that nothing reads any more does not stop the planner", async () => {
    const made = await settled();
    for (const { key } of made.stageRun("canary").pages) made.blobs.lose(key);
    made.advanceClock(30 * days);
    await made.plan();
    expect(made.rolloutState().blobsAt).toBe(made.now.toISOString());
  });

  test("the next call stores the lists again when a call dies while it stores any of them", async () => {
    for (let at = 1, hasDied = true; hasDied; at++) {
      const made = await settled();
      made.advanceClock(30 * days);
      let left = at;
      hasDied = false;
      const dying: Pick<BlobStore, "overwrite"> = {
        async overwrite(key, bytes) {
          hasDied = --left === 0;
          if (hasDied) throw new Error("dead");
          return MemoryBlobStore.prototype.overwrite.call(made.blobs, key, bytes);
        },
      };
      Object.assign(made.blobs, dying);
      await made.plan().catch(() => {});
      Object.assign(made.blobs, { overwrite: MemoryBlobStore.prototype.overwrite });
      await made.plan();
      made.advanceClock(59 * days);
      made.blobs.expire(blobLifeDays);
      await checkNeeded(made);
      expect(at).toBeLessThan(8);
    }
  });
});

describe("artifacts from which rollouts are rendered", { timeout: 60_000 }, () => {
  const artifacts = (made: PlannerWorld) => made.blobs.keys().filter((key) => key.startsWith("artifacts/"));
  const ofRollouts = (made: PlannerWorld) =>
    made
      .rollouts()
      .flatMap(({ plan }) => plan.templates.map(({ artifactDigest }) => blobKeys.artifact(artifactDigest)))
      .toSorted();

  /** Stores the artifact as `resolve` does. */
  async function push(made: PlannerWorld, commit: string): Promise<void> {
    await made.setSource(commit);
    await made.blobs.overwrite(blobKeys.artifact(digestOf(commit)), Buffer.from(commit));
  }

  async function begun(): Promise<PlannerWorld> {
    const made = await settled();
    await push(made, "bbb");
    await made.blobs.overwrite(blobKeys.artifact(digestOf("aaa")), Buffer.from("aaa"));
    await made.rollOut();
    return made;
  }

  test("the planner keeps the artifacts of all its rollouts for a year, also in a suspended group", async () => {
    const made = await begun();
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await pass(made, 365);
    expect(made.rollouts()).toHaveLength(2);
    expect(artifacts(made).toSorted()).toEqual(ofRollouts(made));
  });

  test("artifacts expire when no rollout names them any more", async () => {
    const made = await begun();
    for (let commit = 0; commit < 25; commit++) {
      await push(made, `commit ${commit}`);
      await made.rollOut();
      await pass(made, 10);
    }
    await pass(made, 70);
    expect(made.rollouts()).toHaveLength(10);
    expect(artifacts(made).toSorted()).toEqual(ofRollouts(made));
  });

  test("a rollout of an artifact that was stored long ago stores it again", async () => {
    const made = await begun();
    await push(made, "ccc");
    made.advanceClock(59 * days);
    await made.plan();
    made.advanceClock(2 * days);
    made.blobs.expire(blobLifeDays);
    expect(made.rollouts().map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(artifacts(made)).toContain(blobKeys.artifact(digestOf("ccc")));
  });

  test("artifacts are stored again although an old rollout is readable for a newer version only", async () => {
    const made = await begun();
    const [first] = made.rollouts();
    if (first === undefined) throw new Error("nothing was planned");
    await made.table.write([{ update: { pk: first.pk, sk: first.sk }, set: { schema: newestRowSchema + 1 } }]);
    await pass(made, 100);
    expect(artifacts(made)).toContain(blobKeys.artifact(digestOf("bbb")));
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("the loss of an artifact does not stop the planner", async () => {
    const made = await begun();
    made.blobs.lose(blobKeys.artifact(digestOf("aaa")));
    await pass(made, 100);
    expect(artifacts(made)).toEqual([blobKeys.artifact(digestOf("bbb"))]);
  });

  test("the first version that stores blobs again does so at once", async () => {
    const made = await begun();
    made.advanceClock(30 * days);
    const { blobsAt: _none, ...rolloutState } = made.rolloutState();
    await made.table.write([{ put: rolloutState }]);
    await made.plan();
    expect(made.rolloutState().blobsAt).toBe(made.now.toISOString());
  });
});
