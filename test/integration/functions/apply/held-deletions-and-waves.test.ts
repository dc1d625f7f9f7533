/** An object whose deletion a finalizer holds is reported before a later wave is applied; it delays no wave. */
import { describe, expect, test } from "vitest";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace, widget } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

function inWave(object: ManifestObject, wave: number): ManifestObject {
  return { ...object, metadata: { ...object.metadata, annotations: { "argocd.argoproj.io/sync-wave": String(wave) } } };
}

describe.each(clusterTargets)("an object whose deletion a finalizer holds, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  const path = (ns: string, name: string) => `/api/v1/namespaces/${ns}/configmaps/${name}`;
  const finalize = (ns: string, finalizers: readonly string[] | null) =>
    cluster.raw("PATCH", path(ns, "old"), { as: "merge-patch", body: { metadata: { finalizers } } });
  const versionOf = async (ns: string, name: string) =>
    stringAt(await cluster.raw("GET", path(ns, name)), "data", "version");

  /** A Sync with an object that git no longer has, and that is being deleted. */
  async function begun(ns: string) {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    const waves = (version: string) => [
      namespace(ns),
      configMap(`${ns}/first`, { version }),
      inWave(configMap(`${ns}/second`, { version }), 1),
    ];
    await world.assign(ns, [...waves("1"), configMap(`${ns}/old`)]);
    await world.work();
    expect(await world.phase(ns)).toBe("Ready");
    await finalize(ns, ["example.com/hold"]);
    await world.assign(ns, waves("2"));
    await world.work();
    const held = {
      object: `ConfigMap ${ns}/old`,
      reason: "Terminating",
      message: "it is being deleted, held by example.com/hold",
    };
    const observed = async () => (await world.sync(ns))?.observed;
    expect(await observed()).toMatchObject({ phase: "Applying", reason: "Pruning", problems: [held] });
    return { world, waves, held, observed };
  }

  test("the held object is reported before a later wave is applied, and the wave follows", async () => {
    const ns = "reported-first";
    const { world, waves, held, observed } = await begun(ns);
    await world.assign(ns, waves("3"));
    await world.work();
    expect(await observed()).toMatchObject({ attempt: 3, phase: "Applying", reason: "StepNotReady", problems: [held] });
    expect([await versionOf(ns, "first"), await versionOf(ns, "second")]).toEqual(["3", "2"]);
    world.aheadMs += 5_000;
    await world.work();
    expect(await versionOf(ns, "second")).toBe("3");
    expect(await observed()).toMatchObject({ phase: "Applying", reason: "Pruning", problems: [held] });
    await finalize(ns, null);
    for (const phase of ["Verifying", "Ready"]) {
      world.aheadMs += 35_000;
      await world.work();
      expect(await observed()).toMatchObject({ phase, problems: [] });
    }
  });

  test("the held object is reported beside the objects that a wave waits for", async () => {
    const ns = "reported-beside";
    const { world, waves, held, observed } = await begun(ns);
    await world.assign(ns, [...waves("3"), deployment(`${ns}/db`)]);
    for (const seconds of [0, 5, 15]) {
      world.aheadMs += seconds * 1_000;
      await world.work();
      const { problems = [], reason } = (await observed()) ?? {};
      expect([reason, problems.map(({ object }) => object)]).toEqual([
        "StepNotReady",
        [`Deployment ${ns}/db`, held.object],
      ]);
    }
    expect(await versionOf(ns, "second")).toBe("2");
    await finalize(ns, null);
    world.aheadMs += 15_000;
    await world.work();
    expect((await observed())?.problems).toMatchObject([{ object: `Deployment ${ns}/db` }]);
  });

  test("the held object is reported once, and the retries of a later wave that fails grow rarer", async () => {
    const ns = "reported-once";
    const { world, waves, observed } = await begun(ns);
    await world.assign(ns, [...waves("3"), inWave(widget("nowhere.example.com", `${ns}/w`), 1)]);
    const seen: unknown[] = [];
    for (let check = 0; check < 8; check++) {
      await world.work();
      const { reason, nextAt = "" } = (await observed()) ?? {};
      seen.push(reason);
      world.aheadMs += Math.max(0, Date.parse(nextAt) - world.clock.now().getTime()) + 1;
    }
    expect(seen).toEqual(["StepNotReady", ...Array.from({ length: 7 }, () => "ApplyFailed")]);
    expect((await observed())?.tries).toBe(6);
    await finalize(ns, null);
  });

  test("an object that is deleted before the next check is not reported", async () => {
    const ns = "gone-by-then";
    const { world, waves, observed } = await begun(ns);
    await finalize(ns, null);
    await world.assign(ns, waves("3"));
    await world.work();
    expect(await observed()).toMatchObject({ attempt: 3, phase: "Ready", problems: [] });
  });
});
