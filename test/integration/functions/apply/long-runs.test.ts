/** Sets of objects that need more than one run, on a slow cluster. Each request moves the worker's clock. */
import { describe, expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import { lastCheck } from "#shared/fleet/rows/routine.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { Table } from "#shared/ports.ts";
import { clusterFixture, configMap, definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { namesOf, startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

/** The time that one request takes. */
const slowMs = 1_000;
const remainingMs = 50_000;
const mostRuns = 12;

function beSlow(): void {
  worker.host.intercept(({ phase }) => {
    if (phase === "after") worker.world.aheadMs += slowMs;
    return "pass";
  });
}

/** Works until the Sync is in that phase. @returns the number of runs. */
async function runsUntil(phase: string, name = "web"): Promise<number> {
  for (let run = 1; run <= mostRuns; run++) {
    await worker.world.work({ remainingMs });
    if ((await worker.world.phase(name)) === phase) return run;
    worker.world.aheadMs += 10_000;
  }
  throw new Error(`after ${mostRuns} runs it is ${JSON.stringify(await worker.observed(name))}`);
}

/** How often Starling sent each request of a method for members of the set: `configmaps/c1`. */
function counted(method: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const request of worker.host.requests()) {
    const path = new URL(request.path, "https://cluster").pathname;
    if (request.method !== method || path.includes("/starling-system")) continue;
    const name = path.split("/").slice(-2).join("/");
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function configMaps(count: number, value = "1"): ManifestObject[] {
  return Array.from({ length: count }, (_, index) => configMap(`shop/c${100 + index}`, { k: value }));
}

/** The table of a worker whose outcomes are lost. */
function withoutOutcomes(table: Table): Table {
  return {
    get: (key) => table.get(key),
    getMany: (keys) => table.getMany(keys),
    query: (query) => table.query(query),
    queryIndex: (query) => table.queryIndex(query),
    update: (write) => table.update(write),
    write: () => Promise.reject(new Error("the table is away")),
  };
}

const group = "long.example.com";
const mixed = [
  ...Array.from({ length: 20 }, (_, index) => widget(group, `shop/w${100 + index}`)),
  ...configMaps(40),
  definition(group),
  namespace("shop"),
];

test("an attempt that is tried again and applies nothing more reports no progress", async () => {
  await worker.world.assign("web", [namespace("shop"), ...configMaps(5)]);
  await worker.world.work();
  expect((await worker.observed()).progress).toMatchObject({ applied: 6, ready: 6 });
  const pathIncludes = "/configmaps/c104";
  await worker.host.setFaults("c1", { errors: { status: 500, methods: ["PATCH"], pathIncludes } });
  await worker.world.assign("web", [namespace("shop"), ...configMaps(5, "2")]);
  await worker.world.work();
  const first = await worker.observed();
  expect(first).toMatchObject({ attempt: 2, phase: "Retrying", progress: { applied: 5 } });
  for (let time = 0; time < 3; time++) {
    worker.world.aheadMs += 700_000;
    await worker.world.work();
  }
  const last = await worker.observed();
  expect(last).toMatchObject({ attempt: 2, phase: "Retrying" });
  expect(last.at > first.at).toBe(true);
  expect(last.progress).toEqual(first.progress);
});

describe("a set that needs more than one run", () => {
  test("the set is applied completely, each object once, in the order of its phases", async () => {
    await worker.world.assign("web", mixed);
    beSlow();
    const runs = await runsUntil("Ready");
    expect(runs).toBeGreaterThan(2);
    expect(worker.members()).toEqual(namesOf(mixed));
    expect(await worker.recorded()).toEqual(namesOf(mixed));
    const patches = counted("PATCH");
    // A definition is applied until it is seen to be established.
    const repeated = [...patches].filter(([name, count]) => count > 1 && !name.startsWith("customresource"));
    expect(repeated).toEqual([]);
    expect(patches.size).toBe(mixed.length);
    const order = [...patches.keys()];
    expect(order.indexOf("namespaces/shop")).toBe(0);
    expect(order.indexOf(`customresourcedefinitions/widgets.${group}`)).toBe(1);
  });

  test("the set is ready only when all its objects are as applied, even if somebody changes one between two runs", async () => {
    await worker.world.assign("web", [namespace("shop"), ...configMaps(100)]);
    beSlow();
    await worker.world.work({ remainingMs });
    expect((await worker.observed()).phase).toBe("Applying");
    const cluster = clusterFixture({ endpoint: worker.endpoint });
    const path = "/api/v1/namespaces/shop/configmaps/c100";
    await cluster.raw("PATCH", `${path}?fieldManager=a-stranger`, {
      as: "merge-patch",
      body: { data: { k: "theirs" } },
    });
    await runsUntil("Ready");
    expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
    await cluster.stop();
  });

  test("the set is pruned completely, and only after all of it was applied", async () => {
    await worker.world.assign("web", [namespace("shop"), ...configMaps(60)]);
    await worker.world.work();
    expect(await worker.world.phase("web")).toBe("Ready");
    const after = [namespace("shop"), ...configMaps(30, "2")];
    await worker.world.assign("web", after);
    worker.host.clearRequests();
    beSlow();
    expect(await runsUntil("Ready")).toBeGreaterThan(2);
    expect(worker.members()).toEqual(namesOf(after));
    expect(await worker.recorded()).toEqual(namesOf(after));
    const writes = worker.host.requests().filter(({ method }) => method === "PATCH" || method === "DELETE");
    const methods = writes.map(({ method }) => method);
    expect(methods.filter((method) => method === "PATCH")).toHaveLength(after.length);
    expect(methods.filter((method) => method === "DELETE")).toHaveLength(30);
    expect(methods.lastIndexOf("PATCH")).toBeLessThan(methods.indexOf("DELETE"));
  });

  test("the set is deleted completely", async () => {
    await worker.world.assign("shop", [namespace("shop")]);
    await worker.world.work();
    await worker.world.assign("web", configMaps(60));
    await worker.world.work();
    await worker.world.assignDelete("web");
    worker.host.clearRequests();
    beSlow();
    expect(await runsUntil("Gone")).toBeGreaterThan(2);
    expect(worker.members()).toEqual(["Namespace shop"]);
    expect([...counted("DELETE").values()].filter((count) => count > 1)).toEqual([]);
  });

  /** @returns the progress after each run until the Sync is in that phase. */
  async function progressUntil(phase: string): Promise<readonly { readonly at: string; readonly applied: number }[]> {
    const seen: { readonly at: string; readonly applied: number }[] = [];
    for (let run = 1; run <= mostRuns; run++) {
      await worker.world.work({ remainingMs });
      const observed = await worker.observed();
      if (observed.progress !== undefined) seen.push(observed.progress);
      if (observed.phase === phase) return seen;
      worker.world.aheadMs += 10_000;
    }
    throw new Error(`after ${mostRuns} runs it is ${JSON.stringify(await worker.observed())}`);
  }

  test.each<[string, string, number, () => Promise<void>]>([
    ["applied", "Ready", mixed.length, () => worker.world.assign("web", mixed)],
    ["pruned", "Ready", 60, () => worker.world.assign("web", [namespace("shop"), ...configMaps(30).slice(1)])],
    ["deleted", "Gone", 60, () => worker.world.assignDelete("web")],
  ])("the set makes progress with every run in which it is %s, and more each time", async (how, phase, most, begin) => {
    if (how === "deleted") {
      await worker.world.assign("shop", [namespace("shop")]);
      await worker.world.work();
    }
    if (how !== "applied") {
      const rest = how === "deleted" ? [] : [namespace("shop")];
      await worker.world.assign("web", [...rest, ...configMaps(how === "deleted" ? 60 : 59)]);
      await worker.world.work();
      expect(await worker.world.phase("web")).toBe("Ready");
    }
    await begin();
    beSlow();
    const seen = await progressUntil(phase);
    const before = seen.filter(({ applied }) => applied < most);
    expect(before.length).toBeGreaterThan(1);
    expect(new Set(before.map(({ applied }) => applied)).size).toBe(before.length);
    expect(new Set(before.map(({ at }) => at)).size).toBe(before.length);
    const applied = seen.map((one) => one.applied);
    expect(applied).toEqual([...applied].sort((a, b) => a - b));
    expect(applied.at(-1)).toBe(most);
  });

  test("the set is deleted completely, even if none of it was ever recorded", async () => {
    await worker.world.assign("shop", [namespace("shop")]);
    await worker.world.work();
    await worker.world.assign("web", configMaps(60));
    await expect(worker.world.work({ table: withoutOutcomes(worker.world.table) })).rejects.toThrow(
      "the table is away",
    );
    worker.world.aheadMs += 400_000;
    await worker.world.assignDelete("web");
    worker.host.clearRequests();
    beSlow();
    expect(await runsUntil("Gone")).toBeGreaterThan(2);
    expect(worker.members()).toEqual(["Namespace shop"]);
    expect([...counted("GET")].filter(([name, count]) => name.startsWith("configmaps/") && count > 3)).toEqual([]);
  });
});

test("a set with an object that fails is applied to its end, and is reported as failed only then", async () => {
  const bad = configMap("shop/c0", { k: "1" });
  const refused = { ...bad, metadata: { ...bad.metadata, labels: { x: "not a label's value!" } } };
  const objects = [namespace("shop"), refused, ...configMaps(100)];
  await worker.world.assign("web", objects);
  beSlow();
  await worker.world.work({ remainingMs });
  const begun = await worker.observed();
  expect(begun).toMatchObject({ phase: "Applying", reason: "OutOfTime" });
  expect(begun.problems.map(({ object }) => object)).toEqual(["ConfigMap shop/c0"]);
  expect(begun.nextAt).toBeDefined();
  worker.world.aheadMs += 10_000;
  await runsUntil("Failed");
  expect(await worker.observed()).toMatchObject({ reason: "ApplyFailed", message: "101 of 102 objects applied" });
  expect(worker.members()).toHaveLength(101);
});

test("a set has failed when a whole run applies none of it", async () => {
  const bad = configMaps(60).map((object) => ({
    ...object,
    metadata: { ...object.metadata, labels: { x: "not a label's value!" } },
  }));
  await worker.world.assign("web", [namespace("shop")]);
  await worker.world.work({ remainingMs });
  await worker.world.assign("web", [namespace("shop"), ...bad]);
  beSlow();
  await runsUntil("Failed");
  expect((await worker.observed()).problems).toHaveLength(5);
});

/** The time of the last check, from the row or from the routine of the cluster. */
async function lastCheckOf(name: string): Promise<string> {
  const [row, lease] = [await worker.world.sync(name), await worker.world.lease()];
  return (row === undefined ? undefined : lastCheck(row, lease?.routine)) ?? "";
}

test("a set that needs many runs leaves the other Syncs their turns in each of them", async () => {
  const { world } = worker;
  const others = ["b", "c", "d"];
  await world.assign("shop", [namespace("shop")]);
  await world.work();
  for (const name of others) await world.assign(name, [configMap(`shop/${name}`)], { interval: "1m" });
  await world.work();
  await world.assign("a", configMaps(150));
  beSlow();
  for (let run = 1; (await world.phase("a")) !== "Ready"; run++) {
    expect(run).toBeLessThan(40);
    const begun = world.clock.now().toISOString();
    const waiting = [];
    for (const name of others) if ((await lastCheckOf(name)) < later(begun, -70)) waiting.push(name);
    await world.work({ remainingMs: 90_000 });
    // In the first run the new assignment comes before the other Syncs.
    for (const name of run === 1 ? [] : waiting) expect((await lastCheckOf(name)) >= begun, name).toBe(true);
    world.aheadMs += 10_000;
  }
  expect([...counted("PATCH")].filter(([, count]) => count > 1)).toEqual([]);
});

test("a check that the worker's own deadline cuts off reports nothing about the Sync, and causes no apply", async () => {
  const objects = [namespace("shop"), configMap("shop/a")];
  await worker.world.assign("web", objects);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  worker.host.clearRequests();

  worker.world.aheadMs += 700_000;
  await worker.host.setFaults("c1", { latency: { ms: 600_000 } });
  await worker.world.work({ remainingMs: 3_000 });
  expect(await worker.observed()).toMatchObject({ phase: "Verifying", reason: "OutOfTime" });
  await worker.host.setFaults("c1", {});
  worker.reconnect();
  await worker.world.work();
  worker.world.aheadMs += 10_000;
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  expect(counted("PATCH")).toEqual(new Map());
});
