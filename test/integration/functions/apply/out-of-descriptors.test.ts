/** A sandbox that has run out of file descriptors does not report that as a fault of a cluster. */
import { type ClusterConnection, startClusterHost } from "@starling/embedded-apiserver";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import { startAws } from "#test/bench/start-aws.ts";
import { BenchWorker } from "#test/bench/worker.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { startLimitedSandbox } from "#test/support/limited-sandbox.ts";

const descriptors = 128;
const aws = forAllTests(startAws);
const host = forAllTests(() => startClusterHost({ controllers: "off" }));
const sandbox = forAllTests(() => {
  const { environment, ...endpoints } = aws.address;
  return startLimitedSandbox({ descriptors, environment, aws: endpoints });
});
let clients: AwsClients;
beforeAll(() => {
  clients = awsClients(aws.address);
});
afterEach(() => sandbox.setHoarding("off"));

interface Registered {
  readonly cluster: string;
  readonly worker: BenchWorker;
}

let registered = 0;
/** A cluster that waits for its first apply. */
async function register(addressOf = ({ server }: ClusterConnection) => server): Promise<Registered> {
  registered += 1;
  const cluster = `c${registered}`;
  const worker = new BenchWorker(aws.address, "set", { cluster, aws: clients });
  const connection = host.addCluster(cluster);
  await worker.register({ ...connection, server: addressOf(connection) });
  await worker.assign([configMap("default/one"), configMap("default/two")]);
  return { cluster, worker };
}

const requestsTo = (cluster: string) => host.requests().filter((request) => request.cluster === cluster).length;
const table = () => new DynamoTable(clients.dynamo, aws.address.table);
const rowOf = (cluster: string) => table().get(keys.cluster(cluster));

/** Ends the lease, as time would: a worker that fails does not release it. */
async function endLease(cluster: string): Promise<void> {
  await table().update({ update: keys.lease(cluster), set: { leaseUntil: new Date(0).toISOString() } });
}

describe("a sandbox without free file descriptors", () => {
  test("the function returns the message of a cluster that it could not ask, reports nothing about it, and goes on later", async () => {
    const [one, other] = [await register(), await register()];
    expect(await sandbox.invoke(one.cluster)).toBe(0);
    const before = await rowOf(other.cluster);
    await sandbox.setHoarding("on");
    for (let times = 0; times < 4; times += 1) {
      expect(await sandbox.invoke(other.cluster)).toBe(1);
      await endLease(other.cluster);
    }
    expect(requestsTo(other.cluster)).toBe(0);
    await expect(other.worker.observed()).rejects.toThrow("was never checked");
    expect(await rowOf(other.cluster)).toEqual(before);
    await sandbox.setHoarding("off");
    expect(await sandbox.invoke(other.cluster)).toBe(0);
    await other.worker.checkApplied();
    expect(await other.worker.deaths()).toBeUndefined();
  });

  test("the function leaves the observed state of a cluster unchanged", async () => {
    const { cluster, worker } = await register();
    expect(await sandbox.invoke(cluster)).toBe(0);
    const before = [await worker.observed(), await rowOf(cluster)];
    await worker.requestCheck();
    await sandbox.setHoarding("on");
    expect(await sandbox.invoke(cluster)).toBe(1);
    expect([await worker.observed(), await rowOf(cluster)]).toEqual(before);
  });

  test("the function does not report a host name that it could not resolve as missing", async () => {
    const [one, named] = [await register(), await register(({ server }) => server.replace("127.0.0.1", "localhost"))];
    expect(await sandbox.invoke(one.cluster)).toBe(0);
    await sandbox.setHoarding("on");
    expect(await sandbox.invoke(named.cluster)).toBe(1);
    await expect(named.worker.observed()).rejects.toThrow("was never checked");
  });
});
