/** An aggregated API does not answer the real worker: this stops no Sync that does not use the API. */

import type { ClusterFaults } from "@starling/embedded-apiserver";
import { beforeEach, describe, expect, test } from "vitest";
import { stringAt } from "#shared/kube/kube-object.ts";
import { configMap, definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { namesOf, startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

describe("an aggregated API that is down", () => {
  const group = "metrics.example.com";
  const down: ClusterFaults = { unavailableApis: [`v1.${group}`] };
  const withWidget = [configMap("default/kept"), widget(group, "default/w")];

  beforeEach(async () => {
    await worker.world.assign("api", [definition(group)]);
    await worker.world.work();
    await worker.world.assign("web", withWidget);
    await worker.recover(withWidget);
    expect(worker.members()).toContain("Widget w");
  });

  /** The worker discovered the kinds while the API was up, or has never discovered them. */
  describe.each([
    ["knows", true],
    ["does not know", false],
  ] as const)("an API that is down, for a worker that %s its kinds", (_name, warm) => {
    async function fail(): Promise<void> {
      await worker.host.setFaults("c1", down);
      if (!warm) worker.reconnect();
    }

    test("the API that is down stops no Sync that does not use it", async () => {
      const [first, next] = [
        [namespace("other"), configMap("other/a")],
        [namespace("other"), configMap("other/b")],
      ];
      await worker.world.assign("other", first);
      await worker.world.work();
      await fail();
      await worker.world.assign("other", next);
      await worker.world.work();
      expect(await worker.observed("other")).toMatchObject({ phase: "Ready" });
      worker.world.aheadMs += 700_000;
      await worker.world.work();
      expect(await worker.observed("other")).toMatchObject({ phase: "Ready" });
      expect(await worker.recorded("other")).toEqual(namesOf(next));
    });

    test("the Syncs that use the API report it, and their other objects are applied", async () => {
      await fail();
      const more = [...withWidget, configMap("default/more")];
      await worker.world.assign("web", more);
      await worker.world.work();
      expect(await worker.observed()).toMatchObject({
        phase: "Retrying",
        problems: [{ object: "Widget.metrics.example.com default/w" }],
      });
      expect((await worker.observed()).problems[0]?.message).toContain(group);
      expect(worker.members()).toContain("ConfigMap more");
      expect(await worker.recorded()).toContain("Widget w");
      await worker.host.setFaults("c1", {});
      await worker.recover(more);
    });

    test("an object of the API that left the source stays in the inventory, and is removed from it later", async () => {
      await fail();
      const without = withWidget.slice(0, 1);
      await worker.world.assign("web", without);
      await worker.world.work();
      expect((await worker.observed()).phase).toMatch(/^(Applying|Retrying)$/);
      expect(await worker.recorded()).toContain("Widget w");
      await worker.host.setFaults("c1", {});
      await worker.recover(without);
      expect(worker.members()).not.toContain("Widget w");
      expect(await worker.recorded()).toEqual(namesOf(without));
    });

    test("the API that is down delays the deletion of a Sync that uses it, and no object is forgotten", async () => {
      await fail();
      await worker.world.assignDelete("web");
      await worker.world.work();
      expect((await worker.observed()).phase).toMatch(/^(Applying|Retrying)$/);
      expect(await worker.recorded()).toEqual(["Widget w"]);
      expect(
        worker.host.objects("c1").some((object) => stringAt(object, "metadata", "namespace") === "starling-system"),
      ).toBe(true);
      await worker.host.setFaults("c1", {});
      await worker.recover([], { until: "Gone" });
      expect(worker.members()).toEqual(["CustomResourceDefinition widgets.metrics.example.com"]);
    });

    test("a Namespace is kept, because its content is unknown", async () => {
      const [first, next] = [[namespace("other"), configMap("default/a")], [configMap("default/a")]];
      await worker.world.assign("other", first);
      await worker.world.work();
      await fail();
      await worker.world.assign("other", next);
      await worker.world.work();
      const { phase, problems } = await worker.observed("other");
      expect(phase).toMatch(/^(Applying|Retrying)$/);
      expect(problems).toMatchObject([{ object: "Namespace other" }]);
      expect(problems[0]?.message).toContain(group);
      expect(worker.members()).toContain("Namespace other");
    });

    test("an object that cannot be read for a while is neither drift nor gone", async () => {
      await fail();
      worker.world.aheadMs += 700_000;
      await worker.world.work();
      expect((await worker.observed()).phase).toMatch(/^(Verifying|Retrying)$/);
      expect(await worker.observed()).not.toHaveProperty("drift");
      expect(await worker.recorded()).toEqual(namesOf(withWidget));
      await worker.host.setFaults("c1", {});
      await worker.recover(withWidget);
    });
  });
});

describe("an aggregated API that was down when its cluster was first checked", () => {
  test("a Namespace that left the source is kept only as long as the API is down", async () => {
    const { world, host } = worker;
    await world.assign("api", [definition("metrics.example.com")]);
    await world.work();
    await world.assign("web", [namespace("shop"), configMap("shop/a")]);
    await world.work();
    await host.setFaults("c1", { unavailableApis: ["v1.metrics.example.com"] });
    worker.reconnect();
    const isGoing = () =>
      host
        .objects("c1")
        .filter((object) => stringAt(object, "kind") === "Namespace" && stringAt(object, "metadata", "name") === "shop")
        .some((object) => stringAt(object, "metadata", "deletionTimestamp") !== undefined);
    await world.assign("web", [configMap("default/a")]);
    await world.work();
    expect(await worker.recorded()).toContain("Namespace shop");
    expect(isGoing()).toBe(false);
    await host.setFaults("c1", {});
    world.aheadMs += 700_000;
    await world.work();
    expect(isGoing()).toBe(true);
  });
});
