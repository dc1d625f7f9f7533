/** While an owner is suspended, the worker writes nothing of it to the cluster, whatever work is due. */
import { describe, expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { namesOf, startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";

const worker = forEachTest(startClusterWorker);
const suspended = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1 };

const before = [namespace("shop"), configMap("shop/kept"), configMap("shop/gone")];
const after = [namespace("shop"), configMap("shop/kept", { k: "2" }), configMap("shop/new")];

function writes(): string[] {
  return worker.host.requests().flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));
}

const suspend = () => worker.world.setOwner("web", { operations: { suspended } });
const resume = () => worker.world.setOwner("web", {});

async function synced(): Promise<void> {
  await worker.world.setOwner("web", {});
  await worker.world.assign("web", before);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
}

/** Lets the worker check for most of an hour. */
async function timePasses(): Promise<void> {
  for (let check = 0; check < 4; check++) {
    worker.world.aheadMs += 700_000;
    await worker.world.work();
  }
}

describe("a suspended owner", () => {
  test("the first assignment is not applied before its owner is resumed", async () => {
    await suspend();
    await worker.world.assign("web", before);
    await timePasses();
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual([]);
    expect((await worker.world.sync("web"))?.observed).toBeUndefined();
    await resume();
    await worker.recover(before);
    expect(worker.members()).toEqual(namesOf(before));
  });

  test("a suspension with an end is over at the end, and not before", async () => {
    await synced();
    const until = new Date(worker.world.clock.now().getTime() + 3_600_000).toISOString();
    await worker.world.setOwner("web", { operations: { suspended: { ...suspended, until } } });
    worker.host.clearRequests();
    await worker.world.assign("web", after);
    await timePasses();
    expect(writes()).toEqual([]);
    worker.world.aheadMs += 900_000;
    await worker.recover(after);
    expect(worker.members()).toEqual(namesOf(after));
  });

  test("a newer assignment is neither applied nor pruned for while its owner is suspended", async () => {
    await synced();
    await suspend();
    worker.host.clearRequests();
    await worker.world.assign("web", after);
    await timePasses();
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual(namesOf(before));
    await resume();
    await worker.recover(after);
    expect(worker.members()).toEqual(namesOf(after));
  });

  test("drift is not corrected, and a reconcile causes no write, while the owner is suspended", async () => {
    await synced();
    await suspend();
    const path = "/api/v1/namespaces/shop/configmaps/gone";
    const [connection] = worker.host.connections();
    if (connection === undefined) throw new Error("there is no cluster");
    await byHand(connection, { method: "DELETE", path });
    worker.host.clearRequests();
    await timePasses();
    const row = await worker.world.sync("web");
    if (row === undefined) throw new Error("there is no Sync");
    await worker.world.table.write([{ put: { ...row, reconcile: 2, version: row.version + 1 } as typeof row }]);
    await timePasses();
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual(namesOf(before).filter((name) => name !== "ConfigMap gone"));
    await resume();
    worker.world.aheadMs += 700_000;
    await worker.world.work();
    expect(worker.members()).toEqual(namesOf(before));
  });

  test("a suspended Sync that is not ready yet is checked, and nothing is written", async () => {
    const objects = [namespace("shop"), deployment("shop/web")];
    await worker.world.setOwner("web", {});
    await worker.world.assign("web", objects);
    await worker.world.work();
    expect(await worker.world.phase("web")).toBe("Verifying");
    await suspend();
    worker.host.clearRequests();
    await timePasses();
    expect(worker.host.requests().length).toBeGreaterThan(0);
    expect(writes()).toEqual([]);
  });

  /** Seconds between the next check and the timer of its row. */
  async function graceOfPoll(): Promise<number> {
    const { dueKey = "", observed } = (await worker.world.sync("web")) ?? {};
    return (Date.parse(dueAtOf(dueKey)) - Date.parse(observed?.nextAt ?? "")) / 1000;
  }

  test("a missed check of a suspended Sync is noticed as soon as that of any other Sync, even after a long suspend", async () => {
    await suspend();
    await worker.world.assign("web", [namespace("shop"), deployment("shop/web")]);
    await timePasses();
    await resume();
    await worker.world.work({ sentAt: worker.world.clock.now() });
    expect(await worker.world.phase("web")).toBe("Verifying");
    expect(await graceOfPoll()).toBe(30);
    await suspend();
    worker.world.aheadMs += 700_000;
    await resume();
    await worker.world.work({ sentAt: worker.world.clock.now() });
    expect(await graceOfPoll()).toBe(30);
  });

  test("a deletion does not begin while the owner is suspended", async () => {
    await synced();
    await suspend();
    worker.host.clearRequests();
    await worker.world.assignDelete("web");
    await timePasses();
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual(namesOf(before));
    await resume();
    await worker.world.work();
    expect(worker.members()).not.toContain("ConfigMap kept");
  });

  test("a Sync of another owner on the same cluster is still applied", async () => {
    await suspend();
    await worker.world.assign("web", before);
    await worker.world.assign("other", [namespace("other"), configMap("other/c")]);
    await worker.world.work();
    expect(await worker.world.phase("other")).toBe("Ready");
    expect(await worker.world.phase("web")).toBeUndefined();
    expect(worker.members()).toEqual(["ConfigMap c", "Namespace other"]);
  });
});
