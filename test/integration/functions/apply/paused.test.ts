/** An attempt that lost its slot before it was complete is checked, and its cluster is no longer written to. */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { namesOf, startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";

const worker = forEachTest(startClusterWorker);

const before = [namespace("shop"), configMap("shop/kept"), configMap("shop/gone")];
const after = [namespace("shop"), configMap("shop/kept", { k: "2" }), configMap("shop/new")];
const freeze = { name: "inc-1", by: "ana", at: "2026-11-21T08:00:00.000Z", reason: "INC-1" };
const path = "/apis/apps/v1/namespaces/shop/deployments/web";
/** An object whose kind the API server does not know. All other objects are accepted. */
const unfit: ManifestObject = { apiVersion: "tests.example.com/v1", kind: "Unknown", metadata: { name: "x" } };

function connection() {
  const [first] = worker.host.connections();
  if (first === undefined) throw new Error("there is no cluster");
  return first;
}

function writes(): string[] {
  return worker.host.requests().flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));
}

async function rowOf(name = "web"): Promise<SyncRow> {
  const row = await worker.world.sync(name);
  if (row === undefined) throw new Error(`there is no Sync ${name}`);
  return row;
}

async function check(seconds = 700): Promise<SyncRow> {
  worker.world.aheadMs += seconds * 1000;
  await worker.world.work();
  return rowOf();
}

/** Lets most of an hour pass, in which the worker may check at any time. */
async function timePasses(): Promise<void> {
  for (let minute = 0; minute < 50; minute++) await check(60);
}

async function synced(objects = before): Promise<void> {
  await worker.world.assign("web", objects, { interval: "10m" });
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
}

