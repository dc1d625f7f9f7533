/** Looks that get to see, or to put back, a part of what they came for. */
import { expect, test } from "vitest";
import { clusterFixture, configMap, definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { startPatientWorker } from "#test/support/troubled-worker.ts";

const worker = forEachTest(startPatientWorker);

async function lookLater(): Promise<void> {
  worker.world.aheadMs += 700_000;
  await worker.world.work();
}

test("kinds that cannot be compared are told, the first by its name and the others by their number", async () => {
  const groups = ["metrics.example.com", "others.example.com"];
  await worker.world.assign("api", [...groups.map((group) => definition(group))]);
  await worker.world.work();
  worker.reconnect();
  await worker.world.assign("web", [configMap("default/c"), ...groups.map((group) => widget(group, "default/w"))]);
  await worker.world.work();
  worker.reconnect();
  const told: unknown[] = [];
  for (const down of [groups.slice(0, 1), groups]) {
    await worker.host.setFaults("c1", { unavailableApis: down.map((group) => `v1.${group}`) });
    await lookLater();
    const drifted = (await worker.observed()).conditions.find(({ type }) => type === "Drifted");
    expect(drifted).toMatchObject({ status: "Unknown", reason: "NotCompared" });
    told.push(drifted?.message.replace(/ could not be compared: .*/s, ""));
  }
  expect(told).toEqual(["Widget", "Widget and 1 more kinds"]);
});

test("a correction in the middle of which nobody is let in any more says so, and is made later", async () => {
  const path = "/api/v1/namespaces/shop/configmaps/c";
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work();
  const cluster = clusterFixture({ endpoint: worker.endpoint });
  await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "edited" } } });
  const body = { kind: "Status", status: "Failure", code: 401, reason: "Unauthorized", message: "Unauthorized" };
  worker.host.intercept((request) =>
    request.method === "PATCH" && request.path.includes("/configmaps/c") ? { status: 401, body } : "pass",
  );
  await lookLater();
  expect(await worker.observed()).toMatchObject({ phase: "Unreachable", drift: { objects: 1, corrected: false } });
  expect((await cluster.raw("GET", path)).data).toEqual({ k: "edited" });
  worker.host.intercept(undefined);
  await lookLater();
  // One that answers again is given another attempt by the planner.
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
  await cluster.stop();
});
