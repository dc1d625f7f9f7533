/** Workers in another account or region use what `home` stores with sessions of a role of its account. */
import { ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { ListBucketsCommand } from "@aws-sdk/client-s3";
import { ListQueuesCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { dataClients } from "#functions/apply/data-session.ts";
import { EksRegister } from "#local/aws/eks/eks-register.ts";
import { type EksStsServer, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { Principals } from "#local/aws/iam/principals.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";
import { clusterClients } from "#shared/lambda/cluster-clients.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

const role = "arn:aws:iam::111122223333:role/starling-data-far";
const worker = "arn:aws:sts::444455556666:assumed-role/starling-zone-far/apply-far";
const own = { accessKeyId: "OWN", secretAccessKey: "own" };
const principals = new Principals([{ ...own, principalArn: worker }]);
const roles = new IamRoles();
let aws: AwsEmulators;
let sts: EksStsServer;
let ahead = 0;
/** Each request as the service saw it: service, region, and whose access key. */
let seen: string[] = [];

beforeAll(async () => {
  const now = () => new Date(Date.now() + ahead);
  aws = await startAwsEmulators({ seed: 1, principals });
  sts = await startEksAndSts({ principals, roles, clusters: new EksRegister(), now });
  aws.proxy.intercept({
    before: ({ service, http }) => {
      const [, key = "", region] = /Credential=([^/]+)\/\d+\/([^/]+)\//.exec(String(http.headers.authorization)) ?? [];
      seen.push(`${service} ${region} ${principals.find(key)?.principalArn}`);
    },
  });
});
beforeEach(() => {
  ahead = 0;
  seen = [];
  roles.put({ arn: role, trusts: [{ principalArn: "arn:aws:iam::444455556666:role/starling-zone-far" }] });
});
afterAll(() => Promise.all([aws.stop(), sts.stop()]));

function clients() {
  const { dynamodb: dynamo, sqs, s3 } = aws.proxy.endpoints;
  const endpoints = { dynamo, sqs, s3, secrets: "http://127.0.0.1:1", sts: sts.endpoint, eks: sts.endpoint };
  const all = clusterClients({ region: "eu-north-1", credentials: own, endpoints });
  const clock = { ...systemClock, now: () => new Date(Date.now() + ahead) };
  return dataClients(all, { role, region: "eu-west-1", zone: "far", clock });
}

const assumed = () => sts.calls().filter(({ operation }) => operation === "AssumeRole");
const session = "arn:aws:sts::111122223333:assumed-role/starling-data-far/starling-far";

test("rows, blobs and queues of home are asked in its region, with one session of the data role that names the zone", async () => {
  const before = assumed().length;
  const { dynamo, sqs, s3 } = clients();
  await dynamo.send(new ListTablesCommand({}));
  await sqs.send(new ListQueuesCommand({}));
  await s3.send(new ListBucketsCommand({}));
  expect(seen).toEqual(["dynamodb", "sqs", "s3"].map((service) => `${service} eu-west-1 ${session}`));
  expect(assumed().slice(before)).toMatchObject([{ region: "eu-north-1", principalArn: worker }]);
});

test("a session is renewed before it ends, and one that AWS calls expired at once", async () => {
  const before = assumed().length;
  const { dynamo } = clients();
  const keys: string[] = [];
  const stop = aws.proxy.intercept({
    before: ({ http }) => void keys.push(/Credential=([^/]+)/.exec(String(http.headers.authorization))?.[1] ?? ""),
  });
  await dynamo.send(new ListTablesCommand({}));
  await dynamo.send(new ListTablesCommand({}));
  expect([new Set(keys).size, assumed().length - before]).toEqual([1, 1]);
  ahead = 51 * 60_000;
  await dynamo.send(new ListTablesCommand({}));
  expect([new Set(keys).size, assumed().length - before]).toEqual([2, 2]);
  principals.expire(keys.at(-1) ?? "");
  await expect(dynamo.send(new ListTablesCommand({}))).rejects.toMatchObject({ name: "ExpiredTokenException" });
  await dynamo.send(new ListTablesCommand({}));
  expect([new Set(keys).size, assumed().length - before]).toEqual([3, 3]);
  stop();
});

test("a data role that refuses the zone is an own fault with the remedy, and works again when it lets the zone in", async () => {
  roles.put({ arn: role, trusts: [{ principalArn: "arn:aws:iam::444455556666:role/another" }] });
  const { dynamo } = clients();
  const refused = await dynamo.send(new ListTablesCommand({})).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: "DataRoleDenied",
    message: expect.stringMatching(
      /^zone far may not read and write the rows of home: STS refused role arn:.*-data-far: arn:.*\/apply-far is not allowed to sts:AssumeRole.*; deploy the control stack/,
    ),
  });
  expect(isOwnFault(refused)).toBe(true);
  expect(seen).toEqual([]);
  roles.put({ arn: role, trusts: [{ principalArn: "arn:aws:iam::444455556666:role/starling-zone-far" }] });
  ahead = 60_000;
  await dynamo.send(new ListTablesCommand({}));
  expect(seen).toEqual([`dynamodb eu-west-1 ${session}`]);
});

test("without an answer of STS the error says so, and asks for the way to STS", async () => {
  const { dynamodb: dynamo, sqs, s3 } = aws.proxy.endpoints;
  const nowhere = "http://127.0.0.1:1";
  const endpoints = { dynamo, sqs, s3, secrets: nowhere, sts: nowhere, eks: nowhere };
  const all = clusterClients({ region: "eu-north-1", credentials: own, endpoints });
  const data = dataClients(all, { role, region: "eu-west-1", zone: "far", clock: systemClock });
  await expect(data.s3.send(new ListBucketsCommand({}))).rejects.toMatchObject({
    code: "DataRoleUnavailable",
    message: expect.stringMatching(
      /^zone far has no session .*no server listens at 127\.0\.0\.1:1.*; check that the network/,
    ),
  });
});
