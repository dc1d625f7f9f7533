/** A hook that moves from one template of a group to another runs anew there, as with each new rendering. */
import { describe, expect, test } from "vitest";
import { stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const soonMs = 70_000;

describe.each(clusterTargets)("a hook that moves between templates of a group, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  test.each(["the deletion", "the new template"] as const)(
    "the hook is run for the renamed template when the worker does %s first",
    async (first) => {
      const space = first === "the deletion" ? "hooks-1" : "hooks-2";
      const [before, after] = first === "the deletion" ? ["a", "b"] : ["b", "a"];
      const [from, to] = [`${space}-${before}`, `${space}-${after}`];
      const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
      const path = `/api/v1/namespaces/${space}/configmaps/hook`;
      const uid = async () => stringAt(await cluster.raw("GET", path), "metadata", "uid");
      const hook = manifest({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { namespace: space, name: "hook", annotations: { "argocd.argoproj.io/hook": "PreSync" } },
      });
      const objects = [hook, configMap(`${space}/settings`)];
      const workOn = async () => {
        for (let turn = 0; turn < 5; turn += 1) {
          await world.work();
          world.aheadMs += soonMs;
        }
      };
      await world.assign(`${space}-space`, [namespace(space)], {}, { group: space });
      await workOn();
      await world.assign(from, objects, {}, { group: space });
      await workOn();
      const made = await uid();
      expect(await world.phase(from)).toBe("Ready");

      await world.assign(to, objects, {}, { group: space });
      await world.assignDelete(from);
      await workOn();
      expect([await world.phase(from), await world.phase(to)]).toEqual(["Gone", "Ready"]);
      expect(await uid()).not.toBe(made);
    },
  );
});
