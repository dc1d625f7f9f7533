/**
 * Workers die at a Sync, like a function that runs out of memory: a dead worker writes nothing any more, and releases no
 * lease.
 */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";

const worker = forEachTest(startPatientWorker);
/** A time that is longer than a lease. */
const afterDeathMs = 60_000;
const about = { kind: "Sync", cluster: "c1", namespace: "tests", name: "a" };
/** The message for a cluster whose worker died. It uses the slow lane for a while, so that it takes no place of others. */
const again = { to: expect.stringMatching(/^apply(Slow)?$/), cluster: "c1" };

interface Life {
  readonly end: "ended" | "died";
  /** The owners of the renderings that were read, in order. */
  readonly begun: readonly string[];
}

/** Works until the rendering of `deadly` is read. The worker dies there: it does nothing more, and its calls never return. */
async function work(deadly?: string): Promise<Life> {
  const { world } = worker;
  const names = new Map<string, string>();
  for (const row of world.table.all()) {
    const { name, desired } = row as { name?: string; desired?: { renderDigest?: string } };
    if (desired?.renderDigest !== undefined) names.set(desired.renderDigest.slice("sha256:".length), name ?? "");
  }
  const begun: string[] = [];
  const never = new Promise<never>(() => {});
  let isDead = false;
  return new Promise((resolve, reject) => {
    const blobs = wrapped(world.blobs, (method, call) => async (...args: unknown[]) => {
      const name = [...names].find(([digest]) => String(args[0]).includes(`renderings/${digest}`))?.[1];
      if (method === "get" && name !== undefined) begun.push(name);
      if (method !== "get" || name === undefined || name !== deadly) return call(...args);
      isDead = true;
      resolve({ end: "died", begun });
      return never;
    });
    // A dead worker does not renew its lease.
    const table = wrapped(
      world.table,
      (_method, call) =>
        (...args: unknown[]) =>
          isDead ? never : call(...args),
    );
    world.work({ blobs, table }).then(() => resolve({ end: "ended", begun }), reject);
  });
}

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

function wrapped<T extends object>(inner: T, around: (method: string, call: AnyMethod) => AnyMethod): T {
  return new Proxy(inner, {
    get: (target, name) => around(String(name), (Reflect.get(target, name) as AnyMethod).bind(target)),
  });
}

async function assign(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await worker.world.assign(name, [namespace(`of-${name}`), configMap(`of-${name}/c`)]);
  }
}

const phases = async (...names: readonly string[]) => Promise.all(names.map((name) => worker.world.phase(name)));
const desiredKey = async (name: string) => (await worker.world.sync(name))?.desired.renderDigest;
const deathsOf = async (name: string) => (await worker.world.sync(name))?.deaths;

test.each([
  ["the first Sync", "a", ["a"]],
  ["a later Sync", "b", ["a", "b"]],
])(
  "%s at which a worker died is worked on last and alone, and the other Syncs go on",
  async (_which, deadly, before) => {
    const { world } = worker;
    await assign("a", "b", "c");
    expect(await work(deadly)).toEqual({ end: "died", begun: before });
    // The observations that the worker wrote before it died are not lost.
    for (const name of before.slice(0, -1)) expect(await world.phase(name)).toBe("Ready");
    world.sender.take();

    world.aheadMs += afterDeathMs;
    const others = ["a", "b", "c"].filter((name) => !before.includes(name));
    expect(await work(deadly)).toMatchObject({ end: "ended", begun: others });
    expect(await phases(...others)).toEqual(others.map(() => "Ready"));
    expect(world.sender.take()).toContainEqual(again);
    expect(await deathsOf(deadly)).toMatchObject({ alone: 0 });

    await assign("d");
    expect(await work(deadly)).toMatchObject({ end: "ended", begun: ["d"] });
    expect(world.sender.take()).toContainEqual(again);
    expect(await work(deadly)).toMatchObject({ end: "died", begun: [deadly] });
    expect(await world.lease()).toMatchObject({ begun: { sync: `tests/${deadly}`, alone: true } });
  },
);

