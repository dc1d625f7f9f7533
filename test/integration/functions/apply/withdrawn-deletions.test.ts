/** A deletion that is withdrawn is not carried out, even if it was queued or begun. */
import { expect, test } from "vitest";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { namesOf, startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startClusterWorker);
const objects = [namespace("shop"), configMap("shop/a"), configMap("shop/b")];

const deletes = () => worker.host.requests().filter(({ method }) => method === "DELETE");

async function check(seconds: number): Promise<void> {
  worker.world.aheadMs += seconds * 1000;
  await worker.world.work();
}

test("a withdrawn deletion that has not begun deletes nothing, and is reported to the planner", async () => {
  const { world } = worker;
  await world.assign("web", objects);
  await world.work();
  await world.assignDelete("web");
  await world.withdrawDeletion("web");
  for (let minute = 0; minute < 30; minute++) await check(60);
  expect(deletes()).toEqual([]);
  expect(worker.members()).toEqual(namesOf(objects));
  expect((await world.sync("web"))?.observed).toMatchObject({ phase: "Applying", reason: "Withdrawn" });
  expect(world.sender.take().filter(({ to }) => to === "report")).not.toEqual([]);

  await world.assign("web", objects);
  await check(1);
  expect(await world.phase("web")).toBe("Ready");
  expect(deletes()).toEqual([]);
});

test("a withdrawn deletion that has begun goes no further, and deleted objects are made again", async () => {
  const { world, host } = worker;
  await world.assign("web", objects);
  await world.work();
  await world.assignDelete("web");
  await host.setFaults("c1", { errors: { status: 503, methods: ["DELETE"], pathIncludes: "/configmaps/b" } });
  await check(1);
  expect((await world.sync("web"))?.observed).not.toMatchObject({ phase: "Gone" });
  await host.setFaults("c1", {});
  const begun = deletes().length;
  expect(begun).toBeGreaterThan(0);
  await world.withdrawDeletion("web");
  for (let minute = 0; minute < 30; minute++) await check(60);
  expect(deletes()).toHaveLength(begun);
  await world.assign("web", objects);
  await check(1);
  expect(worker.members()).toEqual(namesOf(objects));
});

test("a deletion whose owner is deleted, too, is carried out", async () => {
  const { world } = worker;
  await world.setOwner("web", {});
  await world.assign("web", objects);
  await world.work();
  await world.assignDelete("web");
  await check(1);
  expect(worker.members()).not.toContain("ConfigMap a");
});
