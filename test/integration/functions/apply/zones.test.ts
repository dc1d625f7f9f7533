/** A worker leaves clusters of another zone alone, and the worker of `home` reports zones that do not exist. */

import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import { expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);
const installation = "starling.111122223333.eu-west-1";
const homeOf = (...others: string[]) => ({ own: "home", others });

/** Registers the cluster in a zone. */
async function moveTo(zone: string): Promise<void> {
  const row = await worker.world.table.get(keys.cluster("c1"));
  if (row === undefined) throw new Error("the cluster is not registered");
  const { server, caData } = worker.endpoint;
  const spec = {
    endpoint: { server, caData: caData ?? "", token: { secret: "starling/clusters/c1" } },
    access: { zone },
  };
  await worker.world.table.write([{ put: { ...clusterRow(spec), version: row.version + 1 } }]);
}

/** The connector that workers of this zone really have. */
async function connectorIn(zone: string) {
  const { credentials, server, caData = "" } = worker.endpoint;
  if (!("token" in credentials)) throw new Error("the fixture has no token");
  const token = await credentials.token({ refresh: false });
  const read = async () => clusterSecret({ server, caData, token });
  const access = { sts: new STSClient({ region: "eu-west-1" }), eks: () => new EKSClient({ region: "eu-west-1" }) };
  const eks = new EksAccess({ ...access, clock: systemClock, installation });
  return new KubeConnector({ secrets: { read }, eks, clock: systemClock, installation, zone });
}

test("a cluster that moved to another zone gets no request from a late message, and its rows stay due", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await moveTo("spoke");
  const before = await worker.world.sync("web");
  worker.host.clearRequests();
  for (const zone of [homeOf("spoke"), { own: "fixed", others: [] }]) {
    expect(await worker.world.work({ zone, connector: await connectorIn(zone.own), receives: 1 })).toBeUndefined();
    expect(worker.host.requests()).toEqual([]);
    expect(await worker.world.sync("web")).toEqual(before);
    expect(worker.world.sender.take()).toEqual([]);
    expect(await worker.world.lease()).not.toHaveProperty("owner");
  }
  const spoke = { own: "spoke", others: [] };
  await worker.world.work({ zone: spoke, connector: await connectorIn("spoke") });
  expect(await worker.world.phase("web")).toBe("Ready");
});

test("home reports a cluster of a zone that the installation does not have as unreachable, and asks it nothing", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await moveTo("gone");
  worker.host.clearRequests();
  await worker.world.work({ zone: homeOf("spoke"), connector: await connectorIn("home") });
  expect(worker.host.requests()).toEqual([]);
  expect(await worker.observed()).toMatchObject({
    phase: "Unreachable",
    reason: "ZoneNotFound",
    message: expect.stringMatching(
      /^spec\.access\.zone names a zone that the installation does not have: gone; add it/,
    ),
  });
});
