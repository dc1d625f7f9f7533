/** Guards: how many clusters may join a group, leave it or lose a template before somebody is asked. */
import { describe, expect, test } from "vitest";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import type { WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { ana, having, names, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { type OperationsInput, owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;
const pace = { maxConcurrent: 20 };
const two = [...web, { name: "logs", source: "app", path: "logs" }];
const canary = { selector: { matchLabels: { ring: "canary" } } };

/** Ten clusters, of which `c000` and `c001` are canaries. */
function fleet(): Record<string, string> {
  return Object.fromEntries(names(10).map((name, index) => [name, index < 2 ? "canary" : "rest"]));
}

/** A group that has been rolled out to the clusters that it selects. */
async function guarded(guard: object, clusters: unknown = { all: true }, templates: readonly unknown[] = web) {
  const made = await worldOf(fleet(), pace, templates, clusters, guard);
  await made.rollOut();
  await made.plan();
  return made;
}

const withheld = (made: PlannerWorld): readonly WithheldChange[] => made.rolloutState().guard?.withheld ?? [];

async function approve(made: PlannerWorld, hash: string) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  return api.call("POST", `${path}/approve-guard`, { hash, reason: "reviewed" });
}

describe("additions", () => {
  test("a wider selector waits as a whole, everything else goes on, and its approval lets exactly it through", async () => {
    const made = await guarded({ additions: "50%" }, canary);
    await made.setGroup(pace, web, { all: true }, { additions: "50%" });
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001"]);
    expect(withheld(made)).toMatchObject([{ kind: "additions", count: 8, allowed: 1, members: 2 }]);
    expect((await made.group()).status.state).toBe("Guarded");
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ all: "2" });

    const [{ hash } = { hash: "" }] = withheld(made);
    expect(await approve(made, hash)).toMatchObject({ status: 200 });
    await playOn(made);
    expect(having(made)).toEqual(names(10));
    expect((await made.group()).status.state).toBe("Complete");
    expect(withheld(made)).toEqual([]);
  });

  test("clusters that are labelled and registered count like an edit, and small changes add up", async () => {
    const made = await guarded({ additions: "100%" }, canary);
    await made.addCluster("c002", "canary");
    await playOn(made);
    await made.addCluster("d000", "canary");
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001", "c002", "d000"]);
    await made.addCluster("d001", "canary");
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001", "c002", "d000"]);
    expect(withheld(made)).toMatchObject([{ count: 1, before: 2, allowed: 2, members: 2, names: ["d001"] }]);
  });

  test("the window has room again when its changes have left it", async () => {
    const made = await guarded({ additions: 1, per: "1h" }, canary);
    await made.addCluster("c002", "canary");
    await playOn(made);
    made.advanceClock(600);
    await made.addCluster("c003", "canary");
    await playOn(made);
    expect(withheld(made)).toMatchObject([{ names: ["c003"] }]);
    const [{ until = "" } = {}] = withheld(made);
    expect((made.rolloutState().dueKey ?? "").slice(0, 24) <= until).toBe(true);
    made.advanceClock((Date.parse(until) - made.now.getTime()) / 1000);
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001", "c002", "c003"]);
  });

  test("an edit that raises the guard, or removes it, is judged by the former one for its window", async () => {
    const made = await guarded({ additions: 0, per: "1h" }, canary);
    await made.setGroup(pace, web, { all: true }, { additions: "100%", per: "1h" });
    await playOn(made);
    expect(withheld(made)).toMatchObject([{ count: 8, allowed: 0 }]);
    await made.setGroup(pace, web, { all: true });
    await playOn(made);
    expect(having(made)).toHaveLength(2);
    made.advanceClock(3601);
    await playOn(made);
    expect(having(made)).toHaveLength(10);
    expect(made.rolloutState().guard).toBeUndefined();
  });

  test("the first rollout of a group, and the return of a cluster, are no additions", async () => {
    const made = await guarded({ additions: 0, deletions: 1 });
    expect(having(made)).toHaveLength(10);
    await made.removeCluster("c009");
    await playOn(made);
    await made.addCluster("c009", "rest", { uid: "anew" });
    await playOn(made);
    expect(having(made)).toHaveLength(10);
    expect(withheld(made)).toEqual([]);
  });

  test("entries of the state index that name other clusters than their rows let none through: the role of a zone may write such", async () => {
    const made = await guarded({ additions: 0 }, canary);
    await made.addCluster("c002", "canary");
    const forged = { ...syncRowOf("stolen"), stateSk: stateIndex.sk("Ready", { cluster: "c002", name: "web.app" }) };
    await made.table.write([{ put: forged }]);
    await playOn(made);
    expect(having(made).filter((cluster) => cluster !== "stolen")).toEqual(["c000", "c001"]);
    expect(withheld(made)).toMatchObject([{ kind: "additions", names: ["c002"] }]);
  });

  test("an approval is for one set of clusters: another one is asked for again", async () => {
    const made = await guarded({ additions: 0 }, canary);
    await made.addCluster("c002", "canary");
    await playOn(made);
    const [{ hash } = { hash: "" }] = withheld(made);
    await made.addCluster("c003", "canary");
    expect(await approve(made, hash)).toMatchObject({ status: 200 });
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001"]);
    const [other] = withheld(made);
    expect(other?.names).toEqual(["c002", "c003"]);
    const refused = await approve(made, hash);
    expect(refused).toMatchObject({ status: 409, body: { code: "GuardChanged" } });
    expect(refused.body.message).toContain(`--hash ${other?.hash}`);
  });
});

