import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { applySet } from "#functions/apply/engine/apply-set.ts";
import { detectDrift } from "#functions/apply/engine/detect-drift.ts";
import { ensureParent } from "#functions/apply/engine/ensure-parent.ts";
import { pruneSet } from "#functions/apply/engine/prune-set.ts";
import { type ClusterHost, type Interceptor, startClusterHost } from "#local/cluster/cluster-host.ts";
import { emptyInventory } from "#shared/domain/inventory.ts";
import { objectIdOf, stringAt } from "#shared/domain/kube-object.ts";
import { setIdOf } from "#shared/domain/parent-object.ts";
import {
  type ClusterFixture,
  claimFor,
  clusterFixture,
  configMap,
  definition,
  deployment,
  inSeconds,
  namespace,
  recorded,
  systemClock,
  widget,
} from "#test/support/cluster-fixture.ts";
import { startCuttableProxy } from "#test/support/cuttable-proxy.ts";

let host: ClusterHost;
let cluster: ClusterFixture;

beforeEach(async () => {
  host = await startClusterHost({ controllers: "off" });
  const { server, caData, token } = host.addCluster("test");
  cluster = clusterFixture({ server, caData, credentials: { token: async () => token } });
});

afterEach(async () => {
  cluster.close();
  await host.stop();
});

/** Every n-th request in a phase fails in a way that passes. */
function every(n: number, phase: "before" | "after", fault: Awaited<ReturnType<Interceptor>>): Interceptor {
  let seen = 0;
  return (request) => {
    if (request.phase !== phase) return "pass";
    seen += 1;
    return seen % n === 0 ? fault : "pass";
  };
}

const answer = (status: number, reason: string, message: string) => ({
  status,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", code: status, reason, message },
});

const faults: readonly (readonly [string, () => Interceptor])[] = [
  ["connections lost before the effect", () => every(3, "before", "reset")],
  ["connections lost after the effect", () => every(3, "after", "reset")],
  ["503 before the effect", () => every(3, "before", answer(503, "ServiceUnavailable", "try later"))],
  ["504 after the effect", () => every(3, "after", answer(504, "Timeout", "request did not complete"))],
  ["429", () => every(4, "before", answer(429, "TooManyRequests", "slow down"))],
  ["etcd changing its leader", () => every(4, "after", answer(500, "", "etcdserver: leader changed"))],
];

describe("an API server with faults that pass", () => {
  it.each(faults)("%s: the set ends as it would have", async (_name, fault) => {
    const claim = claimFor("faults");
    const group = "faults.example.com";
    const keep = [namespace("f"), definition(group), deployment("f/web"), widget(group, "f/w")];
    const objects = [...keep, ...["a", "b", "c", "d", "e", "f", "g"].map((name) => configMap(`f/${name}`))];
    const inventory = emptyInventory(setIdOf(claim));
    const settings = { setId: inventory.setId, clock: systemClock, deadline: inSeconds(25) };
    host.intercept(fault());

    expect(await ensureParent(cluster.client, { claim, groupKinds: [] })).toMatchObject({ kind: "written" });
    const applied = await applySet(cluster.client, { objects, inventory, ...settings });
    expect(applied.outcome).toBe("applied");
    const full = recorded(inventory, applied);
    expect(await detectDrift(cluster.client, full)).toMatchObject({ clean: true });
    const kept = new Set(keep.map((object) => objectIdOf(object).kind));
    const pruned = await pruneSet(cluster.client, {
      candidates: full.entries.filter(({ id }) => !kept.has(id.kind)),
      unrecorded: [],
      keepUids: new Set(),
      claim,
      ...settings,
    });
    expect(pruned).toMatchObject({ outcome: "done" });

    host.intercept(undefined);
    const left = host.objects("test").filter((object) => stringAt(object, "metadata", "namespace") === "f");
    expect(left.map((object) => `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`).sort()).toEqual([
      "Deployment web",
      "Widget w",
    ]);
  });

  it("a cluster that goes away in the middle stops the run early, and says so", async () => {
    const inventory = emptyInventory(setIdOf(claimFor("away")));
    const names = Array.from({ length: 60 }, (_each, index) => configMap(`away/c${index}`));
    const settings = { setId: inventory.setId, inventory, clock: systemClock, deadline: inSeconds(25) };
    const target = new URL(cluster.endpoint.server);
    const proxy = await startCuttableProxy(Number(target.port));
    target.port = String(proxy.port);
    const throughProxy = clusterFixture({ ...cluster.endpoint, server: target.href });
    let writes = 0;
    host.intercept(({ method, phase }) => {
      if (method !== "PATCH" || phase !== "after") return "pass";
      writes += 1;
      if (writes === 20) proxy.cut();
      return "pass";
    });
    const result = await applySet(throughProxy.client, { objects: [namespace("away"), ...names], ...settings });
    throughProxy.close();
    expect(result.outcome).toBe("unreachable");
    expect(result.objects).toHaveLength(61);
    expect(result.objects.filter(({ outcome }) => outcome === "skipped").length).toBeGreaterThan(10);
  });
});
