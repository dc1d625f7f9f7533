/** A worker leaves clusters of another zone alone, and the worker of `home` reports zones that do not exist. */

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { EKSClient } from "@aws-sdk/client-eks";
import { S3Client } from "@aws-sdk/client-s3";
import { STSClient } from "@aws-sdk/client-sts";
import { expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { zonePulse } from "#functions/apply/worker/zone-pulse.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

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

/** The settings of a client of AWS whose service is at this port. */
function placed(port: number) {
  const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };
  return { endpoint: `http://127.0.0.1:${port}`, credentials };
}

/** The connector that workers of this zone really have. */
async function connectorIn(zone: string, served: ServedNames = new Map(), stsPort?: number) {
  const { credentials, server, caData = "" } = worker.endpoint;
  if (!("token" in credentials)) throw new Error("the fixture has no token");
  const token = await credentials.token({ refresh: false });
  const read = async () => clusterSecret({ server, caData, token });
  const access = {
    sts: new STSClient({ region: "eu-west-1", maxAttempts: 1, ...(stsPort === undefined ? {} : placed(stsPort)) }),
    eks: () => new EKSClient({ region: "eu-west-1" }),
  };
  const eks = new EksAccess({ ...access, clock: systemClock, installation });
  return new KubeConnector({
    secrets: { read },
    eks,
    clock: systemClock,
    installation,
    addresses: clusterAddresses,
    zone,
    served,
  });
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

test("a cluster that moves while a worker is at it begins nothing more there, and does not count as unreachable", async () => {
  await moveTo("home");
  await worker.world.assign("api", [namespace("shop"), configMap("shop/api")]);
  await worker.world.assign("web", [configMap("shop/web")]);
  const real = await connectorIn("home");
  let connections = 0;
  const connector = {
    connect: async (...given: Parameters<typeof real.connect>) => {
      connections++;
      const client = await real.connect(...given);
      if (connections === 1) await moveTo("spoke");
      return client;
    },
    distrust() {},
  };
  const before = await worker.world.sync("web");
  await worker.world.work({ zone: homeOf("spoke"), connector });
  expect(connections).toBe(1);
  expect(await worker.world.phase("api")).toBe("Ready");
  expect(await worker.world.sync("web")).toEqual(before);
  expect(worker.members()).toEqual(["ConfigMap api", "Namespace shop"]);
  const isReachable = expect.objectContaining({ type: "Reachable", status: "True" });
  expect((await worker.world.table.get(keys.cluster("c1")))?.status.conditions).toEqual([isReachable]);
  expect(await worker.world.lease()).not.toHaveProperty("owner");
  await worker.world.work({ zone: { own: "spoke", others: [] }, connector: await connectorIn("spoke") });
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
      /^spec\.access\.zone names a zone that the installation does not have: gone; add gone to the setting zones and deploy, or correct spec\.access\.zone of Cluster \S+$/,
    ),
  });
});

test("a discovered cluster of a zone that the installation does not have names the ClusterDiscovery that put it there", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  const row = await worker.world.table.get(keys.cluster("c1"));
  if (row === undefined) throw new Error("the cluster is not registered");
  const arn = "arn:aws:eks:eu-west-1:444455556666:cluster/c1";
  const discovered = { by: "all", arn, labels: {}, values: {}, access: { zone: "gone" } };
  const found: ClusterRow = { ...clusterRow({}), discovered, version: row.version + 1 };
  await worker.world.table.write([{ put: found }]);
  await worker.world.work({ zone: homeOf("spoke"), connector: await connectorIn("home") });
  expect(await worker.observed()).toMatchObject({
    reason: "ZoneNotFound",
    message:
      "ClusterDiscovery all put the cluster into a zone that the installation does not have: gone; add gone to the setting zones and deploy, correct spec.access of ClusterDiscovery all, or write spec.access.zone into Cluster c1",
  });
});

