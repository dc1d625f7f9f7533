/**
 * Workers die between any two calls to the table, messages are lost or come twice, and new assignments are made meanwhile.
 * Changes that somebody makes in the cluster are corrected all the same, and in the end only the lease is written.
 */
import { expect, test } from "vitest";
import { claimDue } from "#functions/tick/claim-due.ts";
import { createRandom, type Random } from "#local/base/random.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import { type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import type { Table } from "#shared/ports.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";
import { silentLog, silentMetrics } from "#test/support/planner-world.ts";

const worker = forEachTest(startPatientWorker);
const names = ["a", "b", "c", "d", "e"];
const minuteMs = 60_000;
const stormyMinutes = 60;
/** Enough time to correct the remaining drift, also in a Sync that waits because workers seemed to die at it. */
const calmMinutes = 40;
/** The time for a check and the deaths before it. It is far shorter than the day of a row's own timer. */
const patienceMinutes = 90;

interface Weather {
  readonly random: Random;
  readonly lost: number;
  readonly doubled: number;
  readonly death: number;
}

/** No call from number `at` on is answered. Call number `at` takes effect if `isDone`. */
function mortal(
  table: Table,
  at: number,
  { isDone, died }: { readonly isDone: boolean; readonly died: () => void },
): Table {
  let calls = 0;
  const never = new Promise<never>(() => {});
  return new Proxy(table, {
    get(target, name) {
      const call = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        calls++;
        if (calls < at) return call.apply(target, args);
        if (calls === at && isDone) await call.apply(target, args);
        died();
        return never;
      };
    },
  });
}

async function live({ random, death }: Weather): Promise<unknown> {
  const { world } = worker;
  if (!random.chance(death)) return world.work();
  const at = random.integer(1, 12);
  const isDone = random.chance(0.5);
  return new Promise<unknown>((resolve, reject) => {
    world.work({ table: mortal(world.table, at, { isDone, died: () => resolve(undefined) }) }).then(resolve, reject);
  });
}

/** @returns the number of workers that ran. */
async function minute(weather: Weather): Promise<number> {
  const { world } = worker;
  const { random, lost, doubled } = weather;
  world.aheadMs += minuteMs;
  const { table, sender, clock } = world;
  await claimDue({ table, sender, clock, log: silentLog, metrics: silentMetrics });
  let workers = 0;
  for (let queue = sender.take(); queue.length > 0 && workers < 20; queue = sender.take()) {
    for (const message of queue) {
      if (message.to !== "apply" || random.chance(lost)) continue;
      for (let copy = random.chance(doubled) ? 2 : 1; copy > 0; copy--) {
        workers++;
        await live(weather);
      }
    }
  }
  return workers;
}

async function assign(name: string, text: string): Promise<void> {
  const { world } = worker;
  const object = configMap(`${name}/one`);
  await world.assign(name, [namespace(name), { ...object, data: { k: text } }]);
  const row = await world.sync(name);
  if (row !== undefined) await world.table.write([{ put: { ...due(row, nextWork(row)), version: row.version + 1 } }]);
}

async function asked(method: "GET" | "PATCH", name: string, body?: object): Promise<KubeObject> {
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  const path = `/api/v1/namespaces/${name}/configmaps/one`;
  return (await byHand(connection, { method, path, body })).object as unknown as KubeObject;
}

test("drift is corrected, whichever workers die and whichever messages are lost", async () => {
  const { world } = worker;
  const random = createRandom(1);
  const storm: Weather = { random, lost: 0.2, doubled: 0.2, death: 0.3 };
  const calm: Weather = { random, lost: 0, doubled: 0, death: 0 };
  const desired = new Map(names.map((name) => [name, "first"]));
  for (const name of names) await assign(name, "first");
  await minute(calm);

  const edited = new Map<string, number>();
  async function check(at: number): Promise<void> {
    for (const [name, since] of edited) {
      if (stringAt(await asked("GET", name), "data", "k") === desired.get(name)) edited.delete(name);
      else expect(at - since, `${name} was changed at minute ${since}`).toBeLessThan(patienceMinutes);
    }
  }
  for (let at = 1; at <= stormyMinutes; at++) {
    const name = names[random.integer(0, names.length - 1)] ?? "a";
    if (random.chance(0.2) && !edited.has(name)) {
      await asked("PATCH", name, { data: { k: `edited at ${at}` } });
      edited.set(name, at);
    }
    if (random.chance(0.03)) {
      desired.set(name, `assigned at ${at}`);
      await assign(name, `assigned at ${at}`);
      edited.set(name, at);
    }
    await minute(storm);
    await check(at);
  }
  for (let at = 1; at <= calmMinutes; at++) {
    await minute(calm);
    await check(stormyMinutes + at);
  }
  expect([...edited]).toEqual([]);
  // Deaths are remembered for a day. By then each row has been due by itself.
  world.aheadMs += 25 * 60 * minuteMs;
  for (let at = 1; at <= 15; at++) await minute(calm);
  const versions = async () => Promise.all(names.map(async (name) => (await world.sync(name))?.version));
  const before = await versions();
  let workers = 0;
  for (let at = 1; at <= 30; at++) workers += await minute(calm);
  expect(await versions()).toEqual(before);
  expect(workers).toBeGreaterThanOrEqual(3);
  expect(workers).toBeLessThanOrEqual(4);
});
