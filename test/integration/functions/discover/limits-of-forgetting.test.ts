import { afterEach, beforeEach, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Table, Write } from "#shared/ports.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";

const account = "444455556666";
const gone = { after: "24h", action: "Forget", maxPerDay: 1 };
let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  world.trust(account, "apps");
});
afterEach(() => world.stop());

const document = (more: object = {}) =>
  discoveryDocument("apps", { accounts: [account] }, { name: "{{ eks.name }}", interval: "6h", gone, ...more });

async function found(count: number): Promise<void> {
  for (let at = 0; at < count; at++) world.add(arnOf(`c${at}`, account));
  await world.apply(document());
  await world.scan("apps");
}
const names = async () => (await world.fleet()).map(({ name }) => name);
async function scans(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    world.pass(6);
    await world.scan("apps");
  }
}

function before(is: (writes: readonly Write[]) => boolean, act: () => Promise<void>): Table {
  let done = false;
  return new Proxy(world.table, {
    get(target, name) {
      if (name === "write")
        return async (writes: readonly Write[]) => {
          if (!done && is(writes)) {
            done = true;
            await act();
          }
          return target.write(writes);
        };
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
const forgets = (writes: readonly Write[]) =>
  writes.some((write) => "delete" in write && write.delete.pk === keys.cluster("c0").pk);

test("a forgotten cluster that exists again still counts in the day's maxPerDay", async () => {
  await found(4);
  world.clusters.remove(arnOf("c0", account));
  world.clusters.remove(arnOf("c1", account));
  await scans(5);
  expect(await names()).toEqual(["c1", "c2", "c3"]);
  world.add(arnOf("c0", account));
  await scans(1);
  // c0 was forgotten 6 hours ago, and maxPerDay is 1, so c1 stays.
  expect(await names()).toEqual(["c0", "c1", "c2", "c3"]);
});

test("no cluster is forgotten any more when `gone` is removed from the spec during a scan", async () => {
  await found(3);
  world.clusters.remove(arnOf("c0", account));
  await scans(4);
  world.pass(6);
  const table = before(forgets, () => world.apply(document({ gone: undefined })));
  await world.scan("apps", { table });
  expect(await names()).toEqual(["c0", "c1", "c2"]);
});