test("a cluster whose zone does not reach STS is unreachable, keeps its objects, and catches up when STS answers again", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await moveTo("spoke");
  const zone = { own: "spoke", others: [] };
  await worker.world.work({ zone, connector: await connectorIn("spoke") });
  const row = await worker.world.table.get(keys.cluster("c1"));
  if (row === undefined) throw new Error("the cluster is not registered");
  const spec = {
    eks: { arn: "arn:aws:eks:eu-west-1:111122223333:cluster/c1" },
    access: { zone: "spoke", role: { name: "starling/clusters/c1" } },
  };
  await worker.world.table.write([
    { put: { ...clusterRow(spec), status: row.status, uid: row.uid, version: row.version + 1 } as ClusterRow },
  ]);
  await worker.world.assign("web", [namespace("shop"), configMap("shop/d")]);
  worker.host.clearRequests();
  await worker.world.work({ zone, connector: await connectorIn("spoke", new Map(), await closedPort()) });
  expect(worker.host.requests()).toEqual([]);
  const away = { reason: "StsUnavailable", message: expect.stringContaining("ECONNREFUSED") };
  expect(await worker.observed()).toMatchObject({ phase: "Unreachable", ...away });
  expect((await worker.world.table.get(keys.cluster("c1")))?.status.conditions).toMatchObject([
    { type: "Reachable", status: "False", ...away },
  ]);
  await moveTo("spoke");
  worker.world.aheadMs += 700_000;
  await worker.world.work({ zone, connector: await connectorIn("spoke") });
  expect(await worker.world.phase("web")).toBe("Reachable");
  expect(worker.members()).toEqual(["ConfigMap c", "Namespace shop"]);
});

test("a cluster whose zone does not reach S3 is unreachable, keeps its objects, and catches up when S3 answers again", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await moveTo("spoke");
  const spoke = { zone: { own: "spoke", others: [] }, connector: await connectorIn("spoke") };
  await worker.world.work(spoke);
  await worker.world.assign("web", [namespace("shop"), configMap("shop/d")]);
  const client = new S3Client({ ...placed(await closedPort()), region: "eu-west-1", maxAttempts: 1 });
  worker.host.clearRequests();
  await worker.world.work({ ...spoke, blobs: new S3BlobStore(client, "blobs") });
  expect(worker.host.requests().filter(({ method }) => method !== "GET")).toEqual([]);
  const away = { reason: "BlobStoreBusy", message: expect.stringContaining("S3 refused all tries") };
  expect(await worker.observed()).toMatchObject({ phase: "Unreachable", ...away });
  worker.world.aheadMs += 700_000;
  await worker.world.work(spoke);
  expect(await worker.world.phase("web")).toBe("Reachable");
  await worker.world.assign("web", [namespace("shop"), configMap("shop/d")]);
  await worker.world.work(spoke);
  expect(worker.members()).toEqual(["ConfigMap d", "Namespace shop"]);
});