describe("a paused attempt", () => {
  test("an attempt that is paused before it begins is not begun; the last attempt's objects are checked, and drift is reported", async () => {
    await synced();
    await worker.world.assign("web", after, { interval: "10m" });
    await worker.world.pause("web");
    await byHand(connection(), {
      method: "PATCH",
      path: "/api/v1/namespaces/shop/configmaps/kept",
      body: { data: { k: "edited" } },
    });
    worker.host.clearRequests();
    await timePasses();
    expect(writes()).toEqual([]);
    // The worker checks once in each interval.
    expect(worker.host.requests().length).toBeGreaterThan(0);
    expect(worker.host.requests().length).toBeLessThan(60);
    const row = await rowOf();
    expect(row).toMatchObject({ stateSk: "Failed#c1#web", paused: { reason: "DeadlineExceeded" } });
    expect(row.observed).toMatchObject({ attempt: 1, drift: { objects: 1, corrected: false } });
    expect(worker.members()).toEqual(namesOf(before));

    await worker.world.assign("web", after, { interval: "10m" });
    expect((await check(1)).observed).toMatchObject({ attempt: 3, phase: "Ready" });
    expect(await rowOf()).not.toHaveProperty("paused");
    expect(worker.members()).toEqual(namesOf(after));
  });

  test("a paused attempt that was never applied is reported as Failed", async () => {
    await worker.world.assign("web", before);
    await worker.world.pause("web");
    await timePasses();
    expect(writes()).toEqual([]);
    const { observed, stateSk } = await rowOf();
    expect(stateSk).toBe("Failed#c1#web");
    expect(observed).toMatchObject({ attempt: 1, phase: "Failed", reason: "Paused" });
    expect(observed?.message).toBe(
      "paused (DeadlineExceeded); a newer rollout tries again; to try again now: starling reconcile sync/web -n tests",
    );
  });

  test("a paused attempt that was retrying is not tried again, and still reports its error", async () => {
    await worker.world.assign("web", [...before, unfit]);
    await worker.world.work();
    expect((await rowOf()).observed).toMatchObject({ phase: "Retrying" });
    const { reason, message, problems } = (await rowOf()).observed ?? {};
    await worker.world.pause("web");
    worker.host.clearRequests();
    await timePasses();
    expect(writes()).toEqual([]);
    const row = await rowOf();
    expect(reason).toBeDefined();
    expect(row.observed).toMatchObject({ phase: "Failed", reason: "Paused", problems });
    expect(row.observed?.message).toContain(`${message}; paused (DeadlineExceeded)`);
    expect(row.stateSk).toBe("Failed#c1#web");
  });

  test("a paused attempt that becomes ready by itself is reported as ready; its drift is not corrected", async () => {
    await worker.world.assign("web", [namespace("shop"), deployment("shop/web")], { interval: "10m" });
    await worker.world.work();
    expect(await worker.world.phase("web")).toBe("Verifying");
    await worker.world.pause("web");
    worker.host.clearRequests();
    const stuck = await check();
    expect(stuck).toMatchObject({ stateSk: "Failed#c1#web", observed: { phase: "Failed", reason: "Paused" } });
    expect(stuck.observed?.message).toMatch(/^1 of 2 objects ready; paused \(DeadlineExceeded\)/);
    expect(stuck.observed?.problems).toHaveLength(1);

    await byHand(connection(), { method: "PATCH", path: `${path}/status`, body: readyStatus });
    worker.host.clearRequests();
    expect(await check()).toMatchObject({ stateSk: "Ready#c1#web", observed: { phase: "Ready" } });
    await byHand(connection(), { method: "DELETE", path });
    worker.host.clearRequests();
    await timePasses();
    expect(writes()).toEqual([]);
    expect(await rowOf()).toMatchObject({ stateSk: "Failed#c1#web", observed: { phase: "Failed" } });
  });

  test("a paused attempt is checked once when somebody asks for it, and not repeatedly", async () => {
    await synced();
    await worker.world.assign("web", after, { interval: "10m" });
    await worker.world.pause("web");
    const row = await rowOf();
    await worker.world.table.write([{ put: { ...row, reconcile: 7, version: row.version + 1 } as SyncRow }]);
    worker.host.clearRequests();
    expect((await check(1)).observed).toMatchObject({ attempt: 1, handledReconcile: 7 });
    const asked = worker.host.requests().length;
    expect(asked).toBeGreaterThan(0);
    for (let second = 0; second < 20; second++) await check(1);
    expect(worker.host.requests()).toHaveLength(asked);
    expect(writes()).toEqual([]);
  });

  test("an attempt that a freeze paused is not begun before its next turn, and has no error", async () => {
    await synced();
    await worker.world.assign("web", after, { interval: "10m" });
    await worker.world.setFreezes({ freezes: [freeze] });
    await worker.world.work();
    await worker.world.pause("web", { freeze: "inc-1" });
    await byHand(connection(), {
      method: "PATCH",
      path: "/api/v1/namespaces/shop/configmaps/kept",
      body: { data: { k: "edited" } },
    });
    worker.host.clearRequests();
    await timePasses();
    const frozen = await rowOf();
    expect(frozen).toMatchObject({ stateSk: "Changing#c1#web", held: { name: "inc-1" } });
    expect(frozen.observed).toMatchObject({ attempt: 1, drift: { objects: 1, corrected: false } });

    await worker.world.setFreezes({});
    await timePasses();
    const waiting = await rowOf();
    expect(waiting).toMatchObject({ stateSk: "Changing#c1#web", observed: { attempt: 1 } });
    expect(waiting).not.toHaveProperty("held");
    expect(writes()).toEqual([]);
    expect(worker.host.requests().length).toBeGreaterThan(0);
    expect(worker.host.requests().length).toBeLessThan(120);

    await worker.world.assign("web", after, { interval: "10m" });
    expect((await check(1)).observed).toMatchObject({ attempt: 3, phase: "Ready" });
    expect(worker.members()).toEqual(namesOf(after));
  });

  test("an attempt that a freeze paused before it was applied is not reported as Failed", async () => {
    await worker.world.assign("web", before);
    await worker.world.setFreezes({ freezes: [freeze] });
    await worker.world.work();
    await worker.world.pause("web", { freeze: "inc-1" });
    for (const freezeState of [{ freezes: [freeze] }, {}]) {
      await worker.world.setFreezes(freezeState);
      await timePasses();
      expect(await rowOf()).not.toHaveProperty("observed");
      expect((await rowOf()).stateSk).toBe("Changing#c1#web");
    }
    expect(writes()).toEqual([]);
  });

  test("an attempt whose rollout is rejected before its begin never begins, and drift of what it had is corrected", async () => {
    await synced();
    await worker.world.assign("web", after, { interval: "10m" });
    await worker.world.pause("web", { reason: "rollout 2 rejected by ana", rejected: true });
    await byHand(connection(), {
      method: "PATCH",
      path: "/api/v1/namespaces/shop/configmaps/kept",
      body: { data: { k: "edited" } },
    });
    await timePasses();
    const row = await rowOf();
    expect(syncStateOf(row)).toBe("Rejected");
    expect(row).toMatchObject({ stateSk: "Changing#c1#web", observed: { attempt: 1, drift: { corrected: true } } });
    expect(worker.members()).toEqual(namesOf(before));
  });

  test("a first attempt whose rollout is rejected before its begin is not reported as Failed", async () => {
    await worker.world.assign("web", before);
    await worker.world.pause("web", { reason: "rollout 1 rejected by ana", rejected: true });
    await timePasses();
    expect(writes()).toEqual([]);
    expect(await rowOf()).not.toHaveProperty("observed");
  });

  test("a cluster that does not answer is probed, and not continuously, while a freeze pauses its attempt", async () => {
    await worker.host.setFaults("c1", { resets: {} });
    await worker.world.assign("web", before);
    await worker.world.work();
    expect(await rowOf()).toMatchObject({ observed: { phase: "Unreachable" } });
    await worker.world.pause("web", { freeze: "inc-1" });
    for (const freezeState of [{ freezes: [freeze] }, {}]) {
      await worker.world.setFreezes(freezeState);
      const { version } = await rowOf();
      await timePasses();
      // The wait between probes grows to five minutes.
      expect((await rowOf()).version - version).toBeLessThan(25);
    }
    expect(await rowOf()).toMatchObject({ stateSk: "Changing#c1#web", observed: { phase: "Unreachable" } });
    await worker.host.setFaults("c1", {});
    worker.reconnect();
    await timePasses();
    expect(await rowOf()).toMatchObject({ stateSk: "Changing#c1#web", observed: { phase: "Reachable" } });
    expect(writes()).toEqual([]);
  });

  test("a paused deletion deletes nothing", async () => {
    await synced();
    await worker.world.assignDelete("web");
    await worker.world.pause("web");
    worker.host.clearRequests();
    await timePasses();
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual(namesOf(before));
    await worker.world.assignDelete("web");
    for (let second = 0; second < 3; second++) await check(60);
    expect(worker.members()).not.toContain("ConfigMap kept");
  });
});

const readyStatus = {
  status: {
    observedGeneration: 1,
    replicas: 2,
    updatedReplicas: 2,
    readyReplicas: 2,
    availableReplicas: 2,
    conditions: [
      { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
      { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
    ],
  },
};
