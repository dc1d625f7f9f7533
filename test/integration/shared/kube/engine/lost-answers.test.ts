import { type Interceptor, startClusterHost } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import {
  claimFor,
  configMap,
  definition,
  deployment,
  endpointOf,
  inSeconds,
  namespace,
  widget,
} from "#test/support/cluster-fixture.ts";
import { startCuttableProxy } from "#test/support/cuttable-proxy.ts";
import { engineWorld, inventoryOf, pruneRequest, recorded } from "#test/support/engine-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const host = forEachTest(() => startClusterHost({ controllers: "off" }));
const cluster = forEachTest(async () => engineWorld({ endpoint: endpointOf(host.addCluster("test")) }));

/** Makes every n-th request in a phase fail temporarily. */
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
  ["connections that break before the effect", () => every(3, "before", "reset")],
  ["connections that break after the effect", () => every(3, "after", "reset")],
  ["the answer 503 before the effect", () => every(3, "before", answer(503, "ServiceUnavailable", "try later"))],
  ["the answer 504 after the effect", () => every(3, "after", answer(504, "Timeout", "request did not complete"))],
  ["the answer 429", () => every(4, "before", answer(429, "TooManyRequests", "slow down"))],
  ["a new leader of etcd", () => every(4, "after", answer(500, "", "etcdserver: leader changed"))],
];

describe("an API server with temporary faults", () => {
  test.each(faults)("the result of an apply and a prune is the same despite %s", async (_name, fault) => {
    const claim = claimFor("faults");
    const group = "faults.example.com";
    const keep = [namespace("f"), definition(group), deployment("f/web"), widget(group, "f/w")];
    const objects = [...keep, ...["a", "b", "c", "d", "e", "f", "g"].map((name) => configMap(`f/${name}`))];
    const deadline = inSeconds(25);
    host.intercept(fault());

    expect(await ensureParent(cluster.client, { claim, groupKinds: [] })).toMatchObject({ kind: "written" });
    const applied = await cluster.apply("faults", objects, { deadline });
    expect(applied.outcome).toBe("applied");
    const inventory = recorded(inventoryOf("faults"), applied);
    expect(await detectDrift(cluster.client, inventory)).toMatchObject({ clean: true });
    const pruned = await pruneSet(cluster.client, pruneRequest({ claim, inventory }, keep, { deadline }));
    expect(pruned).toMatchObject({ outcome: "done" });

    host.intercept(undefined);
    const left = host.objects("test").filter((object) => stringAt(object, "metadata", "namespace") === "f");
    expect(left.map((object) => `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`).sort()).toEqual([
      "Deployment web",
      "Widget w",
    ]);
  });

  test("a cluster that becomes unreachable during a run ends the run early as unreachable", async () => {
    const names = Array.from({ length: 60 }, (_each, index) => configMap(`away/c${index}`));
    const target = new URL(cluster.endpoint.server);
    const proxy = await startCuttableProxy(Number(target.port));
    target.port = String(proxy.port);
    const throughProxy = engineWorld({ endpoint: { ...cluster.endpoint, server: target.href } });
    let writes = 0;
    host.intercept(({ method, phase }) => {
      if (method !== "PATCH" || phase !== "after") return "pass";
      writes += 1;
      if (writes === 20) proxy.cut();
      return "pass";
    });
    const result = await throughProxy.apply("away", [namespace("away"), ...names], { deadline: inSeconds(25) });
    await throughProxy.stop();
    expect(result.outcome).toBe("unreachable");
    expect(result.objects).toHaveLength(61);
    expect(result.objects.filter(({ outcome }) => outcome === "skipped").length).toBeGreaterThan(10);
  });
});
