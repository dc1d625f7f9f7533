import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const source = keys.object(owner.namespace, "Source", "app");
const setSchema = (made: PlannerWorld, schema: number) => made.table.write([{ update: source, set: { schema } }]);

/** `a` has a slot, and its worker does nothing during the suspension. */
async function suspended(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
  await begin(made);
  await made.operate({ suspended: ana(made.now) });
  await made.plan();
  return made;
}

/** @returns the clusters whose workers are woken by the resume. */
async function resume(made: PlannerWorld): Promise<readonly string[]> {
  await made.operate({ resumed: ana(made.now) });
  return wokenByPlan(made);
}

async function wokenByPlan(made: PlannerWorld): Promise<readonly string[]> {
  made.sender.take();
  await made.plan();
  return made.sender.take().flatMap((message) => (message.to === "apply" ? (message.cluster ?? []) : []));
}

describe("a resume of a group with a slot", () => {
  test("a resume wakes the slot's worker once, although nothing can be rolled out", async () => {
    const made = await suspended();
    await made.table.write([{ delete: source }]);
    expect(await wokenByPlan(made)).toEqual([]);
    expect(await resume(made)).toEqual(["a"]);
    expect(await wokenByPlan(made)).toEqual([]);
  });

  test("a resume wakes the slot's worker once, although the Source is unreadable", async () => {
    const made = await suspended();
    await setSchema(made, newestRowSchema + 1);
    expect(await wokenByPlan(made)).toEqual([]);
    expect(await resume(made)).toEqual(["a"]);
    expect(await wokenByPlan(made)).toEqual([]);
  });

  test("a resume wakes the slot's worker once, also when the planner was not called during the suspension", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.operate({ suspended: ana(made.now) });
    expect(await resume(made)).toEqual(["a"]);
    expect(await wokenByPlan(made)).toEqual([]);
  });
});
