/**
 * The role of a zone allows what its workers need, and nothing else: clusters by token and by IAM, of Starling's account
 * and of another one, from their first objects to the deletion of everything.
 */
import type { Authenticator } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { roleArnOf } from "#local/machine/deployment.ts";
import type { LocalEks } from "#local/machine/machine.ts";
import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import { groupDocument, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { embeddedFleetFor } from "#test/support/fleet.ts";
import { refusedCalls, unusedGrants } from "#test/support/policy-guard.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const other = "444455556666";
const zone = "fixed";
const zones = JSON.stringify([{ name: zone, vpc: {} }]);
const { resources } = await synthesizeTemplates({ zones, clusterAccounts: other });
const apiVersion = "starling.dev/v1alpha1";
const arns = new Map([
  ["own", `arn:aws:eks:${localRegion}:${localAccountId}:cluster/own`],
  ["far", `arn:aws:eks:${localRegion}:${other}:cluster/far`],
]);
let world: World;
let eks: LocalEks | undefined;

beforeAll(async () => {
  const asEks: Authenticator = (token, cluster) =>
    eks === undefined
      ? Promise.resolve(undefined)
      : eksAuthenticator({ ...eks, stsEndpoint: eks.endpoint, arnOf: (name) => arns.get(name) })(token, cluster);
  world = await startWorld({ zones, faults: quiet, target: embeddedFleetFor(asEks) });
  eks = world.machine.eks;
  await world.join({ name: "token", zone });
  await joinByIam("own", undefined);
  await joinByIam("far", "starling/clusters/far");
}, 120_000);
afterAll(() => world.close());

/** Registers a cluster by IAM, which lets in the role of the zone, or a role that trusts that one. */
async function joinByIam(name: string, roleName: string | undefined): Promise<void> {
  const { fleet, machine } = world;
  const arn = arns.get(name) ?? "";
  const { server, caData } = await fleet.add(name);
  const worker = machine.plan.functions.find(({ functionName }) => functionName === `apply-${zone}`);
  if (worker === undefined) throw new Error(`zone ${zone} has no workers`);
  const ofZone = roleArnOf(worker);
  const role = roleName === undefined ? ofZone : `arn:aws:iam::${other}:role/${roleName}`;
  if (roleName !== undefined)
    machine.eks.roles.put({
      arn: role,
      trusts: [{ principalArn: ofZone, externalId: `${machine.eks.installation}/${name}` }],
    });
  machine.eks.clusters.put({
    ...{ arn, name, region: localRegion, accountId: arn.split(":")[4] ?? "", status: "ACTIVE", version: "1.36" },
    ...{ endpoint: server, caData, tags: {}, createdAt: new Date("2026-01-01T00:00:00Z") },
    accessEntries: [{ principalArn: role, kubernetesGroups: [], username: "s", policies: [clusterAdminPolicy] }],
  });
  const access = { zone, ...(roleName === undefined ? {} : { role: { name: roleName } }) };
  await world.apply({ apiVersion, kind: "Cluster", metadata: { name }, spec: { eks: { arn }, access } });
}

const manifest = (kind: string, rest: object) => JSON.stringify({ apiVersion: "v1", kind, ...rest });
const configMap = (color: string) => manifest("ConfigMap", { metadata: { name: "web", namespace }, data: { color } });
const clusters = ["token", "own", "far"];

async function colors(): Promise<readonly unknown[]> {
  const objects = await Promise.all(clusters.map((name) => world.fleet.objects(name)));
  return objects.map((all) => {
    const web = all.find(({ kind, data }) => kind === "ConfigMap" && data !== undefined && "color" in Object(data));
    return (web?.data as { readonly color: string } | undefined)?.color;
  });
}

/** Grants that this test does not use, with the reason. Any other unused grant is one too many. */
const mayGoUnused = new Set([
  // A role may read its partitions with all three actions or with none.
  ...["GetItem", "Query", "BatchGetItem"].map((action) => `dynamodb:${action} <starling-state-table-arn>`),
  // No user has written a Sync.
  "NS#*#Sync",
  // Only a transaction that checks a row without changing it needs this.
  ...["dynamodb:ConditionCheckItem <starling-state-table-arn>", "CL#*"],
  // Lambda itself manages the network interfaces, as the role of the function.
  ...["AssignPrivateIpAddresses", "CreateNetworkInterface", "DeleteNetworkInterface"].map((act) => `ec2:${act} *`),
  ...["DescribeNetworkInterfaces", "DescribeSubnets", "UnassignPrivateIpAddresses"].map((act) => `ec2:${act} *`),
  // S3 itself checks this, when a key does not exist.
  "s3:ListBucket <starling-state-blobs-arn>",
  // Only objects that were stored more than a day ago, or are lost, need these.
  ...["s3:PutObject <starling-state-blobs-arn>/renderings/*", "sqs:SendMessage <WiringToRenderQueue>"],
  // No cluster is slow, and none has work for a second invocation.
  ...["Apply", "ApplySlow"].map((queue) => `sqs:SendMessage <WiringZone${zone}To${queue}Queue>`),
  // The cluster of Starling's own account lets in the role of the zone itself.
  "sts:AssumeRole arn:<AWS::Partition>:iam::<AWS::AccountId>:role/starling/clusters/*",
]);

/** The same for the functions that send to zones; e2e/zones.test.ts compares the calls of the tick with its role. */
const ofSendersUnused = new Set([
  // No check of a cluster becomes due within the test, and no survey finds a zone whose clusters do not answer.
  ...["FLEETVERSION", "ZONE#*", `sqs:SendMessage <WiringZone${zone}ToApplyQueue>`].map((grant) => `tick ${grant}`),
  // The planner asks only about a zone whose worker owes a report.
  "rollout ZONE#*",
  // The api reads them only for unreachable targets.
  "api ZONE#*",
]);

test("the role of a zone allows every call of its workers, and has no grant that none of them needs", async () => {
  await world.createRepository("shop", {
    "deploy/ns.json": manifest("Namespace", { metadata: { name: namespace } }),
    "deploy/web.json": configMap("red"),
  });
  await world.apply(
    sourceDocument("shop", { git: { url: world.git.url("shop"), ref: { branch: "main" } } }),
    groupDocument("web", {
      clusters: { all: true },
      templates: [{ name: "web", source: "shop", path: "deploy" }],
    }),
  );
  await world.untilInSync("web", await world.push("shop", { "deploy/web.json": configMap("blue") }));
  expect(await colors()).toEqual(["blue", "blue", "blue"]);
  for (const cluster of clusters) {
    const path = `/v1/clusters/${cluster}/check`;
    const asked = await world.session.call<{ readonly id: string }>("POST", path);
    const { links } = await world.waitFor(`the check of ${cluster}`, async () => {
      const { answer } = await world.session.call<{ readonly answer?: ClusterCheck }>("GET", path);
      return answer?.id === asked.id && answer;
    });
    expect(links.filter(({ state }) => state !== "ok")).toEqual([]);
  }
  const zoneCheck = `/v1/zones/${zone}/check`;
  await world.session.call("POST", zoneCheck);
  await world.waitFor("the check of the zone", async () => {
    const { answer } = await world.session.call<{ readonly answer?: object }>("GET", zoneCheck);
    return answer !== undefined;
  });
  // The worker reads the inventory and makes an object again that somebody deleted.
  const configMaps = `/api/v1/namespaces/${namespace}/configmaps/web`;
  await world.kubectl("token", { method: "DELETE", path: configMaps });
  await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/reconcile`, { reason: "a test" });
  await world.waitFor("the object that was deleted", async () => (await colors())[0] === "blue");
  await world.session.call("DELETE", `/v1/namespaces/${namespace}/syncgroups/web?cascade=delete&confirm=true`);
  await world.waitFor("the deletion of the objects", async () =>
    (await colors()).every((color) => color === undefined),
  );
  for (const cluster of clusters)
    await world.waitFor(`the deletion of Cluster ${cluster}`, () =>
      world.session.call("DELETE", `/v1/clusters/${cluster}?confirm=true`).then(
        () => true,
        () => false,
      ),
    );

  expect(refusedCalls(world.calls(), resources)).toEqual([]);
  // Nobody reads logs here.
  const unused = unusedGrants(world.calls(), resources).filter((grant) => !grant.includes("logs:FilterLogEvents"));
  const ofZone = unused.flatMap((grant) => (grant.startsWith(`apply-${zone} `) ? [grant.slice(12)] : []));
  expect(ofZone.filter((grant) => !mayGoUnused.has(grant))).toEqual([]);
  const ofSenders = unused.filter((grant) => /^(api|rollout|tick) .*(WiringZone|FLEET|ZONE#)/.test(grant));
  expect(ofSenders.filter((grant) => !ofSendersUnused.has(grant))).toEqual([]);
}, 240_000);
