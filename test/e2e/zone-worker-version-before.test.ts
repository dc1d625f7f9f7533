/** Workers of the version before in a zone leave its clusters alone until they are deployed, and so do its planner and timer. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type MixedWorld, startMixedWorld } from "#test/support/mixed-world.ts";
import { hasVersionBefore } from "#test/support/version-before.ts";

/** The functions of `home` that choose clusters. */
const choosing = ["rollout", "tick", "report"];

describe.runIf(hasVersionBefore())("beside the version before", () => {
  let mixed: MixedWorld;
  beforeAll(async () => {
    mixed = await startMixedWorld();
  });
  afterAll(() => mixed.close());

  const syncOf = async (cluster: string) =>
    (await mixed.world.rows()).find((row) => row.type === "SyncOnCluster" && row.pk === keys.cluster(cluster).pk) as
      | SyncRow
      | undefined;

  test("its workers in a zone read no row of the zone's clusters, give nothing back, and the clusters catch up after their deployment", async () => {
    const { world } = mixed;
    await mixed.begin("c1", "s1");
    const row = (await world.rows()).find((each) => keyText(each) === keyText(keys.cluster("s1")));
    expect(row).toMatchObject({ schema: newestRowSchema });
    mixed.run((folder, zone) => folder === "apply" && zone === "spoke");
    mixed.forget();
    const observed = (await syncOf("s1"))?.observed;
    const second = await mixed.push("blue");
    await world.waitFor(
      "the zone is found down",
      async () => (await world.group("web")).status.clusters?.unreachable === 1,
    );
    expect((await world.group("web")).status.clusters).toMatchObject({ failed: 0, unreachable: 1 });
    const { id } = await world.session.call<{ readonly id: string }>("POST", "/v1/zones/spoke/check");
    await world.waitFor("the check was taken", async () =>
      mixed.calls().some(({ messages }) => messages.some((body) => body.includes('"zone"'))),
    );
    // It wrote nothing: neither to the cluster, nor to the rows of the Sync, nor an answer.
    expect(mixed.requestsTo("s1")).toEqual([]);
    expect((await syncOf("s1"))?.observed).toEqual(observed);
    const check = await world.session.call<{ readonly answer?: { readonly id: string } }>(
      "GET",
      "/v1/zones/spoke/check",
    );
    expect(check.answer?.id).not.toBe(id);
    // Each message was consumed: none returns, and none becomes a dead letter.
    expect(mixed.thrown).toEqual([]);
    expect(mixed.calls().length).toBeGreaterThan(1);
    expect(mixed.calls().filter(({ returned }) => returned > 0)).toEqual([]);
    expect(await mixed.deadLetters()).toBe(0);
    mixed.run(() => false);
    await world.untilInSync("web", second);
  });

  test("its planner and timer leave the clusters of zones to the next deployment, beside workers of this version", async () => {
    const { world } = mixed;
    mixed.run((folder) => choosing.includes(folder));
    mixed.forget();
    const synced = await syncOf("s1");
    const third = await mixed.push("green");
    await world.waitFor("they were called", async () =>
      ["rollout", "tick"].every((folder) => mixed.calls().filter((call) => call.folder === folder).length > 5),
    );
    const now = await syncOf("s1");
    expect(now?.desired).toEqual(synced?.desired);
    expect(now?.observed?.phase).toBe("Ready");
    expect(mixed.requestsTo("s1").filter(({ method }) => method !== "GET")).toEqual([]);
    mixed.run(() => false);
    await world.untilInSync("web", third);
  });
});
