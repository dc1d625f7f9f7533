/** Requests that do not depend on each other are sent at once, because a distant cluster answers each step late. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Interception } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { parentName } from "#shared/kube/parent-object.ts";
import type { BlobStore } from "#shared/ports.ts";
import { definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);
const longestMs = 5000;

/** Answers no GET whose path has one of `ends` before all of them came. @returns the ends whose GETs came in time. */
function askedTogether(...ends: readonly string[]): ReadonlySet<string> {
  const came = new Set<string>();
  const all = Promise.withResolvers<void>();
  worker.host.intercept(async ({ method, path, phase }): Promise<Interception> => {
    const end = ends.find((each) => path.replace(/\?.*/, "").endsWith(each));
    if (method !== "GET" || phase !== "before" || end === undefined) return "pass";
    came.add(end);
    if (came.size === ends.length) all.resolve();
    await Promise.race([all.promise, sleep(longestMs, undefined, { ref: false }).then(() => came.clear())]);
    return "pass";
  });
  return came;
}

test("the worker reads the rendering and the last inventory at the same time", async () => {
  await worker.world.assign("web", [namespace("shop")]);
  await worker.world.work();
  await worker.world.assign("web", [namespace("shop"), namespace("other")]);
  const asked = new Set<string>();
  const both = Promise.withResolvers<void>();
  const { blobs } = worker.world;
  // The worker runs in another sandbox, which has read none of the blobs.
  const anew: BlobStore = {
    overwrite: (key, bytes) => blobs.overwrite(key, bytes),
    renew: (key, before) => blobs.renew(key, before),
    async get(key, limits) {
      asked.add(key.split("/")[0] ?? "");
      if (asked.size === 2) both.resolve();
      await Promise.race([both.promise, sleep(longestMs, undefined, { ref: false }).then(() => asked.clear())]);
      return blobs.get(key, limits);
    },
  };
  await worker.world.work({ blobs: anew });
  expect([...asked].sort()).toEqual(["inventories", "renderings"]);
  expect(await worker.world.phase("web")).toBe("Ready");
});

const groups = ["apples", "berries", "cherries"].map((name) => `${name}.example.com`);

test("the worker reads the identity of the cluster and its parent object at the same time", async () => {
  await worker.world.assign("web", [namespace("shop")]);
  await worker.world.work();
  await worker.world.assign("web", [namespace("shop"), namespace("other")]);
  const parent = parentName({ syncNamespace: "tests", syncName: "web" });
  const came = askedTogether("/namespaces/kube-system", `/namespaces/starling-system/configmaps/${parent}`);
  await worker.world.work();
  expect([...came]).toHaveLength(2);
  expect(await worker.world.phase("web")).toBe("Ready");
});

test("the worker reads the definitions of all custom kinds at the same time", async () => {
  await worker.world.assign(
    "kinds",
    groups.map((group) => definition(group)),
  );
  await worker.world.work();
  await worker.world.assign("web", [namespace("shop"), ...groups.map((group) => widget(group, "shop/one"))]);
  const came = askedTogether(...groups.map((group) => `/widgets.${group}`));
  await worker.world.work();
  expect([...came]).toHaveLength(3);
  expect((await worker.world.sync("web"))?.observed?.applied?.attempt).toBe(1);
});
