/** The answers of all ports to other users of the same computer, and to web pages in its browsers. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addFleet, type Stack, startStack } from "#local/machine/stack.ts";
import { type ControlServer, startControlServer } from "#local/serve/control-server.ts";
import { listeningPorts } from "#test/support/listening-ports.ts";

let stack: Stack;
let control: ControlServer;
let folder: string;
let before: readonly number[];

beforeAll(async () => {
  before = existsSync("/proc/net/tcp") ? listeningPorts(process.pid) : [];
  folder = await mkdtemp(join(tmpdir(), "starling-strangers-"));
  stack = await startStack({ repositories: folder, tickEveryMs: "manual", database: "pipe" });
  await addFleet(stack, 2);
  await stack.clusters.openPort("canary-1");
  await stack.git.createRepository("shop", { "a.txt": "secret plans" });
  const list = () => [];
  control = await startControlServer(
    { list, set: () => Promise.reject(new Error("set")), clear: async () => [] },
    stack.machine.alarms,
  );
});
afterAll(async () => {
  await control.stop();
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Port {
  readonly name: string;
  readonly origin: () => string | Promise<string>;
}

async function originOf(service: "secrets" | "logs" | "events"): Promise<string> {
  const endpoint = await stack.machine.aws[service].config.endpoint?.();
  return `http://${endpoint?.hostname}:${endpoint?.port}`;
}

const ports: readonly Port[] = [
  { name: "the api", origin: () => stack.machine.api.endpoint },
  { name: "DynamoDB", origin: () => stack.machine.proxy.endpoints.dynamodb },
  { name: "SQS", origin: () => stack.machine.proxy.endpoints.sqs },
  { name: "S3", origin: () => stack.machine.proxy.endpoints.s3 },
  { name: "Lambda", origin: () => stack.machine.proxy.endpoints.lambda },
  { name: "Secrets Manager", origin: () => originOf("secrets") },
  { name: "CloudWatch Logs", origin: () => originOf("logs") },
  { name: "EventBridge", origin: () => originOf("events") },
  { name: "CloudWatch alarms", origin: () => stack.machine.alarms.endpoint },
  { name: "EKS and STS", origin: () => stack.machine.eks.endpoint },
  { name: "CloudFormation", origin: () => stack.machine.cloudFormation.endpoint },
  { name: "git", origin: () => new URL(stack.git.url("shop")).origin },
  { name: "the clusters", origin: () => new URL(stack.clusters.connections()[1]?.server ?? "").origin },
  { name: "a cluster's own port", origin: () => new URL(stack.clusters.connections()[0]?.server ?? "").origin },
  { name: "the control server", origin: () => control.url },
];

interface Asking {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function ask(origin: string, { method = "GET", path = "/", headers = {}, body = "" }: Asking): Promise<Answered> {
  const { protocol, hostname, port } = new URL(origin);
  const start = protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, headers, agent: false, rejectUnauthorized: false };
    const outgoing = start(options, (incoming) => {
      const { statusCode: status = 0, headers } = incoming;
      text(incoming).then((body) => resolve({ status, headers, body }), reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const target = (name: string) => ({ "x-amz-target": name, "content-type": "application/x-amz-json-1.0" });
const madeUp = (service: string) =>
  `AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host;x-amz-date, Signature=${"0".repeat(64)}`;

/** Requests to all services behind the ports, without valid credentials. */
const questions: readonly Asking[] = [
  {},
  { path: "/v1/clusters" },
  { path: "/v1/sources" },
  { method: "POST", path: "/v1/apply", body: '{"documents":[]}' },
  { method: "POST", path: "/hook/github", body: "{}" },
  ...["ListTables", "Scan"].map((name) => ({
    method: "POST",
    headers: {
      ...target(`DynamoDB_20120810.${name}`),
      authorization: madeUp("dynamodb"),
      "x-amz-date": "20260101T000000Z",
    },
    body: '{"TableName":"rows"}',
  })),
  {
    method: "POST",
    headers: { ...target("AmazonSQS.ListQueues"), authorization: madeUp("sqs"), "x-amz-date": "20260101T000000Z" },
    body: "{}",
  },
  { method: "POST", headers: target("AmazonSQS.ListQueues"), body: "{}" },
  { method: "POST", headers: target("Logs_20140328.FilterLogEvents"), body: '{"logGroupName":"/aws/lambda/apply"}' },
  { method: "POST", headers: target("AWSEvents.PutEvents"), body: '{"Entries":[]}' },
  { method: "POST", headers: target("secretsmanager.GetSecretValue"), body: '{"SecretId":"starling/git/shop"}' },
  { method: "POST", path: "/", body: "Action=ListQueues&Version=2012-11-05" },
  { method: "POST", path: "/2015-03-31/functions/resolve/invocations", body: "{}" },
  { method: "PUT", path: "/bucket" },
  { method: "PUT", path: "/bucket/key", headers: { authorization: madeUp("s3") }, body: "x" },
  { path: "/?X-Amz-Credential=AKIA/20260101/us-east-1/s3/aws4_request&X-Amz-Signature=00&X-Amz-SignedHeaders=host" },
  { path: "/?Action=GetCallerIdentity&Version=2011-06-15" },
  { method: "POST", body: "Action=GetCallerIdentity&Version=2011-06-15" },
  { method: "POST", body: "Action=DescribeStacks&Version=2010-05-15" },
  { method: "POST", path: "/2015-03-31/functions/build/invocations", body: "{}" },
  { path: "/faults" },
  { method: "DELETE", path: "/faults" },
  { path: "/shop.git/info/refs?service=git-upload-pack" },
  { path: "/shop.git/info/refs?service=git-receive-pack" },
  { path: "/shop.git/HEAD" },
  { path: "/clusters/canary-1/api/v1/namespaces" },
  { path: "/clusters/early-1/api/v1/secrets" },
  { path: "/clusters/%E0%A4%A/api/v1/secrets" },
  { path: "/%E0%A4%A.git/HEAD" },
  { path: "//" },
  { path: "/%2e%2e/%2e%2e/etc/passwd" },
  { method: "POST", path: "/clusters/canary-1/api/v1/namespaces", body: '{"metadata":{"name":"x"}}' },
];

