/** The connector reaches clusters by IAM: with STS, EKS, and API servers that authenticate as EKS does. */

import { type ClusterConnection, type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { type AccessEntry, clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { clusterAddresses } from "#shared/adapters/net/address-rules.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import {
  applyArn,
  homeAccount,
  homeCluster,
  installation,
  spokeCluster,
  spokeRole,
  startEksWorld,
} from "#test/support/eks-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const arn = spokeCluster("spoke");
const homeArn = homeCluster("home", "us-east-2");
const admin: AccessEntry = {
  principalArn: spokeRole,
  username: "starling:{{SessionName}}",
  kubernetesGroups: ["starling"],
  policies: [clusterAdminPolicy],
};
const world = forEachTest(startEksWorld);
let host: ClusterHost;
let connection: ClusterConnection;
let connector: KubeConnector;
let refusals: string[];
beforeEach(async () => {
  refusals = [];
  host = await startClusterHost({
    controllers: "off",
    authenticator: eksAuthenticator({
      clusters: world.clusters,
      stsEndpoint: world.server.endpoint,
      now: world.clock.now,
      arnOf: (cluster) => (cluster === "home" ? homeArn : arn),
      onRefusal: (_cluster, reason) => refusals.push(reason),
    }),
  });
  connection = host.addCluster("spoke");
  world.addCluster(arn, { endpoint: connection.server, caData: connection.caData, accessEntries: [admin] });
  connector = newConnector();
});
afterEach(() => host.stop());

function newConnector(): KubeConnector {
  const secrets = { read: () => Promise.reject(new Error("no secret is to be read")) };
  return new KubeConnector({
    secrets,
    eks: world.access(),
    clock: world.clock,
    installation,
    addresses: clusterAddresses,
    zone: "home",
  });
}

const spokeSpec: ClusterSpec = { eks: { arn }, access: { role: { name: "starling/clusters/apply" } } };

function connect(spec: ClusterSpec = spokeSpec): Promise<ClusterClient> {
  return connector.connect(clusterRow(spec), new Date(world.clock.now().getTime() + 3_600_000));
}

describe("a cluster of another account", () => {
  test("the cluster is reached by a session of its role: many requests need one DescribeCluster and one token", async () => {
    for (let i = 0; i < 5; i++) expect(await clusterUidOf(await connect())).toBe(connection.uid);
    expect(world.operations()).toEqual(["sts AssumeRole", "eks DescribeCluster", "sts GetCallerIdentity"]);
    expect(world.server.calls().map(({ region }) => region)).toEqual(["us-east-1", "eu-west-1", "eu-west-1"]);
  });

  test("the client goes on with one more AssumeRole when the session ends unexpectedly during a run", async () => {
    const client = await connect();
    await clusterUidOf(client);
    world.principals.expire(world.server.calls().at(-1)?.accessKeyId ?? "");
    world.pass(3);
    expect(await clusterUidOf(client)).toBe(connection.uid);
    expect(world.count("sts AssumeRole")).toBe(2);
  });

  test("the client goes on when its token is older than 15 minutes", async () => {
    const client = await connect();
    await clusterUidOf(client);
    world.pass(16);
    expect(await clusterUidOf(client)).toBe(connection.uid);
    expect(world.count("sts AssumeRole")).toBe(1);
  });

  test("a cluster without an access entry for the role answers 401, and STS is asked only once", async () => {
    world.addCluster(arn, { endpoint: connection.server, caData: connection.caData });
    const client = await connect();
    for (let i = 0; i < 3; i++)
      await expect(clusterUidOf(client)).rejects.toMatchObject({ status: 401, class: "auth" });
    // The authenticator of EKS knows roles without their paths.
    expect(refusals).toContain("no access entry for arn:aws:iam::444455556666:role/apply");
    expect(world.count("sts AssumeRole")).toBe(1);
    world.clusters.addAccessEntry(arn, admin);
    expect(await clusterUidOf(client)).toBe(connection.uid);
  });

  test("the token of one cluster is refused by another cluster", async () => {
    const other = host.addCluster("other");
    world.addCluster(`${arn}-2`, { endpoint: other.server, caData: other.caData, accessEntries: [admin] });
    const client = await connect({ ...spokeSpec, eks: { arn: `${arn}-2` } });
    // The host takes `other` for the cluster `spoke`, as the authenticator of that cluster would.
    await expect(clusterUidOf(client)).rejects.toMatchObject({ status: 401 });
    expect(refusals.at(-1)).toContain("expected 200, got 403");
  });

  test("a cluster that has moved is found again once its old address is gone", async () => {
    world.addCluster(arn, { endpoint: "https://127.0.0.1:9", caData: connection.caData, accessEntries: [admin] });
    await expect(clusterUidOf(await connect())).rejects.toMatchObject({ class: "unreachable" });
    world.addCluster(arn, { endpoint: connection.server, caData: connection.caData, accessEntries: [admin] });
    world.pass(2);
    expect(await clusterUidOf(await connect())).toBe(connection.uid);
    expect(world.count("eks DescribeCluster")).toBe(2);
  });

  test("a cluster with a new certificate authority is found again once the old one no longer vouches for it", async () => {
    const stranger = await startClusterHost({ controllers: "off" });
    const { caData } = stranger.addCluster("x");
    await stranger.stop();
    world.addCluster(arn, { endpoint: connection.server, caData, accessEntries: [admin] });
    await expect(clusterUidOf(await connect())).rejects.toMatchObject({ class: "unreachable" });
    world.addCluster(arn, { endpoint: connection.server, caData: connection.caData, accessEntries: [admin] });
    world.pass(2);
    expect(await clusterUidOf(await connect())).toBe(connection.uid);
  });

  test("a cluster is searched for again when another one answers at its address", async () => {
    await connect();
    connector.distrust(clusterRow(spokeSpec));
    world.pass(2);
    await connect();
    expect(world.count("eks DescribeCluster")).toBe(2);
  });
});

test("a cluster of Starling's own account is reached without a session", async () => {
  const home = host.addCluster("home");
  const accessEntries = [{ ...admin, principalArn: `arn:aws:iam::${homeAccount}:role/starling-control-apply` }];
  world.addCluster(homeArn, { endpoint: home.server, caData: home.caData, accessEntries });
  expect(await clusterUidOf(await connect({ eks: { arn: homeArn } }))).toBe(home.uid);
  expect(world.server.calls().map(({ operation, principalArn, region }) => [operation, principalArn, region])).toEqual([
    ["DescribeCluster", applyArn, "us-east-2"],
    ["GetCallerIdentity", applyArn, "us-east-2"],
  ]);
});

test("the name and groups of the access entry are Starling's identity in the cluster, and RBAC applies to them", async () => {
  const plain = { ...admin, policies: [] };
  world.addCluster(arn, { endpoint: connection.server, caData: connection.caData, accessEntries: [plain] });
  await expect(clusterUidOf(await connect())).rejects.toMatchObject({
    status: 403,
    message: expect.stringContaining('User "starling:starling-test" cannot get resource "namespaces"'),
  });
});