/** Kills four workers, until the Sync is left alone. The first death does not count: it may be due to another Sync. */
async function killUntilLeftAlone(name: string): Promise<void> {
  for (let death = 0; death <= 3; death++) {
    expect(await work(name), `death ${death}`).toMatchObject({ end: "died", begun: [name] });
    worker.world.aheadMs += afterDeathMs;
  }
}

test("a Sync at which three workers died alone reports that, and is tried again after longer and longer times", async () => {
  const { world } = worker;
  await assign("a");
  await killUntilLeftAlone("a");
  await assign("b");
  for (const [index, minutes] of [5, 10, 20, 40, 80, 160, 320, 360, 360].entries()) {
    world.sender.take();
    expect(await work("a")).toMatchObject({ end: "ended", begun: index === 0 ? ["b"] : [] });
    const observed = await worker.observed("a");
    expect(observed).toMatchObject({ phase: "Retrying", reason: "WorkerDied" });
    expect(observed.message).toContain(`the function apply died ${index + 3} times in a row at this Sync`);
    expect(observed.message).toMatch(/memory or of time.*rendering is too large.*several Syncs.*more memory/);
    const until = new Date(observed.at).getTime() + minutes * 60_000;
    expect(observed.nextAt).toBe(new Date(until).toISOString());
    const { dueKey = "" } = (await world.sync("a")) ?? {};
    expect(dueKey.startsWith(new Date(until + 30_000).toISOString()), dueKey).toBe(true);
    const sent = world.sender.take();
    expect(sent.filter(({ to }) => to === "apply")).toEqual([]);
    if (index === 0) expect(sent).toContainEqual({ to: "report", about });

    world.aheadMs = until - Date.now() - 10_000;
    expect((await work("a")).begun, "before its time").toEqual([]);
    world.aheadMs = until - Date.now() + 10_000;
    // The routine check of `b` comes first, if it is due.
    const { begun, end } = await work("a");
    expect(begun).toEqual(end === "died" ? ["a"] : []);
    if (end === "ended") expect(await work("a")).toMatchObject({ end: "died", begun: ["a"] });
    world.aheadMs += afterDeathMs;
  }
});

test("a Sync that waits after deaths is tried at once and alone when somebody asks; another rendering ends the wait", async () => {
  const { world } = worker;
  await assign("a");
  await killUntilLeftAlone("a");
  await work("a");
  expect(await world.phase("a")).toBe("Retrying");
  const waiting = await world.sync("a");
  await world.table.update({ update: keys.sync("c1", "tests", "a"), set: { reconcile: 1 }, add: { version: 1 } });
  expect(await work("a")).toMatchObject({ end: "died", begun: ["a"] });
  world.aheadMs += afterDeathMs;
  expect(await work("a")).toMatchObject({ end: "ended", begun: [] });
  expect((await worker.observed("a")).message).toContain("died 4 times");
  expect(await work("a")).toMatchObject({ end: "ended", begun: [] });

  // A new attempt with the same rendering does not end the wait.
  const { deaths } = (await world.sync("a")) ?? {};
  await assign("a", "b");
  expect((await world.sync("a"))?.desired).toMatchObject({ attempt: 2, renderDigest: waiting?.desired.renderDigest });
  expect(await work("a")).toMatchObject({ end: "ended", begun: ["b"] });
  expect(await deathsOf("a")).toEqual(deaths);

  await world.assign("a", [namespace("of-a"), configMap("of-a/smaller")]);
  world.aheadMs += 1_000;
  await assign("c");
  expect(await work()).toEqual({ end: "ended", begun: ["a", "c"] });
  expect(await world.phase("a")).toBe("Ready");
  expect(await deathsOf("a")).toBeUndefined();
});

