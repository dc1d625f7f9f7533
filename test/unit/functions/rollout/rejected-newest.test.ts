import { expect, test } from "vitest";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

test("the first stage takes nothing older when the newest rollout is rejected after a release", async () => {
  const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5 });
  await made.rollOut();
  const ask = async (verb: string, body: object) => {
    const api = apiFixture(made.table);
    api.setNow(made.now.toISOString());
    const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${verb}`;
    expect(await api.call("POST", path, body)).toMatchObject({ status: 200 });
  };
  await ask("hold", { reason: "INC-1" });
  for (const commit of ["bbb", "ccc"]) await revise(made, commit);
  await ask("reject", { rollout: 3, reason: "bad" });
  await begin(made);
  await ask("release", {});
  await playOn(made);
  expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  await revise(made, "ddd");
  await playOn(made);
  expect(made.stages()).toEqual({ canary: "4", rest: "4" });
});
