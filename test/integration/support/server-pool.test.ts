import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import {
  type ClusterFixture,
  clusterFixture,
  configMap,
  definition,
  endpointOf,
  manifest,
  namespace,
} from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { borrowAt } from "#test/support/server-pool/borrow-server.ts";
import { startServerPool } from "#test/support/server-pool/server-pool.ts";
import { restoreServer, stateOf } from "#test/support/server-pool/server-state.ts";

const configMaps = "/api/v1/namespaces/left/configmaps";
const ownNamespace = "/api/v1/namespaces/default";

describe.skipIf(kubeAssets === undefined)("a pool of servers, on kube-apiserver", () => {
  const server = forAllTests(() => {
    if (kubeAssets === undefined) throw new Error("there is no kube-apiserver here");
    return startKubeApiServer({ assets: kubeAssets });
  });

  function own(): ClusterFixture {
    return clusterFixture({ endpoint: endpointOf(server) });
  }

  test("the pool does not reuse a server whose own objects were changed", async () => {
    const { raw, stop } = own();
    const state = await stateOf(server);
    const label = (team: string | null) =>
      raw("PATCH", ownNamespace, { body: { metadata: { labels: { team } } }, as: "merge-patch" });
    await label("shop");
    expect(await restoreServer(server, state)).toBe(false);
    await label(null);
    expect(await restoreServer(server, state)).toBe(true);
    await stop();
  });

  test("the pool does not reuse a server that had a CustomResourceDefinition", async () => {
    const { raw, stop } = own();
    const state = await stateOf(server);
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await raw("POST", path, { body: definition("left.example.com") });
    expect(await restoreServer(server, state)).toBe(false);
    await stop();
  });

  test("the pool gives a used server to the next borrower, without the old objects, and at another address", async () => {
    const folder = await mkdtemp(join(tmpdir(), "starling-pool-"));
    const socketPath = join(folder, "pool");
    let starts = 0;
    const pool = await startServerPool(socketPath, async () => {
      starts += 1;
      return server;
    });
    /** @returns the uid of the server, and its address. */
    async function borrowing(use: (fixture: ClusterFixture) => Promise<unknown>) {
      const borrowed = await borrowAt(socketPath);
      const fixture = clusterFixture({ endpoint: endpointOf(borrowed) });
      const uid = stringAt(await fixture.raw("GET", "/api/v1/namespaces/kube-system"), "metadata", "uid");
      await use(fixture);
      await fixture.stop();
      await borrowed.stop();
      return { uid, address: borrowed.server };
    }
    const held = manifest({ ...configMap("left/held"), metadata: { name: "held", finalizers: ["example.com/held"] } });
    const job = {
      ...{ apiVersion: "batch/v1", kind: "Job", metadata: { name: "once" } },
      spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "a", image: "a:1" }] } } },
    };
    const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "left:over" } };
    const first = await borrowing(async ({ raw }) => {
      await raw("POST", "/api/v1/namespaces", { body: namespace("left") });
      await raw("POST", configMaps, { body: held });
      await raw("POST", "/apis/batch/v1/namespaces/left/jobs", { body: job });
      await raw("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", { body: { ...role, rules: [] } });
    });
    const second = await borrowing(async ({ raw, statusOf }) => {
      expect(await statusOf("/api/v1/namespaces/left")).toBe(404);
      expect(await statusOf(`${configMaps}/held`)).toBe(404);
      expect(await statusOf("/apis/batch/v1/namespaces/left/jobs/once")).toBe(404);
      expect(await statusOf("/apis/rbac.authorization.k8s.io/v1/clusterroles/left:over")).toBe(404);
      await raw("POST", "/api/v1/namespaces", { body: namespace("left") });
      await raw("POST", configMaps, { body: configMap("left/held") });
    });
    expect(second.uid).toBe(first.uid);
    expect(second.address).not.toBe(first.address);
    expect(starts).toBe(1);
    await expect(fetch(`${first.address}/version`)).rejects.toThrow("fetch failed");
    await pool.stop();
    await rm(folder, { recursive: true, force: true });
  });
});