test("a Sync that a worker survives alone is worked on alone for a day, and then with the others", async () => {
  const { world } = worker;
  await assign("a", "b");
  await work("a");
  world.aheadMs += afterDeathMs;
  await work();
  await work();
  expect(await phases("a", "b")).toEqual(["Ready", "Ready"]);
  expect(await deathsOf("a")).toMatchObject({ alone: 0 });
  world.sender.take();

  const checked = async () => (await Promise.all(["a", "b"].map((name) => worker.observed(name)))).map(({ at }) => at);
  world.aheadMs += 1_000_000;
  const before = await checked();
  await work();
  const others = await checked();
  expect([others[0] === before[0], others[1] === before[1]]).toEqual([true, false]);
  expect(world.sender.take()).toContainEqual(again);
  await work();
  const alone = await checked();
  expect([alone[0] === before[0], alone[1] === others[1]]).toEqual([false, true]);

  world.aheadMs += 86_400_000;
  world.sender.take();
  await work();
  const together = await checked();
  expect([together[0] === alone[0], together[1] === alone[1]]).toEqual([false, false]);
  expect(world.sender.take()).not.toContainEqual(again);
  expect(await deathsOf("a")).toBeUndefined();
});

test("the next two workers finish all Syncs, at whichever call to the table a worker dies", async () => {
  const { world } = worker;
  const names = ["a", "b", "c"];
  /** @returns whether the worker died, because it made that many calls. */
  const dieAt = (at: number, effect: "before" | "after") =>
    new Promise<boolean>((resolve, reject) => {
      let calls = 0;
      const table = wrapped(world.table, (_method, call) => async (...args) => {
        calls += 1;
        if (calls < at) return call(...args);
        if (calls === at && effect === "after") await call(...args);
        resolve(true);
        return new Promise<never>(() => {});
      });
      world.work({ table }).then(() => resolve(false), reject);
    });
  let at = 1;
  for (let died = true; died; at++) {
    for (const effect of ["before", "after"] as const) {
      for (const name of names) {
        await world.assign(name, [namespace(`of-${name}`), configMap(`of-${name}/c`, { at: `${at} ${effect}` })]);
      }
      died = await dieAt(at, effect);
      world.aheadMs += afterDeathMs;
      world.sender.take();
      let runs = 0;
      do {
        await world.work();
        runs += 1;
      } while (world.sender.take().some((message) => message.to === "applySlow" && message.delaySeconds === undefined));
      expect(runs, `${effect} call ${at}`).toBeLessThanOrEqual(2);
      expect(await phases(...names), `${effect} call ${at}`).toEqual(["Ready", "Ready", "Ready"]);
      const { owner, begun } = (await world.lease()) as { owner?: string; begun?: unknown };
      expect([owner, begun]).toEqual([undefined, undefined]);
    }
  }
  // The worker writes the lease, its rows, and the outcome of each.
  expect(at).toBeGreaterThan(8);
});

test("no Sync is blamed, however often workers die that had begun several Syncs", async () => {
  const { world } = worker;
  for (let death = 1; death <= 6; death++) {
    await world.assign("a", [namespace("of-a"), configMap("of-a/c", { death: `${death}` })]);
    await world.assign("b", [namespace("of-b"), configMap("of-b/c", { death: `${death}` })]);
    expect(await work("b"), `death ${death}`).toEqual({ end: "died", begun: ["a", "b"] });
    expect((await world.sync("b"))?.observed).toBeUndefined();
    world.aheadMs += afterDeathMs;
  }
  expect(await work()).toEqual({ end: "ended", begun: ["b"] });
  expect(await phases("a", "b")).toEqual(["Ready", "Ready"]);
});

test("the record of deaths at a Sync is not forgotten if the planner writes its row meanwhile", async () => {
  const { world } = worker;
  await assign("a");
  await work("a");
  world.aheadMs += afterDeathMs;
  let reconciles = 0;
  const table = wrapped(world.table, (method, call) => async (...args) => {
    const isSeen = method === "write" && JSON.stringify(args[0]).includes('"phase":"Ready"');
    if (isSeen && reconciles++ === 0) {
      await world.table.update({ update: keys.sync("c1", "tests", "a"), set: { reconcile: 1 }, add: { version: 1 } });
    }
    return call(...args);
  });
  await world.work({ table });
  const row = await world.sync("a");
  expect(row).toMatchObject({ reconcile: 1, observed: { phase: "Ready" }, deaths: { alone: 0 } });
  expect(reconciles).toBeGreaterThan(1);
});