test.skipIf(!existsSync("/proc/net/tcp"))("this file tests all open ports", async () => {
  const origins = await Promise.all(ports.map(({ origin }) => origin()));
  const known = origins.map((origin) => Number(new URL(origin).port));
  const opened = listeningPorts(process.pid).filter((port) => !before.includes(port));
  expect(opened.filter((port) => !known.includes(port))).toEqual([]);
  expect(opened.length).toBeGreaterThanOrEqual(new Set(known).size);
});

describe.each(ports)("$name", ({ origin }) => {
  test("a request without credentials is refused", async () => {
    for (const question of questions) {
      const { status, body } = await ask(await origin(), question);
      const line = `${question.method ?? "GET"} ${question.path ?? "/"}: ${status} ${body.slice(0, 200)}`;
      expect(status, line).toBeGreaterThanOrEqual(400);
      expect(status, line).toBeLessThan(500);
      expect(body, line).not.toMatch(/secret plans|refs\/heads/);
    }
  });

  test.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1:", "0.0.0.0", "127.1"])(
    "the host name %j is refused",
    async (name) => {
      const { port } = new URL(await origin());
      for (const host of [name, ...(name.includes("evil") ? [`${name}:${port}`] : [])]) {
        const answer = await ask(await origin(), { headers: { host } });
        expect(answer.status, host).toBe(421);
        expect(answer.body).toBe("This server does not serve the requested host\n");
      }
    },
  );

  test.each(["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])(
    "the host name %s is accepted, with any port",
    async (name) => {
      const { port } = new URL(await origin());
      for (const host of [`${name}:${port}`, `${name}:1`, name]) {
        expect((await ask(await origin(), { headers: { host } })).status, host).not.toBe(421);
      }
    },
  );

  test.each<[string, Record<string, string>]>([
    ["a form of another site", { origin: "https://evil.example", "content-type": "text/plain" }],
    ["a form of a page without an origin", { origin: "null", "content-type": "application/x-www-form-urlencoded" }],
    ["a page on another port of this machine", { origin: "http://127.0.0.1:1" }],
    ["an image of another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }],
    ["a page on localhost", { "sec-fetch-site": "same-site" }],
    ["a page of the same origin", { "sec-fetch-site": "same-origin" }],
  ])("a request from %s is refused", async (_what, headers) => {
    for (const question of [...questions, { method: "OPTIONS" }]) {
      const answer = await ask(await origin(), { ...question, headers: { ...question.headers, ...headers } });
      expect(answer).toMatchObject({ status: 403, body: "Requests from web pages are refused\n" });
      expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });
});
