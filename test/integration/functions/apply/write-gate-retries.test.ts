/** The worker asks for a permit again before each try of a write: over HTTPS, with a server that is busy or slow. */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";
import { type ClusterTarget, clusterTargets } from "#test/contract/targets.ts";
import {
  type ClusterFixture,
  clusterFixture,
  configMap,
  endpointOf,
  namespace,
} from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { answerJson, type HostileApi, startHostileApi } from "#test/support/hostile-api.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };
/** A time after which a worker reads rows again before it writes. */
const laterMs = 16_000;
/** The number of connections that a worker has. */
const sockets = 8;

interface Front {
  readonly api: HostileApi;
  readonly fixture: ClusterFixture;
  stop(): Promise<void>;
}

async function startFront(start: ClusterTarget["start"]): Promise<Front> {
  const target = await start();
  const { server, caData = "", credentials } = target.endpoint;
  if (!("token" in credentials)) throw new Error("these servers are given a token");
  const api = await startHostileApi({ server, caData, token: await credentials.token({ refresh: false }) });
  const fixture = clusterFixture(target);
  return {
    api,
    fixture,
    async stop() {
      await api.stop();
      await fixture.stop();
    },
  };
}

describe.each(clusterTargets)("a write that was permitted earlier, on $name", ({ start }) => {
  const front = forAllTests(() => startFront(start));

  beforeEach(() => {
    front.api.attack(undefined);
    front.api.clear();
  });

  async function begin(): Promise<WorkerWorld> {
    const world: WorkerWorld = await new WorkerWorld({
      connect: async (_cluster, deadline) =>
        new KubeConnection(endpointOf(front.api), world.clock).client({ deadlineMs: deadline.getTime() }),
      distrust() {},
    }).begin();
    return world;
  }

  const pathOf = (at: string, name: string) => `/api/v1/namespaces/${at}/configmaps/${name}`;
  const asked = (method: string, at: string) =>
    front.api.requests().filter((request) => request.startsWith(`${method} ${pathOf(at, "")}`));

  /** Acts at the first request of a kind, and answers it with `instead`. */
  function atFirst(
    method: string,
    path: string,
    act: () => Promise<void>,
    instead: (response: ServerResponse) => void,
  ) {
    let isFirst = true;
    front.api.attack((request, response) => {
      if (!isFirst || request.method !== method || !request.url?.startsWith(path)) return false;
      isFirst = false;
      request.resume();
      void act().then(() => instead(response));
      return true;
    });
  }

  const busy = (response: ServerResponse) => {
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "TooManyRequests", code: 429 };
    response.setHeader("retry-after", "0");
    answerJson(response, JSON.stringify(status), 429);
  };
  const cutOff = (response: ServerResponse) => void response.destroy();

  async function toPrune(world: WorkerWorld, name: string): Promise<void> {
    await world.assign(name, [namespace(name), configMap(`${name}/kept`), configMap(`${name}/left`)]);
    await world.work();
    await world.assign(name, [namespace(name), configMap(`${name}/kept`)]);
  }

  test("a deletion that a busy server turned away is not tried again under a freeze", async () => {
    const world = await begin();
    await toPrune(world, "try-ice");
    const freezing = async () => {
      await world.setFreezes({ freezes: [freeze] });
      world.aheadMs += laterMs;
    };
    atFirst("DELETE", pathOf("try-ice", "left"), freezing, busy);
    await world.work();
    expect(asked("DELETE", "try-ice")).toHaveLength(1);
    expect(await front.fixture.statusOf(pathOf("try-ice", "left"))).toBe(200);
    const row = await world.sync("try-ice");
    expect(row?.observed).toMatchObject({ phase: "Applying", reason: "Frozen" });
    expect(row?.held).toMatchObject({ name: "inc-4711" });
    await world.setFreezes({});
    await world.work();
    expect(await front.fixture.statusOf(pathOf("try-ice", "left"))).toBe(404);
  });

  test("a write that was not answered is not sent again when its Sync is suspended", async () => {
    const world = await begin();
    await world.assign("try-held", [namespace("try-held"), configMap("try-held/c")]);
    const suspending = async () => {
      await world.suspend("try-held");
      world.aheadMs += laterMs;
    };
    atFirst("PATCH", pathOf("try-held", "c"), suspending, cutOff);
    await world.work();
    expect(asked("PATCH", "try-held")).toHaveLength(1);
    expect((await world.sync("try-held"))?.observed).toMatchObject({ phase: "Applying", reason: "Suspended" });
    await world.setOwner("try-held", {});
    world.aheadMs += 60_000;
    await world.work();
    expect(await world.phase("try-held")).toBe("Ready");
  });

  test("a write that was not answered is not sent again when its Cluster is gone", async () => {
    const world = await begin();
    await world.assign("try-gone", [namespace("try-gone"), configMap("try-gone/c")]);
    const deleting = async () => {
      await world.table.write([{ delete: keys.cluster("c1") }]);
      world.aheadMs += laterMs;
    };
    atFirst("PATCH", pathOf("try-gone", "c"), deleting, busy);
    await world.work();
    expect(asked("PATCH", "try-gone")).toHaveLength(1);
    expect(await front.fixture.statusOf(pathOf("try-gone", "c"))).toBe(404);
  });

  test("a worker whose reads hung while another worker had the lease does not try its deletion again", async () => {
    const world = await begin();
    await toPrune(world, "try-still");
    const still = Promise.withResolvers<void>();
    let isStill = false;
    const table = new Proxy(world.table, {
      get(inner, name: keyof Table) {
        const member = inner[name] as unknown;
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          if (isStill) await still.promise;
          return member.apply(inner, args);
        };
      },
    });
    const another = async () => {
      isStill = true;
      world.aheadMs += 60_000;
      // Somebody has restored the object.
      const objects = [configMap("try-still/kept"), configMap("try-still/left", { k: "2" })];
      await world.assign("try-still", [namespace("try-still"), ...objects]);
      await world.work();
      expect((await world.sync("try-still"))?.observed).toMatchObject({ fence: 3, attempt: 3, phase: "Ready" });
      isStill = false;
      still.resolve();
    };
    atFirst("DELETE", pathOf("try-still", "left"), another, busy);
    await expect(world.work({ table })).rejects.toThrow("was lost");
    expect(asked("DELETE", "try-still")).toHaveLength(1);
    expect(await front.fixture.statusOf(pathOf("try-still", "left"))).toBe(200);
    expect((await world.sync("try-still"))?.observed).toMatchObject({ fence: 3, phase: "Ready" });
  });

  test("writes that wait for a connection are not sent when a freeze begins meanwhile", async () => {
    const world = await begin();
    await world.assign("try-queue", [namespace("try-queue")]);
    await world.work();
    const many = Array.from({ length: 30 }, (_, index) => configMap(`try-queue/c${index}`));
    await world.assign("try-queue", [namespace("try-queue"), ...many]);
    const waiting: ServerResponse[] = [];
    front.api.attack((request, response) => {
      if (request.method !== "PATCH" || !request.url?.startsWith(pathOf("try-queue", ""))) return false;
      request.resume();
      waiting.push(response);
      if (waiting.length === sockets) {
        void world.setFreezes({ freezes: [freeze] }).then(() => {
          world.aheadMs += laterMs;
          for (const each of waiting) busy(each);
        });
      }
      if (waiting.length > sockets) busy(response);
      return true;
    });
    await world.work();
    expect(asked("PATCH", "try-queue")).toHaveLength(sockets);
    expect((await world.sync("try-queue"))?.observed).toMatchObject({ phase: "Applying", reason: "Frozen" });
  });

  test("a run that is cut off ends after its last write, and only then releases the lease", async () => {
    const world = await begin();
    const objects = Array.from({ length: 20 }, (_, index) => configMap(`try-lane/c${index}`, { k: "old" }));
    await world.assign("try-lane", [namespace("try-lane"), ...objects]);
    const order: string[] = [];
    const free = async (): Promise<boolean> => (await world.lease())?.owner === undefined;
    const suspending = async () => {
      await world.suspend("try-lane");
      world.aheadMs += laterMs;
      // The other writes have been refused by then. A run that did not wait for this write would have released the lease.
      for (const end = Date.now() + 1500; Date.now() < end && !(await free()); await sleep(50));
      order.push("the last one is answered");
    };
    atFirst("PATCH", pathOf("try-lane", "c0"), suspending, busy);
    await world.work();
    order.push("the run ends");
    expect(order).toEqual(["the last one is answered", "the run ends"]);
    expect(await free()).toBe(true);
    expect((await world.sync("try-lane"))?.observed).toMatchObject({ phase: "Applying", reason: "Suspended" });
    expect(asked("PATCH", "try-lane").filter((request) => request.includes("/c0?"))).toHaveLength(1);
  });
});
