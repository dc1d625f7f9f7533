/** A planner of the version before meets clusters whose zone this version found down: they do not fail there. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type MixedWorld, startMixedWorld } from "#test/support/mixed-world.ts";
import { hasVersionBefore } from "#test/support/version-before.ts";

describe.runIf(hasVersionBefore())("beside the version before", () => {
  let mixed: MixedWorld;
  beforeAll(async () => {
    mixed = await startMixedWorld();
  });
  afterAll(() => mixed.close());

  test("a cluster whose zone is down does not fail there, and catches up with this version", async () => {
    const { world } = mixed;
    await mixed.begin("c1", "c2");
    const home = mixed.workersOf("home");
    await Promise.all(home.map((source) => source.pause()));
    const second = await mixed.push("blue");
    await world.waitFor(
      "home is found down",
      async () => (await world.group("web")).status.clusters?.unreachable === 2,
    );
    mixed.run((folder) => ["rollout", "apply", "report"].includes(folder));
    for (const source of home) source.resume();
    await world.waitFor("the version before was called", async () =>
      ["rollout", "apply"].every((folder) => mixed.calls().filter((call) => call.folder === folder).length > 3),
    );
    expect((await world.group("web")).status.clusters).toMatchObject({ failed: 0, unreachable: 2 });
    const rows = (await world.rows()).filter((row) => row.type === "SyncOnCluster") as unknown as readonly SyncRow[];
    expect(rows.map(({ stateSk }) => stateSk)).toEqual(["Unreachable#c1#web.web", "Unreachable#c2#web.web"]);
    mixed.run(() => false);
    await world.untilInSync("web", second);
  });
});
