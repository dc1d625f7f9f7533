import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CreateSecretCommand,
  DescribeSecretCommand,
  GetSecretValueCommand,
  ListSecretsCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from "@aws-sdk/client-secrets-manager";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import type { RunningService } from "#local/aws/services/json-service.ts";
import { startSecrets } from "#local/aws/services/secrets-server.ts";

let stateDir: string;
const servers: RunningService[] = [];

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "starling-secrets-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await rm(stateDir, { recursive: true });
});

const user = { accessKeyId: "AKUSER", secretAccessKey: "user", principalArn: "arn:aws:iam::000000000000:user/ana" };
const worker = {
  accessKeyId: "AKWORKER",
  secretAccessKey: "worker",
  principalArn: "arn:aws:sts::000000000000:assumed-role/apply/apply",
};
const principals = new Principals([user, worker]);

type Starting = Omit<Parameters<typeof startSecrets>[0], "principals">;

async function start(options: Starting = {}): Promise<SecretsManagerClient> {
  const server = await startSecrets({ ...options, principals });
  servers.push(server);
  return clientOf(server, user);
}

function clientOf({ endpoint }: RunningService, credentials: typeof user): SecretsManagerClient {
  return new SecretsManagerClient({ endpoint, region: "us-east-1", credentials, maxAttempts: 1 });
}

test("a secret is created, read by name and ARN, and versioned", async () => {
  const client = await start();
  const { ARN, VersionId: first } = await client.send(
    new CreateSecretCommand({ Name: "git/fleet", SecretString: "one", Description: "token" }),
  );
  expect(ARN).toMatch(/^arn:aws:secretsmanager:us-east-1:000000000000:secret:git\/fleet-\w{6}$/);
  const put = await client.send(new PutSecretValueCommand({ SecretId: "git/fleet", SecretString: "two" }));
  expect(put.VersionStages).toEqual(["AWSCURRENT"]);
  for (const SecretId of ["git/fleet", ARN, ARN?.slice(0, -7)]) {
    const value = await client.send(new GetSecretValueCommand({ SecretId }));
    expect([value.SecretString, value.VersionId, value.Name]).toEqual(["two", put.VersionId, "git/fleet"]);
    expect(value.CreatedDate).toBeInstanceOf(Date);
  }
  const before = { SecretId: "git/fleet", VersionStage: "AWSPREVIOUS" };
  expect((await client.send(new GetSecretValueCommand(before))).SecretString).toBe("one");
  const described = await client.send(new DescribeSecretCommand({ SecretId: ARN }));
  expect(described).toMatchObject({
    Description: "token",
    VersionIdsToStages: { [String(first)]: ["AWSPREVIOUS"], [String(put.VersionId)]: ["AWSCURRENT"] },
  });
});

test("a reader with another key, or without permission, is refused as AWS refuses it", async () => {
  const client = await start({
    allows: ({ principalArn, operation, secretId }) =>
      principalArn === user.principalArn || (operation === "GetSecretValue" && secretId.startsWith("clusters/")),
  });
  const [server] = servers;
  if (server === undefined) throw new Error("no server");
  for (const Name of ["clusters/a", "git/a"]) {
    await client.send(new CreateSecretCommand({ Name, SecretString: "s3cret" }));
  }
  const read = (credentials: typeof user, SecretId: string) =>
    clientOf(server, credentials).send(new GetSecretValueCommand({ SecretId }));
  expect((await read(worker, "clusters/a")).SecretString).toBe("s3cret");
  await expect(read(worker, "git/a")).rejects.toMatchObject({
    name: "AccessDeniedException",
    $metadata: { httpStatusCode: 400 },
    message: expect.stringContaining(`User: ${worker.principalArn} is not authorized`),
  });
  await expect(read({ ...user, accessKeyId: "AKNOBODY" }, "git/a")).rejects.toMatchObject({
    name: "UnrecognizedClientException",
    $metadata: { httpStatusCode: 400 },
  });
  await expect(read({ ...user, secretAccessKey: "guess" }, "git/a")).rejects.toMatchObject({
    name: "InvalidSignatureException",
    $metadata: { httpStatusCode: 400 },
  });
  const unsigned = await fetch(server.endpoint, {
    method: "POST",
    headers: { "x-amz-target": "secretsmanager.GetSecretValue" },
    body: '{"SecretId":"git/a"}',
  });
  expect(unsigned.status).toBe(400);
  expect(await unsigned.json()).toEqual({
    __type: "com.amazon.coral.service#MissingAuthenticationTokenException",
    message: "Request is missing Authentication Token",
  });
});

test("a binary secret is read byte for byte", async () => {
  const client = await start();
  await client.send(new CreateSecretCommand({ Name: "key", SecretBinary: Buffer.from([0, 255, 10]) }));
  const { SecretBinary = new Uint8Array() } = await client.send(new GetSecretValueCommand({ SecretId: "key" }));
  expect([...SecretBinary]).toEqual([0, 255, 10]);
});

test("a version that is put twice is one version, and another value with its token is refused", async () => {
  const client = await start();
  await client.send(new CreateSecretCommand({ Name: "s", SecretString: "one" }));
  const version = { SecretId: "s", ClientRequestToken: "t".repeat(32) };
  await client.send(new PutSecretValueCommand({ ...version, SecretString: "two" }));
  await client.send(new PutSecretValueCommand({ ...version, SecretString: "two" }));
  const { VersionIdsToStages = {} } = await client.send(new DescribeSecretCommand({ SecretId: "s" }));
  expect(Object.keys(VersionIdsToStages)).toHaveLength(2);
  const other = client.send(new PutSecretValueCommand({ ...version, SecretString: "three" }));
  await expect(other).rejects.toMatchObject({ name: "ResourceExistsException" });
});

test("errors have the same texts as those of AWS", async () => {
  const client = await start();
  await client.send(new CreateSecretCommand({ Name: "empty" }));
  await expect(client.send(new GetSecretValueCommand({ SecretId: "absent" }))).rejects.toMatchObject({
    name: "ResourceNotFoundException",
    message: "Secrets Manager can't find the specified secret.",
  });
  await expect(client.send(new DescribeSecretCommand({ SecretId: "absent" }))).rejects.toMatchObject({
    name: "ResourceNotFoundException",
  });
  await expect(client.send(new GetSecretValueCommand({ SecretId: "empty" }))).rejects.toMatchObject({
    name: "ResourceNotFoundException",
    message: "Secrets Manager can't find the specified secret value for staging label: AWSCURRENT",
  });
  await expect(client.send(new CreateSecretCommand({ Name: "empty" }))).rejects.toMatchObject({
    name: "ResourceExistsException",
  });
  await expect(client.send(new PutSecretValueCommand({ SecretId: "empty" }))).rejects.toMatchObject({
    name: "InvalidRequestException",
  });
  await expect(client.send(new CreateSecretCommand({ Name: "a b" }))).rejects.toMatchObject({
    name: "ValidationException",
  });
  await expect(client.send(new ListSecretsCommand({}))).rejects.toMatchObject({ name: "UnknownOperationException" });
});

test("the next server has the same secrets, from a file that only the user can read", async () => {
  const first = await start({ stateDir });
  await first.send(new CreateSecretCommand({ Name: "kept", SecretString: "s3cret" }));
  await servers.pop()?.stop();
  const second = await start({ stateDir });
  expect((await second.send(new GetSecretValueCommand({ SecretId: "kept" }))).SecretString).toBe("s3cret");
  expect((await stat(join(stateDir, "secrets.json"))).mode & 0o777).toBe(0o600);
});
