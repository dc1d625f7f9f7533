/** A zone whose workers stop: its clusters are unreachable, the others go on, and it catches up by itself. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { EventSourceLoop } from "#local/aws/lambda/event-source-loop.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { beginColoredWeb, coloredFiles } from "#test/support/colored-web.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";

let world: World;
/** The event sources of the zone `spoke`. */
let spoke: readonly EventSourceLoop[];

beforeAll(async () => {
  const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
  world = await startWorld({ faults: quiet, rate: 30, zones: JSON.stringify([{ name: "spoke", ...subnets }]) });
  spoke = world.machine.zones.get("spoke") ?? [];
});
afterAll(() => world.close());

test("a zone that is throttled holds nobody up, fails nothing, and catches up when it is back", async () => {
  expect(spoke).toHaveLength(2);
  await world.join({ name: "c1" }, { name: "s1", zone: "spoke" }, { name: "s2", zone: "spoke" }, { name: "c2" });
  await beginColoredWeb(world, {
    maxConcurrent: 1,
    maxUnreachable: "50%",
    progressDeadline: "3m",
    onFailure: "rollback",
  });
  await Promise.all(spoke.map((source) => source.pause()));
  const second = await world.push("shop", coloredFiles("blue"));
  const left = await world.waitFor("the stage passes without the zone", async () => {
    const group = await world.group("web");
    return group.status.state === "Degraded" && group.status.revision?.endsWith(second) && group;
  });
  expect(left.status.clusters).toMatchObject({ ready: 2, unreachable: 2, failed: 0 });
  const targets = Object.groupBy(await world.targets("web"), ({ state }) => state);
  expect(Object.keys(targets).sort()).toEqual(["Succeeded", "Unreachable"]);
  for (const { reason } of targets.Unreachable ?? [])
    expect(reason).toMatch(/^ZoneDown: zone spoke: no worker has run since /);
  for (const source of spoke) source.resume();
  await world.untilInSync("web", second);
  expect((await world.rollout("web")).status.phase).toBe("Complete");
});
