import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const source = keys.object(owner.namespace, "Source", "app");
const setSchema = (made: PlannerWorld, schema: number) => made.table.write([{ update: source, set: { schema } }]);

/** `a` has a slot, and its worker stands still. */
async function suspended(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
  await begin(made);
  await made.operate({ suspended: ana(made.now) });
  await made.plan();
  return made;
}

/** Clusters whose workers were told to go on. */
async function resume(made: PlannerWorld): Promise<readonly string[]> {
  await made.operate({ resumed: ana(made.now) });
  return told(made);
}

async function told(made: PlannerWorld): Promise<readonly string[]> {
  made.sender.take();
  await made.plan();
  return made.sender.take().flatMap((message) => (message.to === "apply" ? [message.cluster] : []));
}

describe("a resume wakes the clusters whose work stood still, once,", () => {
  test("while nothing can be rolled out", async () => {
    const made = await suspended();
    await made.table.write([{ delete: source }]);
    expect(await told(made)).toEqual([]);
    expect(await resume(made)).toEqual(["a"]);
    expect(await told(made)).toEqual([]);
  });

  test("while what it takes to plan cannot be read", async () => {
    const made = await suspended();
    await setSchema(made, rowSchema + 1);
    expect(await told(made)).toEqual([]);
    expect(await resume(made)).toEqual(["a"]);
    expect(await told(made)).toEqual([]);
  });

  test("of a suspension that nobody planned meanwhile", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.operate({ suspended: ana(made.now) });
    expect(await resume(made)).toEqual(["a"]);
    expect(await told(made)).toEqual([]);
  });
});
