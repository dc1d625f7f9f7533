import { once } from "node:events";
import { connect } from "node:net";
import {
  AssociateAccessPolicyCommand,
  CreateAccessEntryCommand,
  DescribeClusterCommand,
  type EKSClient,
  ListAccessEntriesCommand,
  ListClustersCommand,
} from "@aws-sdk/client-eks";
import { AssumeRoleCommand, GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import {
  applyArn,
  externalId,
  homeAccount,
  homeCluster,
  spokeAccount,
  spokeCluster,
  spokeRole,
  startEksWorld,
} from "#test/support/eks-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const world = forAllTests(startEksWorld);
let sts: STSClient;
let eks: EKSClient;
beforeAll(() => {
  sts = world.aws.sts;
  eks = world.aws.eks({ region: "eu-west-1", credentials: world.own });
  for (const name of ["c", "a", "b"]) {
    world.addCluster(homeCluster(name), { tags: { env: "test" } });
  }
  world.addCluster(homeCluster("elsewhere", "us-east-2"));
  world.addCluster(spokeCluster("theirs"), { status: "CREATING" });
});
afterAll(() => eks.destroy());

const desired = { RoleArn: spokeRole, RoleSessionName: "starling-test", ExternalId: externalId };

async function spokeEks(): Promise<EKSClient> {
  const { Credentials: given } = await sts.send(new AssumeRoleCommand(desired));
  const credentials = {
    accessKeyId: given?.AccessKeyId ?? "",
    secretAccessKey: given?.SecretAccessKey ?? "",
    sessionToken: given?.SessionToken ?? "",
  };
  return world.aws.eks({ region: "eu-west-1", credentials });
}

describe("STS", () => {
  test("GetCallerIdentity returns the caller", async () => {
    expect(await sts.send(new GetCallerIdentityCommand({}))).toMatchObject({
      Arn: applyArn,
      Account: homeAccount,
      UserId: expect.stringMatching(/^AROA\w{17}:apply$/),
    });
  });

  test("AssumeRole gives a trusted caller a session with its own identity", async () => {
    const answer = await sts.send(new AssumeRoleCommand(desired));
    const arn = `arn:aws:sts::${spokeAccount}:assumed-role/apply/starling-test`;
    expect(answer.AssumedRoleUser).toEqual({
      Arn: arn,
      AssumedRoleId: expect.stringMatching(/^AROA\w{17}:starling-test$/),
    });
    const lifeSeconds = ((answer.Credentials?.Expiration?.getTime() ?? 0) - world.clock.now().getTime()) / 1000;
    expect(lifeSeconds).toBeGreaterThan(3590);
    expect(lifeSeconds).toBeLessThanOrEqual(3600);
    expect(world.principals.find(answer.Credentials?.AccessKeyId ?? "")?.principalArn).toBe(arn);
  });

  test.each([
    ["without the external id", { ExternalId: undefined }, "AccessDenied"],
    ["with another external id", { ExternalId: "fleet-8" }, "AccessDenied"],
    ["of a missing role", { RoleArn: `${spokeRole}-2` }, "AccessDenied"],
    ["of an ARN that is no role", { RoleArn: "arn:aws:iam::1:user/a" }, "ValidationError"],
    ["for longer than allowed", { DurationSeconds: 43_201 }, "ValidationError"],
    ["with an invalid name", { RoleSessionName: "a b" }, "ValidationError"],
  ])("AssumeRole refuses a session %s", async (_what, change, name) => {
    const asked = sts.send(new AssumeRoleCommand({ ...desired, ...change } as typeof desired));
    await expect(asked).rejects.toMatchObject({ name });
  });

  test("AssumeRole allows a session of a session for an hour at most", async () => {
    const key = world.principals.startSession({ principalArn: applyArn, expiresAt: new Date(Date.now() + 3_600_000) });
    const chained = new STSClient({ region: "eu-west-1", endpoint: world.server.endpoint, credentials: key });
    const asked = chained.send(new AssumeRoleCommand({ ...desired, DurationSeconds: 7200 }));
    await expect(asked).rejects.toThrow(/role chaining/);
    chained.destroy();
  });

  test.each([
    ["an unknown key", { accessKeyId: "AKIANOBODY", secretAccessKey: "x" }, "InvalidClientTokenId"],
    ["another secret", { accessKeyId: "AKIAAPPLY", secretAccessKey: "x" }, "SignatureDoesNotMatch"],
  ])("STS refuses a caller with %s", async (_what, credentials, name) => {
    const stranger = new STSClient({ region: "eu-west-1", endpoint: world.server.endpoint, credentials });
    await expect(stranger.send(new GetCallerIdentityCommand({}))).rejects.toMatchObject({ name });
    stranger.destroy();
  });
});

describe("EKS", () => {
  test("ListClusters returns the clusters of the caller's account in the region of the signature, page by page", async () => {
    const first = await eks.send(new ListClustersCommand({ maxResults: 2 }));
    expect(first.clusters).toEqual(["a", "b"]);
    const second = await eks.send(new ListClustersCommand({ maxResults: 2, nextToken: first.nextToken }));
    expect(second).toMatchObject({ clusters: ["c"] });
    expect(second.nextToken).toBeUndefined();
    const spoke = await spokeEks();
    expect((await spoke.send(new ListClustersCommand({}))).clusters).toEqual(["theirs"]);
    spoke.destroy();
  });

  test("DescribeCluster returns a cluster, without an address while it is being created", async () => {
    const { cluster } = await eks.send(new DescribeClusterCommand({ name: "a" }));
    expect(cluster).toMatchObject({
      arn: homeCluster("a"),
      endpoint: "https://127.0.0.1:9",
      certificateAuthority: { data: "QQ==" },
      status: "ACTIVE",
      version: "1.36",
      tags: { env: "test" },
      accessConfig: { authenticationMode: "API" },
      createdAt: new Date("2026-01-01T00:00:00Z"),
    });
    const spoke = await spokeEks();
    const theirs = await spoke.send(new DescribeClusterCommand({ name: "theirs" }));
    expect(theirs.cluster).toMatchObject({ status: "CREATING" });
    expect(theirs.cluster?.endpoint).toBeUndefined();
    spoke.destroy();
  });

  test("DescribeCluster does not find a cluster of another account or region", async () => {
    for (const name of ["elsewhere", "theirs"]) {
      const asked = eks.send(new DescribeClusterCommand({ name }));
      await expect(asked).rejects.toMatchObject({ name: "ResourceNotFoundException" });
    }
  });

  test("EKS refuses a session that has ended", async () => {
    const spoke = await spokeEks();
    world.pass(61);
    const asked = spoke.send(new ListClustersCommand({}));
    await expect(asked).rejects.toMatchObject({ name: "ExpiredTokenException" });
    spoke.destroy();
  });

  test("a principal has one access entry in a cluster, without groups of the system", async () => {
    const entry = { clusterName: "a", principalArn: spokeRole };
    const made = await eks.send(new CreateAccessEntryCommand({ ...entry, kubernetesGroups: ["starling"] }));
    expect(made.accessEntry).toMatchObject({
      principalArn: spokeRole,
      kubernetesGroups: ["starling"],
      username: `arn:aws:sts::${spokeAccount}:assumed-role/apply/{{SessionName}}`,
    });
    const again = eks.send(new CreateAccessEntryCommand(entry));
    await expect(again).rejects.toMatchObject({ name: "ResourceInUseException" });
    const masters = { ...entry, principalArn: applyArn, kubernetesGroups: ["system:masters"] };
    await expect(eks.send(new CreateAccessEntryCommand(masters))).rejects.toMatchObject({
      name: "InvalidParameterException",
      message: "The kubernetes group name system:masters is invalid, it cannot start with system:",
    });
    const policy = { policyArn: clusterAdminPolicy, accessScope: { type: "cluster" } } as const;
    await eks.send(new AssociateAccessPolicyCommand({ ...entry, ...policy }));
    const { accessEntries } = await eks.send(new ListAccessEntriesCommand({ clusterName: "a" }));
    expect(accessEntries).toEqual([spokeRole]);
    const session = `arn:aws:sts::${spokeAccount}:assumed-role/apply/x`;
    const { arn } = world.clusters.get(homeCluster("a"));
    expect(world.clusters.accessEntryOf(arn, session)?.policies).toEqual([clusterAdminPolicy]);
  });
});

test("an incomplete request does not disturb later ones", async () => {
  const { hostname, port } = new URL(world.server.endpoint);
  const socket = connect(Number(port), hostname);
  socket.write("POST / HTTP/1.1\r\nhost: sts\r\ncontent-length: 100\r\n\r\nAction=", () => socket.destroy());
  await once(socket, "close");
  expect(await sts.send(new GetCallerIdentityCommand({}))).toMatchObject({ Arn: applyArn });
});
