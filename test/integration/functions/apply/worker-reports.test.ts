/** A check does more than write its observation: it updates the row's index keys, sends messages and writes log lines. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { BlobStore, Log, Table } from "#shared/ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const [embedded] = clusterTargets;
if (embedded === undefined) throw new Error("there is no cluster to work on");
const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };
const rollout = {
  observedGeneration: 1,
  ...{ replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 },
  conditions: [
    { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
    { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
  ],
};

describe("a worker", () => {
  const cluster = forAllTests(async () => clusterFixture(await embedded.start()));
  const begin = () => new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
  const reportOf = (name: string) => ({
    to: "report",
    about: { kind: "Sync", cluster: "c1", namespace: "tests", name },
  });

  async function seen(world: WorkerWorld, name: string): Promise<SyncRow & { readonly observed: Observed }> {
    const row = await world.sync(name);
    if (row?.observed === undefined) throw new Error(`nothing was seen of ${name}`);
    return { ...row, observed: row.observed };
  }

  /** Makes one check. @returns the messages that it sent. */
  async function check(world: WorkerWorld, seconds = 0) {
    world.aheadMs += seconds * 1000;
    world.sender.take();
    await world.work();
    return world.sender.take();
  }

  /** The seconds until the cluster is checked again. */
  function delayOf(sent: Awaited<ReturnType<typeof check>>): number {
    const [message, ...more] = sent.filter(({ to }) => to === "apply");
    expect(more).toEqual([]);
    if (message?.to !== "apply") throw new Error("no check was requested");
    expect(message.cluster).toBe("c1");
    return message.delaySeconds ?? 0;
  }

  test("the worker reports outcomes at once, and progress only when it takes longer", async () => {
    const world = await begin();
    await world.assign("slow", [namespace("slow"), deployment("slow/web")]);
    for (const reported of [false, true, false]) {
      const sent = await check(world, 60);
      const { observed, stateSk } = await seen(world, "slow");
      expect(observed.phase).toBe("Verifying");
      expect(stateSk).toBe("Changing#c1#slow");
      expect(sent.filter(({ to }) => to === "report")).toEqual(reported ? [reportOf("slow")] : []);
      const left = (new Date(observed.nextAt ?? "").getTime() - new Date(observed.at).getTime()) / 1000;
      expect(left).toBeGreaterThan(0);
      // The delay has whole seconds, and one may have passed before the message was sent.
      expect([Math.ceil(left), Math.ceil(left) - 1]).toContain(delayOf(sent));
    }
    const path = "/apis/apps/v1/namespaces/slow/deployments/web/status";
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { status: rollout } });
    expect(await check(world, 60)).toEqual([reportOf("slow")]);
    expect((await seen(world, "slow")).stateSk).toBe("Ready#c1#slow");
    for (let routine = 0; routine < 2; routine++) expect(await check(world, 700)).toEqual([]);
  });

  test("the worker reports nothing yet about Syncs for which one run has no time", async () => {
    const client = watchedClient(cluster.client, async () => {
      world.aheadMs += 1_000;
    });
    const world: WorkerWorld = await new WorkerWorld({ connect: async () => client, distrust() {} }).begin();
    const objects = Array.from({ length: 60 }, (_, index) => configMap(`long/c${index}`));
    await world.assign("long", [namespace("long"), ...objects]);
    await world.work({ remainingMs: 50_000 });
    expect((await seen(world, "long")).observed).toMatchObject({ phase: "Applying", reason: "OutOfTime" });
    expect(world.sender.take().filter(({ to }) => to === "report")).toEqual([]);
  });

  test("the worker reports a new reason in the same phase, and a check that somebody waits for", async () => {
    const world = await begin();
    await world.assign("reasons", [namespace("reasons"), configMap("reasons/c")]);
    expect(await check(world)).toEqual([reportOf("reasons")]);
    const key = keys.sync("c1", "tests", "reasons");
    await world.table.update({ update: key, set: { reconcile: 1 }, add: { version: 1 } });
    expect(await check(world)).toEqual([reportOf("reasons")]);
    const { observed } = await seen(world, "reasons");
    const another = { ...observed, reason: "AsNeverBefore" };
    await world.table.update({ update: key, set: { observed: another }, add: { version: 1 } });
    expect(await check(world, 700)).toEqual([reportOf("reasons")]);
    expect((await seen(world, "reasons")).observed).toMatchObject({ phase: "Ready", reason: observed.reason });
    expect(await check(world, 700)).toEqual([]);
  });

  test("the worker requests a lost rendering at each check, and requests no rendering that exists", async () => {
    const world = await begin();
    await world.assign("lost", [namespace("lost"), configMap("lost/c")]);
    const { desired } = (await world.sync("lost")) as SyncRow;
    const wish = { ...desired, input: "sha256:of-the-input", source: "app" };
    const key = keys.sync("c1", "tests", "lost");
    await world.table.update({ update: key, set: { desired: wish }, add: { version: 1 } });
    const without = async (given: Partial<SyncRow["desired"]>) => {
      const row = (await world.sync("lost")) as SyncRow;
      await world.table.update({
        update: key,
        set: { desired: { ...row.desired, ...given } },
        remove: ["observed"],
        add: { version: 1 },
      });
      world.sender.take();
      await world.work({ blobs: new MemoryBlobStore() });
      expect((await seen(world, "lost")).observed).toMatchObject({ phase: "Retrying", reason: "RenderingLost" });
      return world.sender.take().filter(({ to }) => to === "render");
    };
    const owner = { namespace: "tests", kind: "Sync", name: "lost" };
    const asked = { to: "render", input: "sha256:of-the-input", notify: owner, lost: desired.renderDigest };
    const source = { namespace: "tests", name: "app", revision: desired.revision };
    expect(await without({})).toEqual([{ ...asked, source }]);
    const { source: _source, ...unknown } = wish;
    await world.table.update({ update: key, set: { desired: unknown }, add: { version: 1 } });
    expect(await without({})).toEqual([asked]);
    world.aheadMs += 60_000;
    world.sender.take();
    await world.work();
    expect((await seen(world, "lost")).observed.phase).toBe("Ready");
    expect(world.sender.take().filter(({ to }) => to === "render")).toEqual([]);
  });

  test("the worker checks a Sync at once when its freeze ends, and not while another freeze holds it", async () => {
    const world = await begin();
    await world.assign("held", [namespace("held"), configMap("held/c")]);
    await world.setFreezes({ freezes: [freeze] });
    await check(world);
    const before = await world.sync("held");
    expect(before?.held).toMatchObject({ name: "inc-4711" });
    await world.setFreezes({ freezes: [{ ...freeze, name: "inc-4712" }] });
    await check(world);
    expect(await world.sync("held")).toEqual(before);
    await world.setFreezes({});
    await check(world);
    expect(await world.phase("held")).toBe("Ready");
    expect(await world.sync("held")).not.toHaveProperty("held");
  });

  test("the worker keeps the record of a freeze if the planner writes the row meanwhile", async () => {
    const world = await begin();
    await world.assign("both", [namespace("both"), configMap("both/c")]);
    await world.work();
    const key = keys.sync("c1", "tests", "both");
    await world.assign("both", [namespace("both"), configMap("both/other")]);
    await world.setFreezes({ freezes: [freeze] });
    let rivals = 0;
    const table: Table = {
      ...refusingWrites(world.table, () => undefined),
      async write(writes) {
        if (rivals++ === 0) {
          await world.table.update({ update: key, set: { reconcile: 3 }, add: { version: 1 } });
        }
        return world.table.write(writes);
      },
    };
    world.aheadMs += 700_000;
    await world.work({ table });
    const row = await seen(world, "both");
    expect(rivals).toBeGreaterThan(1);
    expect(row).toMatchObject({ reconcile: 3, held: { name: "inc-4711" }, observed: { attempt: 1 } });
  });

  test("the worker releases a hold only once, and does not check again, if the planner wrote meanwhile", async () => {
    const world = await begin();
    await world.assign("once", [namespace("once")]);
    const calls: string[] = [];
    let rivals = 0;
    const table = new Proxy(world.table, {
      get(inner, method) {
        const call = (Reflect.get(inner, method) as (...args: unknown[]) => Promise<unknown>).bind(inner);
        return async (...args: unknown[]) => {
          calls.push(String(method));
          if (method === "write" && rivals++ === 0) {
            await world.assign("once", [namespace("once"), configMap("once/next")]);
          }
          return call(...args);
        };
      },
    });
    await world.work({ table });
    expect(calls.filter((method) => method === "update")).toHaveLength(2);
    expect(await world.sync("once")).toMatchObject({ desired: { attempt: 2 }, observed: { attempt: 1 } });
    expect((await world.lease())?.owner).toBeUndefined();
  });

  test("the worker reads no blob again that it has read or written", async () => {
    const asked: string[] = [];
    const blobs: BlobStore = new Proxy(new MemoryBlobStore(), {
      get(inner, method) {
        const call = (Reflect.get(inner, method) as (...args: unknown[]) => unknown).bind(inner);
        return (...args: unknown[]) => {
          if (method === "get") asked.push(String(args[0]).split("/")[0] ?? "");
          return call(...args);
        };
      },
    });
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }, blobs).begin();
    await world.assign("read-once", [namespace("read-once"), configMap("read-once/c")]);
    await world.work();
    expect(asked).toEqual(["renderings"]);
    await check(world, 700);
    await world.assign("read-once", [namespace("read-once"), configMap("read-once/c", { k: "2" })]);
    await check(world);
    await cluster.raw("DELETE", "/api/v1/namespaces/read-once/configmaps/c");
    await check(world, 700);
    expect((await seen(world, "read-once")).observed.drift).toMatchObject({ objects: 1, corrected: true });
    expect(asked).toEqual(["renderings", "renderings"]);
  });

  test("the worker logs the Sync at which the worker before it died", async () => {
    const world = await begin();
    await world.assign("deadly", [namespace("deadly")]);
    const leaseUntil = new Date(world.clock.now().getTime() - 1000).toISOString();
    const held = { type: "Lease", schema: 1, owner: "another", leaseUntil };
    await world.table.update({ update: keys.lease("c1"), set: held, add: { version: 1, fence: 1, desired: 0 } });
    const errors: unknown[] = [];
    const log: Log = { info() {}, warn() {}, error: (message, fields) => errors.push({ message, ...fields }) };
    await world.work({ log });
    expect(errors).toEqual([
      {
        message: "a worker died",
        code: "WorkerDied",
        cluster: "c1",
        kind: "Sync",
        namespace: "tests",
        name: "deadly",
        owner: "Sync/deadly",
        revision: "main@sha1:1",
        rollout: "deadly-1",
        deaths: expect.objectContaining({ alone: 0 }),
      },
    ]);
  });
});
