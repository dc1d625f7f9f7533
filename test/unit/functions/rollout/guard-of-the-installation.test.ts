/** The installation's guard is in force for groups that have no guard of their own. */
import { expect, test } from "vitest";
import { guardSchema } from "#shared/fleet/kinds/guard-spec.ts";
import { having, names, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const pace = { maxConcurrent: 20 };
const canary = { selector: { matchLabels: { ring: "canary" } } };
const two = [...web, { name: "logs", source: "app", path: "logs" }];
const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

/** Ten clusters, of which two are canaries, and a group that has been rolled out to all of them. */
async function rolledOut(defaultGuard: object | undefined, own?: object, templates: readonly unknown[] = web) {
  const fleet = Object.fromEntries(names(10).map((name, index) => [name, index < 2 ? "canary" : "rest"]));
  const made = await worldOf(fleet, pace, templates, { all: true }, own);
  made.defaultGuard = defaultGuard && guardSchema.parse(defaultGuard);
  await made.rollOut();
  await made.plan();
  return made;
}

const withheld = (made: PlannerWorld) => made.rolloutState().guard?.withheld ?? [];

function apiOf(made: PlannerWorld) {
  const api = apiFixture(made.table, made.table, made.blobs, { defaultGuard: made.defaultGuard });
  api.setNow(made.now.toISOString());
  return api;
}

test("clusters leave a group without a guard of its own when somebody has approved it", async () => {
  const made = await rolledOut({});
  await made.setGroup(pace, web, canary);
  await playOn(made);
  expect(having(made)).toHaveLength(10);
  expect(withheld(made)).toMatchObject([{ kind: "deletions", count: 8, allowed: 0 }]);
  expect((await made.group()).spec).not.toHaveProperty("guard");
  const { hash } = withheld(made)[0] ?? {};
  expect(await apiOf(made).call("POST", `${path}/approve-guard`, { hash, reason: "reviewed" })).toMatchObject({
    status: 200,
  });
  await playOn(made);
  expect(having(made)).toEqual(["c000", "c001"]);
  expect((await made.group()).status.state).toBe("Complete");
});

test("a dropped template stays until somebody has approved it, and new revisions go on", async () => {
  const made = await rolledOut({}, undefined, two);
  await made.setGroup(pace, web, { all: true });
  await revise(made, "bbb");
  await playOn(made);
  expect([...having(made), ...having(made, "logs")]).toHaveLength(20);
  expect(withheld(made)).toMatchObject([{ kind: "templates", names: ["logs"] }]);
  expect((await made.sync("c000"))?.desired.revision).toContain("bbb");
});

test("assignments have its bound of objects", async () => {
  const made = await rolledOut({ objects: "20%" });
  expect((await made.sync("c000"))?.desired).toMatchObject({ objectBounds: ["20%"] });
});

test("a group's own guard is in force instead of it", async () => {
  const own = { deletions: "100%" };
  const made = await rolledOut({}, own);
  await made.setGroup(pace, web, canary, own);
  await playOn(made);
  expect(withheld(made)).toEqual([]);
  expect(having(made)).toEqual(["c000", "c001"]);
});

test("an apply asks about what it would withhold", async () => {
  const made = await rolledOut({});
  const document = {
    ...{ apiVersion: "starling.dev/v1alpha1", kind: "SyncGroup" },
    metadata: { name: owner.name, namespace: owner.namespace },
    spec: { clusters: canary, templates: web, rollout: pace },
  };
  const api = apiOf(made);
  const { body } = await api.call("POST", "/v1/apply", { documents: [document], dryRun: true });
  const [{ guardHash }] = body.consequences;
  expect(await api.call("POST", "/v1/apply", { documents: [document], confirm: true })).toMatchObject({ status: 409 });
  expect(await api.call("POST", "/v1/apply", { documents: [document], guardHashes: [guardHash] })).toMatchObject({
    status: 200,
  });
  await playOn(made);
  expect(having(made)).toEqual(["c000", "c001"]);
});

test("an installation that gets a guard withholds what comes after, and one that loses it keeps it for its window", async () => {
  const made = await rolledOut(undefined);
  made.defaultGuard = guardSchema.parse({});
  await playOn(made);
  await made.setGroup(pace, web, canary);
  await playOn(made);
  expect(having(made)).toHaveLength(10);
  made.defaultGuard = undefined;
  await playOn(made);
  expect(having(made)).toHaveLength(10);
  made.advanceClock(25 * 3600);
  await playOn(made);
  expect(having(made)).toEqual(["c000", "c001"]);
});