describe("deletions", () => {
  test("a narrower selector waits, and an undone one changes nothing", async () => {
    const made = await guarded({});
    await made.setGroup(pace, web, canary, {});
    await playOn(made);
    expect(having(made)).toHaveLength(10);
    expect(withheld(made)).toMatchObject([{ kind: "deletions", count: 8, allowed: 0, members: 10 }]);
    await revise(made, "bbb");
    await playOn(made);
    expect((await made.sync("c000"))?.desired.revision).toContain("bbb");
    expect((await made.sync("c009"))?.desired.revision).toContain("aaa");
    await made.setGroup(pace, web, { all: true }, {});
    await playOn(made);
    expect((await made.sync("c009"))?.desired.revision).toContain("bbb");
    expect(withheld(made)).toEqual([]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("an approved one lets the clusters leave", async () => {
    const made = await guarded({});
    await made.setGroup(pace, web, canary, {});
    await playOn(made);
    await approve(made, withheld(made)[0]?.hash ?? "");
    await playOn(made);
    expect(having(made)).toEqual(["c000", "c001"]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a cluster that is not registered any more leaves, whatever the guard says", async () => {
    const made = await guarded({});
    await made.removeCluster("c009");
    await playOn(made);
    expect(withheld(made)).toEqual([]);
    expect((await made.group()).status.clusters).toMatchObject({ selected: 9 });
  });

  test("a cluster that is not registered any more counts for those that leave after it", async () => {
    const made = await guarded({ deletions: 3 });
    for (const name of ["c008", "c009"]) {
      await made.removeCluster(name);
      await playOn(made);
    }
    const without = (values: readonly string[]) => ({
      selector: { matchExpressions: [{ key: "ring", operator: "NotIn", values }] },
    });
    await made.setGroup(pace, web, without(["canary"]), { deletions: 3 });
    await playOn(made);
    expect(withheld(made)).toMatchObject([{ count: 2, before: 2, allowed: 3, members: 10 }]);
    expect(having(made)).toContain("c000");
  });

  test("a cluster that is replaced under its name has not left", async () => {
    const made = await guarded({ additions: 0 });
    await made.removeCluster("c009");
    await made.addCluster("c009", "rest", { uid: "anew" });
    await playOn(made);
    expect(withheld(made)).toEqual([]);
    expect(having(made)).toEqual(names(10));
    expect((await made.group()).status.clusters).toMatchObject({ selected: 10 });
  });

  test("ten small edits are one large one", async () => {
    const made = await guarded({ deletions: 3 });
    for (const name of names(10).slice(2)) {
      await made.addCluster(name, "out");
      await made.setGroup(
        pace,
        web,
        { selector: { matchExpressions: [{ key: "ring", operator: "NotIn", values: ["out"] }] } },
        { deletions: 3 },
      );
      await playOn(made);
    }
    expect(having(made)).toEqual(["c000", "c001", "c005", "c006", "c007", "c008", "c009"]);
    expect(withheld(made)).toMatchObject([{ count: 5, before: 3, allowed: 3, members: 10 }]);
  });
});

test("edits while the group is suspended add up, and its resume lets none of them through", async () => {
  const made = await guarded({ deletions: 3 });
  const stayed = { selector: { matchExpressions: [{ key: "ring", operator: "NotIn", values: ["out"] }] } };
  await made.setGroup(pace, web, stayed, { deletions: 3 });
  await made.operate({ suspended: ana(made.now) } as OperationsInput);
  for (const name of names(6).slice(2)) {
    await made.addCluster(name, "out");
    await playOn(made, 3);
  }
  await made.operate({});
  await playOn(made);
  expect(withheld(made)).toMatchObject([{ count: 1, before: 3, allowed: 3, names: ["c005"] }]);
  expect(having(made)).toHaveLength(7);
});

describe("templates", () => {
  test("templates that are dropped one by one add up, and a renamed one is dropped", async () => {
    const many = names(4, "t").map((name) => ({ name, source: "app", path: name }));
    const guard = { deletions: 25 };
    const made = await guarded(guard, { all: true }, many);
    for (const left of [3, 2]) {
      await made.setGroup(pace, many.slice(0, left), { all: true }, guard);
      await playOn(made, 4);
    }
    await made.setGroup(pace, [many[0], { ...many[1], name: "other" }], { all: true }, guard);
    await playOn(made, 4);
    const counts = ["t000", "t001", "t002", "t003", "other"].map((name) => having(made, name).length);
    expect(counts).toEqual([10, 10, 0, 0, 10]);
    expect(withheld(made)).toMatchObject([{ kind: "templates", names: ["t001"], count: 10, before: 20, allowed: 25 }]);
  });

  test("a dropped template stays planned, others go on, and its approval deletes it, once", async () => {
    const made = await guarded({}, { all: true }, two);
    await made.setGroup(pace, web, { all: true }, {});
    await playOn(made);
    expect(having(made, "logs")).toHaveLength(10);
    expect(made.rolloutState().last).toBe(1);
    expect(withheld(made)).toMatchObject([{ kind: "templates", names: ["logs"], count: 10, allowed: 0 }]);
    await revise(made, "bbb");
    await playOn(made);
    expect((await made.sync("c000"))?.desired.revision).toContain("bbb");
    expect((await made.sync("c000", "web.logs"))?.desired.revision).toContain("aaa");

    const [{ hash } = { hash: "" }] = withheld(made);
    await approve(made, hash);
    await playOn(made);
    expect(having(made, "logs")).toEqual([]);
    for (const templates of [two, web]) {
      await made.setGroup(pace, templates, { all: true }, {});
      await playOn(made);
    }
    expect(having(made, "logs")).toHaveLength(10);
    expect(withheld(made)).toMatchObject([{ hash, names: ["logs"] }]);
  });

  test("a template that is put back while it is withheld is no longer asked for", async () => {
    const made = await guarded({}, { all: true }, two);
    for (const templates of [web, two]) {
      await made.setGroup(pace, templates, { all: true }, {});
      await playOn(made);
    }
    expect(withheld(made)).toEqual([]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("the deletion of the group is not withheld", async () => {
    const made = await guarded({}, { all: true }, two);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } } as OperationsInput);
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
  });
});

describe("objects of a Sync", () => {
  const guard = { additions: "100%", objects: "20%" };
  const staged = { ...pace, ...rings };
  const prune = { count: 8, members: 12, allowed: 2, hash: "1f8a90c2d4e5f607" };
  const desired = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster))?.desired;

  /** The canaries are given a second rollout, and would have to prune too much. */
  async function pruning(rollout: object = staged): Promise<PlannerWorld> {
    const made = await worldOf(fleet(), rollout, web, { all: true }, guard);
    await made.rollOut();
    await revise(made, "bbb");
    await refuse(made);
    return made;
  }

  /** The workers of all clusters with a slot refuse to prune. */
  async function refuse(made: PlannerWorld): Promise<void> {
    for (const { cluster } of made.slots())
      await made.observe(cluster, "Failed", { reason: "PruneGuard", guardedPrune: prune });
    await made.plan();
  }

  test("a prune that a worker withholds stops its stage, and its approval lets the rollout prune on every cluster", async () => {
    const made = await pruning();
    expect(made.slots()).toEqual([]);
    expect(made.stageRuns().at(-1)).toMatchObject({ stage: "canary", phase: "Halted" });
    expect(withheld(made)).toMatchObject([
      { kind: "objects", sync: "web.app", names: ["c000", "c001"], rollout: 2, ...prune },
    ]);
    expect((await desired(made, "c005"))?.revision).toContain("aaa");

    expect(await approve(made, prune.hash)).toMatchObject({ status: 200 });
    await playOn(made);
    expect(withheld(made)).toEqual([]);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    for (const cluster of ["c000", "c005"])
      expect(await desired(made, cluster)).toMatchObject({ objectBounds: ["20%"], mayPrune: [prune.hash] });
  });

  test("a rollout of which a prune is withheld does not go back by itself, and other failures take it back", async () => {
    const made = await pruning({ ...staged, onFailure: "rollback" });
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    const { phase, message } = made.stageRun("canary");
    expect(phase).toBe("Halted");
    expect(message).toMatch(/; onFailure does not take it back, because the guard withholds what it prunes$/);
    await approve(made, prune.hash);
    await made.plan();
    for (const { cluster } of made.slots()) await made.observe(cluster, "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "3 (3)", rest: "1" });
  });

  test("an approval is for one rollout: the next one asks again, and forgets the one before", async () => {
    const made = await pruning();
    await approve(made, prune.hash);
    await playOn(made);
    await revise(made, "ccc");
    expect(await desired(made, "c000")).not.toHaveProperty("mayPrune");
    await refuse(made);
    expect(withheld(made)).toMatchObject([{ rollout: 3, names: ["c000", "c001"] }]);
    await revise(made, "ddd");
    await playOn(made);
    expect(withheld(made)).toEqual([]);
    expect(made.rolloutState().guard).not.toHaveProperty("mayPrune");
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a turn without such a prune ends the wait of its cluster", async () => {
    const made = await pruning();
    await made.operate({ gates: [{ ...ana(made.now), number: 1, verb: "retry" }] } as OperationsInput);
    await made.plan();
    await made.finish("c000");
    await made.plan();
    expect(withheld(made)).toMatchObject([{ names: ["c001"] }]);
  });

  test("a bound that an edit raises is in force until the end of its window", async () => {
    const made = await worldOf(fleet(), pace, web, { all: true }, guard);
    await made.rollOut();
    await made.setGroup(pace, web, { all: true }, { ...guard, objects: "100%" });
    await revise(made, "bbb");
    expect((await desired(made, "c000"))?.objectBounds).toEqual(["100%", "20%"]);
    await playOn(made);
    made.advanceClock(90_000);
    await revise(made, "ccc");
    expect((await desired(made, "c000"))?.objectBounds).toEqual(["100%"]);
  });

  test("a rollback prunes what it has to", async () => {
    const made = await worldOf(fleet(), pace, web, { all: true }, guard);
    await made.rollOut();
    await revise(made, "bbb");
    await playOn(made);
    const api = apiFixture(made.table);
    expect(await api.call("POST", `${path}/rollback`, { reason: "INC-1" })).toMatchObject({ status: 200 });
    await made.plan();
    expect(await desired(made, "c000")).toMatchObject({ rollout: 3 });
    expect(await desired(made, "c000")).not.toHaveProperty("objectBounds");
  });

  describe("a prune that a check finds on a cluster without a turn", () => {
    /** The inventories of two clusters were lost, and are rebuilt with objects that git does not have. */
    async function checked(): Promise<PlannerWorld> {
      const made = await worldOf(fleet(), staged, web, { all: true }, guard);
      await made.rollOut();
      for (const cluster of ["c004", "c005"])
        await made.observe(cluster, "Failed", { reason: "PruneGuard", guardedPrune: prune });
      await made.plan();
      return made;
    }

    const overview = async (made: PlannerWorld) => (await apiFixture(made.table).call("GET", `${path}/rollout`)).body;

    test("the overview shows it with its command, and an approval gives its clusters another turn, once", async () => {
      const made = await checked();
      const shown = await overview(made);
      expect(shown.status.withheld).toMatchObject([{ kind: "objects", names: ["c004", "c005"], ...prune }]);
      expect(shown.status.waits).toContainEqual(
        expect.objectContaining({
          reason: "guard",
          clusters: { count: 2, names: ["c004", "c005"] },
          clear: [{ verb: "approveGuard", hash: prune.hash }],
        }),
      );
      const refused = await approve(made, "0000000000000000");
      expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining(prune.hash) } });

      expect(await approve(made, prune.hash)).toMatchObject({ status: 200, body: { approved: { kind: "objects" } } });
      await made.plan();
      expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c004", "c005"]);
      expect(await desired(made, "c004")).toMatchObject({ attempt: 2, mayPrune: [prune.hash] });
      expect(await desired(made, "c003")).toMatchObject({ attempt: 1 });
      await playOn(made);
      expect((await overview(made)).status).not.toHaveProperty("withheld");
      expect(await desired(made, "c004")).toMatchObject({ attempt: 2 });
    });

    test("a guard that was removed meanwhile withholds it no longer, and its approval ends the wait as well", async () => {
      const made = await checked();
      await made.setGroup(staged, web);
      await made.plan();
      made.advanceClock(90_000);
      await made.plan();
      expect(made.rolloutState().guard).toBeUndefined();
      expect(await approve(made, prune.hash)).toMatchObject({ status: 200 });
      for (let round = 0; round < 3; round++) await playOn(made);
      expect(await desired(made, "c004")).toMatchObject({ attempt: 2 });
      made.advanceClock(90_000);
      await made.plan();
      expect(made.rolloutState().guard).toBeUndefined();
    });
  });

  test("a guard has a bound of its own, and a group without a guard has none", async () => {
    const plain = await guarded({});
    expect((await desired(plain, "c000"))?.objectBounds).toEqual(["50%"]);
    const free = await worldOf(fleet(), pace, web, { all: true });
    await free.rollOut();
    expect(await desired(free, "c000")).not.toHaveProperty("objectBounds");
  });
});