test("a Sync that waits because its owner is suspended causes no repeated checks", async () => {
  const { world } = worker;
  await assign("a");
  await work("a");
  await world.suspend("a");
  world.aheadMs += afterDeathMs;
  world.sender.take();
  await assign("b");
  expect(await work()).toEqual({ end: "ended", begun: ["b"] });
  expect(world.sender.take()).not.toContainEqual(again);
  expect(await deathsOf("a")).toBeUndefined();
});

test("a lease that is released while somebody asks for it is taken at once, and no Sync is blamed", async () => {
  const { world } = worker;
  await assign("a", "b");
  const key = keys.lease("c1");
  const leaseUntil = new Date(world.clock.now().getTime() + 45_000).toISOString();
  await world.table.update({
    update: key,
    set: { type: "Lease", schema: 1, owner: "another", leaseUntil },
    add: { version: 1, fence: 1 },
  });
  let asked = 0;
  const table = wrapped(world.table, (method, call) => async (...args) => {
    asked += method === "update" ? 1 : 0;
    if (method === "update" && asked === 2) await world.table.update({ update: key, remove: ["owner", "leaseUntil"] });
    return call(...args);
  });
  await world.work({ table });
  expect(await phases("a", "b")).toEqual(["Ready", "Ready"]);
  expect([await deathsOf("a"), await deathsOf("b")]).toEqual([undefined, undefined]);
});

test("a worker that fails and does not die blames no Sync", async () => {
  const { world } = worker;
  await assign("a", "b");
  const table = wrapped(world.table, (method, call) => async (...args) => {
    if (method === "write") throw new Error("the table is away");
    return call(...args);
  });
  for (let failure = 1; failure <= 4; failure++) {
    await expect(world.work({ table })).rejects.toThrow("the table is away");
    world.aheadMs += afterDeathMs;
  }
  expect(await work()).toEqual({ end: "ended", begun: ["a", "b"] });
  expect(await phases("a", "b")).toEqual(["Ready", "Ready"]);
  expect([await deathsOf("a"), await deathsOf("b")]).toEqual([undefined, undefined]);
  expect(await world.lease()).not.toHaveProperty("failed");
});

test("a death in the routine blames no Sync; the next run notes each check, so that a second death is attributed", async () => {
  const { world } = worker;
  await assign("a", "b", "c");
  await work();
  world.aheadMs += 700_000;
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  const path = "/api/v1/namespaces/of-c/configmaps/c";
  await byHand(connection, { method: "PATCH", path, body: { data: { k: "edited" } } });
  expect(await work("c")).toEqual({ end: "died", begun: ["c"] });

  world.aheadMs += afterDeathMs;
  expect(await work("c")).toEqual({ end: "died", begun: ["c"] });
  expect([await deathsOf("a"), await deathsOf("b"), await deathsOf("c")]).toEqual([undefined, undefined, undefined]);
  const begun = { sync: "tests/c", desired: await desiredKey("c"), attempt: 1, alone: false };
  expect((await world.lease())?.begun).toEqual(begun);

  world.aheadMs += afterDeathMs;
  world.sender.take();
  expect(await work("c")).toEqual({ end: "ended", begun: [] });
  expect([await deathsOf("a"), await deathsOf("b")]).toEqual([undefined, undefined]);
  expect(await deathsOf("c")).toMatchObject({ alone: 0 });
  expect(world.sender.take()).toContainEqual(again);
  expect(await work("c")).toEqual({ end: "died", begun: ["c"] });
  expect(await world.lease()).toMatchObject({ begun: { sync: "tests/c", alone: true } });
});

test("a routine check that finds nothing new makes two calls to the table besides its reads", async () => {
  const { world } = worker;
  await assign("a", "b", "c");
  await work();
  world.aheadMs += 700_000;
  const calls: string[] = [];
  const table = wrapped(world.table, (method, call) => async (...args) => {
    calls.push(method);
    return call(...args);
  });
  await world.work({ table });
  const pages = calls.filter((call) => call === "query");
  expect(calls.filter((call) => call !== "query")).toEqual(["update", "getMany", "update"]);
  expect(pages.length).toBeGreaterThan(0);
  expect(await world.lease()).not.toHaveProperty("begun");
});
