import { describe, expect, test } from "vitest";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("warnings of $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  const endpoints = (name: string) =>
    manifest({ apiVersion: "v1", kind: "Endpoints", metadata: { name, namespace: "warned" } });

  test("warnings are reported once each, and kept until a rendering causes none", async () => {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    const warnings = [
      {
        object: "Endpoints warned/a and 1 more",
        message: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
      },
    ];
    await world.assign("warned", [namespace("warned"), endpoints("a"), endpoints("b")]);
    await world.work();
    expect((await world.sync("warned"))?.observed).toMatchObject({ phase: "Ready", warnings });

    // A check applies nothing, and a correction repeats the warning.
    world.sender.take();
    for (const drift of [false, true]) {
      const path = "/api/v1/namespaces/warned/endpoints/a";
      if (drift) await cluster.raw("DELETE", path);
      world.aheadMs += 700_000;
      await world.work();
      expect((await world.sync("warned"))?.observed?.warnings).toEqual(warnings);
      if (!drift) expect(world.sender.take().filter(({ to }) => to === "report")).toEqual([]);
    }

    await world.assign("warned", [namespace("warned"), configMap("warned/c")]);
    await world.work();
    expect(await world.phase("warned")).toBe("Ready");
    expect((await world.sync("warned"))?.observed).not.toHaveProperty("warnings");
  });
});
