import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type ClusterConnection,
  type ClusterFaults,
  type ClusterHost,
  startClusterHost,
} from "#local/cluster/cluster-host.ts";
import { applyTo, clusterRequest, readFrom } from "#test/support/cluster-request.ts";

let host: ClusterHost;
let cluster: ClusterConnection;

beforeEach(async () => {
  host = await startClusterHost({ controllers: "off" });
  host.addCluster("a");
  cluster = await host.openPort("a");
});

afterEach(() => host.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";

function configMap(name: string, data: Record<string, string> = { k: "1" }) {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

/** The status of a request over a connection of its own, or the code of the error that ends it. */
async function outcome(path = configMaps): Promise<string | number> {
  try {
    return (await clusterRequest(cluster, { path, headers: { connection: "close" } })).status;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

describe("a port of a cluster's own", () => {
  test("is another address of the same cluster", async () => {
    const other = host.addCluster("b");
    const own = await host.openPort("b");
    expect(own.server).not.toBe(other.server);
    await applyTo(own, `${configMaps}/x`, configMap("x"));
    expect(await readFrom(other, `${configMaps}/x`)).toMatchObject({ data: { k: "1" } });
    expect(await host.openPort("b")).toEqual(own);
    expect(host.connections()).toContainEqual(own);
  });

  test("closes with its cluster", async () => {
    expect(await outcome()).toBe(200);
    host.removeCluster("a");
    expect(await outcome()).toBe("ECONNREFUSED");
  });

  test("is asked for before the faults that need it", async () => {
    host.addCluster("b");
    for (const faults of [{ network: "hangs" }, { certificate: "expired" }] satisfies ClusterFaults[]) {
      await expect(host.setFaults("b", faults)).rejects.toThrow('cluster "b" has no port of its own: call openPort');
    }
  });
});