describe("a document that is applied", () => {
  const document = (spec: object) => ({
    apiVersion: "starling.dev/v1alpha1",
    kind: "SyncGroup",
    metadata: { name: owner.name, namespace: owner.namespace },
    spec: { clusters: { all: true }, templates: web, rollout: pace, guard: {}, ...spec },
  });

  async function apply(made: PlannerWorld, spec: object, more: object = {}) {
    const api = apiFixture(made.table, made.table, made.blobs);
    api.setNow(made.now.toISOString());
    return api.call("POST", "/v1/apply", { documents: [document(spec)], ...more });
  }

  test("a dry run gives the hash; the write is refused without it, and the planner does not ask again", async () => {
    const made = await guarded({}, { all: true }, two);
    const change = { clusters: canary };
    const { body } = await apply(made, change, { dryRun: true });
    const hashes = body.consequences.flatMap(({ guardHash = [] }) => guardHash);
    expect(hashes).toHaveLength(2);
    const before = await made.group();
    const refused = await apply(made, change, { confirm: true, guardHashes: hashes.slice(1) });
    expect(refused).toMatchObject({ status: 409, body: { code: "ConfirmationRequired" } });
    expect(await made.group()).toEqual(before);
    expect(await apply(made, change, { confirm: true, guardHashes: hashes })).toMatchObject({ status: 200 });
    await playOn(made);
    expect(withheld(made)).toEqual([]);
    expect(having(made)).toEqual(["c000", "c001"]);
    expect(having(made, "logs")).toEqual([]);
  });

  test("a dropped template is asked about once: by the guard, and with no question of its own beside it", async () => {
    const made = await guarded({}, { all: true }, two);
    const { body } = await apply(made, {}, { dryRun: true });
    expect(body.consequences).toHaveLength(1);
    const [{ guardHash }] = body.consequences;
    expect(await apply(made, {}, { confirm: true })).toMatchObject({ status: 409 });
    expect(await apply(made, {}, { guardHashes: [guardHash] })).toMatchObject({ status: 200 });
    await playOn(made);
    expect(having(made, "logs")).toEqual([]);
  });

  test("a change that is withheld already stops no other edit, and can be approved with it", async () => {
    const made = await guarded({}, { all: true }, two);
    await made.setGroup(pace, web, { all: true }, {});
    await playOn(made);
    const [{ hash } = { hash: "" }] = withheld(made);
    const faster = { rollout: { maxConcurrent: 30 } };
    expect((await apply(made, faster, { dryRun: true })).body.consequences).toBeUndefined();
    expect(await apply(made, faster)).toMatchObject({ status: 200 });
    await playOn(made);
    expect(withheld(made)).toMatchObject([{ hash }]);
    expect(await apply(made, {}, { guardHashes: [hash] })).toMatchObject({ status: 200 });
    await playOn(made);
    expect(having(made, "logs")).toEqual([]);
  });

  test("an edit that removes the guard is asked about by the guard that it removes", async () => {
    const made = await guarded({ additions: 0 }, canary);
    const { body } = await apply(made, { guard: undefined }, { confirm: true });
    expect(body).toMatchObject({ code: "ConfirmationRequired" });
    expect(body.consequences).toMatchObject([{ clusters: 8 }]);
  });

  test("a planner that found one more cluster asks about all of them", async () => {
    const made = await guarded({ additions: 0 }, canary);
    const change = { guard: { additions: 0 } };
    const { body } = await apply(made, change, { dryRun: true });
    const [{ guardHash }] = body.consequences;
    await apply(made, change, { guardHashes: [guardHash] });
    await made.addCluster("c010", "rest");
    await playOn(made);
    expect(withheld(made)).toMatchObject([{ count: 9 }]);
    expect(having(made)).toHaveLength(2);
  });
});