test("a worker that runs again asks a cluster that its zone had left whether it answers, and applies nothing", async () => {
  await moveTo("spoke");
  const spoke = { zone: { own: "spoke", others: [] }, connector: await connectorIn("spoke") };
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work(spoke);
  await worker.world.assign("web", [namespace("shop"), configMap("shop/d")]);
  await worker.world.pause("web", { zone: "spoke", reason: "ZoneDown: zone spoke: no worker has ever run" });
  worker.host.clearRequests();
  await worker.world.work(spoke);
  expect(worker.host.requests().filter(({ method }) => method !== "GET")).toEqual([]);
  expect(await worker.observed()).toMatchObject({ phase: "Reachable", attempt: 2 });
  expect((await worker.world.sync("web"))?.stateSk).toMatch(/^Reachable#/);
  expect(worker.world.sender.take()).toContainEqual(expect.objectContaining({ to: "report" }));
  const before = await worker.world.sync("web");
  await worker.world.work(spoke);
  expect(await worker.world.sync("web")).toEqual(before);
});

test("a worker says once a minute that its zone works, and only where there is more than one zone", async () => {
  const { table } = worker.world;
  let now = new Date("2026-11-21T08:00:00.000Z");
  const clock = { ...systemClock, now: () => now };
  await zonePulse({ zone: homeOf(), table, clock })();
  expect(await table.get(keys.zone("home"))).toBeUndefined();
  const pulses = [homeOf("spoke"), { own: "spoke", others: [] }].map((zone) => zonePulse({ zone, table, clock }));
  for (const seconds of [0, 59, 60]) {
    now = new Date(Date.UTC(2026, 10, 21, 8, 0, seconds));
    for (const pulse of pulses) await pulse();
  }
  for (const zone of ["home", "spoke"])
    expect(await table.get(keys.zone(zone))).toMatchObject({ workedAt: "2026-11-21T08:01:00.000Z", version: 2 });
});

test("home reports a cluster whose zone serves no such name, deletes nothing, and leaves it to the zone when that serves it", async () => {
  await moveTo("spoke");
  const spoke = { zone: { own: "spoke", others: [] }, connector: await connectorIn("spoke") };
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work(spoke);
  await worker.world.assign("web", [namespace("shop"), configMap("shop/d")]);
  worker.host.clearRequests();
  const narrow: ServedNames = new Map([["spoke", ["eu-*", "fra-1"]]]);
  const home = { zone: { ...homeOf("spoke"), served: narrow }, connector: await connectorIn("home", narrow) };
  await worker.world.work(home);
  expect(worker.host.requests()).toEqual([]);
  expect(await worker.observed()).toMatchObject({
    phase: "Unreachable",
    reason: "NameNotServed",
    message:
      "zone spoke of the Cluster serves clusters named eu-*, fra-1, and not c1; name another zone, or an operator adds the name to the field clusterNames of zone spoke in the setting zones and deploys",
  });
  expect((await worker.world.table.get(keys.cluster("c1")))?.status.conditions).toMatchObject([
    { type: "Reachable", status: "False", reason: "NameNotServed" },
  ]);
  expect(worker.members()).toEqual(["ConfigMap c", "Namespace shop"]);

  const wide: ServedNames = new Map([["spoke", ["eu-*", "c*"]]]);
  const before = await worker.world.sync("web");
  await worker.world.work({ zone: { ...homeOf("spoke"), served: wide }, connector: await connectorIn("home", wide) });
  expect(await worker.world.sync("web")).toEqual(before);
  worker.world.aheadMs += 3_600_000;
  await worker.world.work(spoke);
  expect((await worker.world.table.get(keys.cluster("c1")))?.status.conditions).toMatchObject([
    { type: "Reachable", status: "True" },
  ]);
});

test("a Sync that waits for a cluster of a wrong zone is tried at once when people correct the zone or the address", async () => {
  const { table, sender } = worker.world;
  const api = apiFixture(table);
  const { server, caData = "" } = worker.endpoint;
  const apply = async (zone: string, to: string = server) => {
    api.setNow(worker.world.clock.now().toISOString());
    const spec = { endpoint: { server: to, caData, token: { secret: "starling/clusters/c1" } }, access: { zone } };
    const document = { apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata: { name: "c1" }, spec };
    expect(await api.call("POST", "/v1/apply", { documents: [document] })).toMatchObject({ status: 200 });
    return api.takeMessages().filter(({ to: queue }) => queue === "apply");
  };
  const reachable = async () => (await table.get(keys.cluster("c1")))?.status.conditions[0];
  const home = { zone: homeOf("spoke"), connector: await connectorIn("home") };
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await apply("gone");
  for (let tries = 0; tries < 8; tries++) {
    await worker.world.work(home);
    worker.world.aheadMs += 301_000;
  }
  await worker.world.work(home);
  expect(await reachable()).toMatchObject({ reason: "ZoneNotFound", message: expect.stringContaining(": gone;") });
  const waiting = await worker.world.observedOf("web");
  expect(Date.parse(waiting.nextAt ?? "") - Date.parse(waiting.at)).toBe(300_000);

  // Another wrong zone has the same reason, and its own message.
  expect(await apply("lost")).toEqual([{ to: "apply", cluster: "c1" }]);
  await worker.world.work(home);
  expect(await reachable()).toMatchObject({ reason: "ZoneNotFound", message: expect.stringContaining(": lost;") });

  // The right zone, and an address at which nothing listens.
  const [nowhere] = await Promise.all([closedPort(), apply("spoke")]);
  expect(await apply("spoke", `https://127.0.0.1:${nowhere}`)).toEqual([]);
  const spoke = { zone: { own: "spoke", others: [] }, connector: await connectorIn("spoke") };
  const dueBefore = (await worker.world.sync("web"))?.dueKey ?? "";
  expect(dueAtOf(dueBefore) <= worker.world.clock.now().toISOString()).toBe(true);
  await worker.world.work(spoke);
  expect(await reachable()).toMatchObject({ status: "False", message: expect.stringContaining(String(nowhere)) });

  sender.take();
  expect(await apply("spoke")).toEqual([{ to: "apply", cluster: "c1" }]);
  await worker.world.work(spoke);
  expect(await reachable()).toMatchObject({ status: "True" });
  // The planner gives it its next turn.
  expect(await worker.world.phase("web")).toBe("Reachable");
  expect(sender.take()).toContainEqual(expect.objectContaining({ to: "report" }));
});

/** A port at which nothing listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
