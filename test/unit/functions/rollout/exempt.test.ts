/** Exemptions: a group changes outside its windows until a time. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { begin, playOn, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const hour = 3600;
const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, method: string, to: string, body: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  return api.call(method, to, body);
}

function hoursFrom(made: PlannerWorld, hours: number): string {
  return new Date(made.now.getTime() + hours * hour * 1000).toISOString();
}

async function applyWindow(made: PlannerWorld, name: string, times: object): Promise<void> {
  const spec = { clusters: { all: true }, ...times };
  const document = { apiVersion: "starling.dev/v1alpha1", kind: "Window", metadata: { name }, spec };
  expect(await ask(made, "POST", "/v1/apply", { documents: [document] })).toMatchObject({ status: 200 });
}

async function exempt(made: PlannerWorld, hours: number, more: object = {}): Promise<void> {
  const body = { reason: "INC-1", until: hoursFrom(made, hours), ...more };
  expect(await ask(made, "POST", `${path}/exempt`, body)).toMatchObject({ status: 200 });
}

/** The group waits for its window, which opens 5 hours from now. */
async function closedGroup(clusters: readonly string[] = ["c1"]): Promise<PlannerWorld> {
  const made = await worldOf(clusters, { maxConcurrent: 5, progressDeadline: "3h" });
  await applyWindow(made, "night", { allow: [{ start: hoursFrom(made, 5), end: hoursFrom(made, 6) }] });
  await begin(made);
  expect(made.slots()).toEqual([]);
  return made;
}

describe("an exemption", () => {
  test("a group that waits for its window starts, and its rows are left alone by older planners", async () => {
    const made = await closedGroup();
    await exempt(made, 2);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Assigned" });
    expect((await made.group()).schema).toBe(newestRowSchema);
    await playOn(made);
    expect(made.states()).toEqual({ c1: "Succeeded" });
  });

  test("an attempt that no worker has begun at its end waits for the next opening", async () => {
    const made = await closedGroup();
    await exempt(made, 2);
    await made.plan();
    expect((await made.sync("c1"))?.desired.beginBefore).toBe(hoursFrom(made, 2));
    made.advanceClock(2 * hour + 120);
    await made.plan();
    expect((await made.sync("c1"))?.paused).toMatchObject({ window: true });
    expect(made.stageRun("all").holds).toEqual([{ cause: "window", name: "night", clusters: [0] }]);
    made.advanceClock(3 * hour);
    await playOn(made);
    expect(made.states()).toEqual({ c1: "Succeeded" });
  });

  test("an exemption that ends while the window is open ends nothing", async () => {
    const made = await closedGroup();
    await exempt(made, 5.5);
    await made.plan();
    expect((await made.sync("c1"))?.desired.beginBefore).toBe(hoursFrom(made, 6));
  });

  test("an exemption from one window leaves the others in force", async () => {
    const made = await closedGroup();
    await applyWindow(made, "year-end", { deny: [{ start: hoursFrom(made, 1), end: hoursFrom(made, 9) }] });
    await exempt(made, 4, { windows: ["night"] });
    await made.plan();
    expect((await made.sync("c1"))?.desired.beginBefore).toBe(hoursFrom(made, 1));
    const denied = await closedGroup();
    await applyWindow(denied, "year-end", { deny: [{ start: hoursFrom(denied, -1), end: hoursFrom(denied, 9) }] });
    await exempt(denied, 4, { windows: ["night"] });
    await denied.plan();
    expect(denied.stageRun("all").holds).toEqual([{ cause: "window", name: "year-end", clusters: [0] }]);
  });

  test("unexempt ends it: what is not assigned yet waits for the window again", async () => {
    const made = await closedGroup();
    await exempt(made, 2);
    expect(await ask(made, "POST", `${path}/unexempt`, {})).toMatchObject({ body: { outcome: "configured" } });
    await made.plan();
    expect(made.slots()).toEqual([]);
    expect(await ask(made, "POST", `${path}/unexempt`, {})).toMatchObject({ body: { outcome: "unchanged" } });
  });

  test("a cluster that joins catches up outside its window", async () => {
    const made = await worldOf(["c1"], { maxConcurrent: 5 });
    await made.rollOut();
    await applyWindow(made, "night", { allow: [{ start: hoursFrom(made, 5), end: hoursFrom(made, 6) }] });
    await made.addCluster("j1", "all");
    await begin(made);
    expect(await made.sync("j1")).toBeUndefined();
    await exempt(made, 1);
    await playOn(made);
    expect((await made.sync("j1"))?.desired.revision).toContain("aaa");
  });

  test.each([
    ["one without a reason", { reason: undefined }, "reason"],
    ["one without an end", { until: undefined }, "until"],
    ["one that has ended", { until: "2020-01-01T00:00:00Z" }, "until: 2020-01-01T00:00:00.000Z has passed"],
    ["one from a window that does not exist", { windows: ["nihgt"] }, "there are night"],
    ["one from no window", { windows: [] }, "leave it out for all"],
    ["one with a misspelt field", { window: ["night"] }, "window"],
  ])("the API refuses %s, and names the field", async (_what, more, said) => {
    const made = await closedGroup();
    const body = { reason: "INC-1", until: hoursFrom(made, 2), ...more };
    const answer = await ask(made, "POST", `${path}/exempt`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(said);
    const row = await made.table.get(keys.object(owner.namespace, "SyncGroup", owner.name));
    expect(row?.operations.exempt).toBeUndefined();
  });
});
