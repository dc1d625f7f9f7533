import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import type { HttpApiEvent } from "#local/aws/lambda/http-api-event.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";

const ada = {
  accessKeyId: "AKIAADA",
  secretAccessKey: "ada-secret",
  principalArn: "arn:aws:iam::111122223333:user/ada",
};
const ci = {
  accessKeyId: "ASIACI",
  secretAccessKey: "ci-secret",
  sessionToken: "ci-token",
  principalArn: "arn:aws:sts::111122223333:assumed-role/ci/run-1",
};
const viewer = { ...ada, accessKeyId: "AKIAVIEW", invokes: ["GET/v1/*", "POST/v1/namespaces/*/suspend"] };
const now = new Date("2026-03-12T19:03:58Z");

let front: HttpFront;
let result: unknown;
const events: HttpApiEvent[] = [];
const problems: unknown[] = [];

beforeAll(async () => {
  const handler = async (event: unknown) => {
    events.push(event as HttpApiEvent);
    if (result instanceof Error) throw result;
    return result === "hang" ? new Promise(() => {}) : result;
  };
  const lambda = (functionName: string) =>
    lambdaFunction({ functionName, timeoutSeconds: 1, newSandbox: () => sharedSandbox(handler) });
  front = await startHttpFront({
    principals: new Principals([ada, ci, viewer]),
    now: () => now,
    onProblem: ({ problem }) => problems.push(problem),
    routes: [
      { routeKey: "ANY /v1/{proxy+}", authorization: "iam", lambda: lambda("api") },
      {
        routeKey: "POST /hook/{provider}/{id}",
        authorization: "none",
        lambda: lambda("webhook"),
      },
      { routeKey: "ANY /hook/{proxy+}", authorization: "iam", lambda: lambda("api") },
    ],
  });
});
afterAll(() => front.stop());
beforeEach(() => {
  events.length = 0;
  problems.length = 0;
  result = { statusCode: 200, body: "ok" };
});

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string | string[]>;
  readonly headers: Record<string, string>;
  readonly body: string | Buffer;
}

interface Signing {
  readonly credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  readonly signingDate?: Date;
  readonly service?: string;
  readonly region?: string;
  readonly applyChecksum?: boolean;
}

const plain: Call = {
  method: "POST",
  path: "/v1/namespaces/team%20a/syncs",
  query: { limit: "10", label: ["b=c", "a d"] },
  headers: { "content-type": "application/json" },
  body: '{"name":"web"}',
};

async function sign(call: Call, signing: Signing = {}): Promise<Call> {
  const {
    credentials = ada,
    signingDate = now,
    service = "execute-api",
    region = "us-east-1",
    applyChecksum = true,
  } = signing;
  const signer = new SignatureV4({ credentials, service, region, applyChecksum, sha256: Sha256 });
  const { host } = new URL(front.url);
  const signed = await signer.sign(
    { ...call, protocol: "http:", hostname: host, headers: { ...call.headers, host } },
    { signingDate },
  );
  return { ...call, headers: signed.headers };
}

async function send(call: Call): Promise<{ status: number | undefined; body: string; headers: object }> {
  const query = Object.entries(call.query).flatMap(([name, value]) =>
    [value].flat().map((one) => `${encodeURIComponent(name)}=${encodeURIComponent(one)}`),
  );
  const { hostname, port } = new URL(front.url);
  const path = `${call.path}${query.length === 0 ? "" : `?${query.join("&")}`}`;
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ hostname, port, path, method: call.method, headers: call.headers });
    outgoing.on("error", reject);
    outgoing.on("response", async (incoming) => {
      resolve({ status: incoming.statusCode, body: await text(incoming), headers: incoming.headers });
    });
    outgoing.end(call.body);
  });
}

test("a request with a valid signature reaches the function, with the event of an HTTP API", async () => {
  expect(await send(await sign(plain))).toMatchObject({ status: 200, body: "ok" });
  expect(events).toEqual([
    {
      version: "2.0",
      routeKey: "ANY /v1/{proxy+}",
      rawPath: "/v1/namespaces/team a/syncs",
      rawQueryString: "limit=10&label=b%3Dc&label=a%20d",
      headers: expect.objectContaining({ "content-type": "application/json", "x-amz-date": "20260312T190358Z" }),
      queryStringParameters: { limit: "10", label: "b=c,a d" },
      requestContext: expect.objectContaining({
        authorizer: {
          iam: {
            accessKey: "AKIAADA",
            accountId: "111122223333",
            callerId: "AKIAADA",
            cognitoIdentity: null,
            principalOrgId: null,
            userArn: "arn:aws:iam::111122223333:user/ada",
            userId: "AKIAADA",
          },
        },
        http: expect.objectContaining({ method: "POST", path: "/v1/namespaces/team a/syncs", sourceIp: "127.0.0.1" }),
        stage: "$default",
        time: "12/Mar/2026:19:03:58 +0000",
        timeEpoch: now.getTime(),
      }),
      pathParameters: { proxy: "namespaces/team a/syncs" },
      body: '{"name":"web"}',
      isBase64Encoded: false,
    },
  ]);
});

test("a request with temporary credentials and their token reaches the function", async () => {
  expect((await send(await sign(plain, { credentials: ci }))).status).toBe(200);
  expect(events[0]?.requestContext.authorizer?.iam.userArn).toBe(ci.principalArn);
});

test.each([
  ["GET", "/v1/clusters", 200],
  ["GET", "/v1/", 200],
  ["POST", "/v1/namespaces/shop/syncs/web/suspend", 200],
  ["POST", "/v1/namespaces/shop/syncs/web/resume", 403],
  ["POST", "/v1/apply", 403],
  ["DELETE", "/v1/clusters/c1", 403],
])("the caller's policy is checked before the function: %s %s is answered %i", async (method, path, status) => {
  const signed = await sign({ ...plain, method, path, query: {}, body: "" }, { credentials: viewer });
  const answer = await send(signed);
  expect([answer.status, events.length]).toEqual([status, status === 200 ? 1 : 0]);
  if (status === 403) expect(JSON.parse(answer.body)).toEqual({ message: "Forbidden" });
});

const at = (seconds: number) => new Date(now.getTime() + seconds * 1000);
test.each([
  ["a clock 299 s behind", { signingDate: at(-299) }],
  ["a clock 299 s ahead", { signingDate: at(299) }],
  ["a signature without the X-Amz-Content-Sha256 header", { applyChecksum: false }],
])("a request with %s is accepted", async (_, signing) => {
  expect((await send(await sign(plain, signing))).status).toBe(200);
});

const tampered: [string, (signed: Call) => Call, Signing?][] = [
  ["no signature", ({ headers: { authorization: _, ...headers }, ...call }) => ({ ...call, headers })],
  ["a changed body", (call) => ({ ...call, body: '{"name":"wab"}' })],
  ["no body", (call) => ({ ...call, body: "" })],
  ["a changed body without a digest header", (call) => ({ ...call, body: "{}" }), { applyChecksum: false }],
  [
    "a changed body with its digest",
    (call) => ({
      ...call,
      body: "{}",
      headers: {
        ...call.headers,
        "x-amz-content-sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
      },
    }),
  ],
  [
    "an unsigned payload",
    (call) => ({ ...call, headers: { ...call.headers, "x-amz-content-sha256": "UNSIGNED-PAYLOAD" } }),
  ],
  ["another path", (call) => ({ ...call, path: "/v1/namespaces/team%20b/syncs" })],
  ["an equivalent path with dots", (call) => ({ ...call, path: "/v1/other/../namespaces/team%20a/syncs" })],
  ["an equivalent path with two slashes", (call) => ({ ...call, path: "/v1//namespaces/team%20a/syncs" })],
  ["another query", (call) => ({ ...call, query: { ...call.query, limit: "11" } })],
  [
    "a query parameter that is named like a signature",
    (call) => ({ ...call, query: { ...call.query, "X-Amz-Signature": "x" } }),
  ],
  ["another method", (call) => ({ ...call, method: "PUT" })],
  ["a changed signed header", (call) => ({ ...call, headers: { ...call.headers, "content-type": "text/plain" } })],
  [
    "a changed host",
    (call) => ({
      ...call,
      headers: { ...call.headers, host: new URL(front.url).host.replace("127.0.0.1", "localhost") },
    }),
  ],
  ["a new x-amz header", (call) => ({ ...call, headers: { ...call.headers, "x-amz-target": "x" } })],
  ["a changed date", (call) => ({ ...call, headers: { ...call.headers, "x-amz-date": "20260312T190359Z" } })],
  ["an invalid date", (call) => ({ ...call, headers: { ...call.headers, "x-amz-date": "20261399T000000Z" } })],
  ["an expired date", (call) => call, { signingDate: at(-301) }],
  ["a future date", (call) => call, { signingDate: at(301) }],
  ["another service", (call) => call, { service: "s3" }],
  ["another region", (call) => call, { region: "eu-west-1" }],
  ["an unknown access key", (call) => call, { credentials: { ...ada, accessKeyId: "AKIAEVE" } }],
  ["another secret", (call) => call, { credentials: { ...ada, secretAccessKey: "guess" } }],
  ["another session token", (call) => call, { credentials: { ...ci, sessionToken: "other" } }],
  ["a session token on a long-lived key", (call) => call, { credentials: { ...ada, sessionToken: "other" } }],
  [
    "an unsigned host",
    (call) => ({
      ...call,
      headers: { ...call.headers, authorization: (call.headers.authorization ?? "").replace(";host;", ";") },
    }),
  ],
];
test.each(tampered)("a signed request with %s is refused without a reason", async (_, tamper, signing) => {
  const answer = await send(tamper(await sign(plain, signing)));
  expect(answer).toMatchObject({ status: 403, body: '{"message":"Forbidden"}' });
  expect(events).toEqual([]);
  expect(problems).toEqual([expect.any(String)]);
});

test("a route without authorization passes the raw bytes of the body", async () => {
  const body = Buffer.from('{"ä": 1}\r\n');
  const answer = await send({ method: "POST", path: "/hook/github/1", query: {}, headers: {}, body });
  expect(answer.status).toBe(200);
  expect(events[0]).toMatchObject({
    routeKey: "POST /hook/{provider}/{id}",
    pathParameters: { provider: "github", id: "1" },
    body: body.toString("base64"),
    isBase64Encoded: true,
  });
  expect(events[0]?.requestContext).not.toHaveProperty("authorizer");
});

test("the function gets the binary body of a signed request in base64", async () => {
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  expect((await send(await sign({ ...plain, body }))).status).toBe(200);
  expect(events[0]).toMatchObject({ body: "/wD+", isBase64Encoded: true });
});

test("a body of 10 MB is accepted, and one byte more is answered 413", async () => {
  const hook = { method: "POST", path: "/hook/github/1", query: {}, headers: {} };
  const largest = Buffer.alloc(10 * 1024 * 1024, "a");
  expect((await send({ ...hook, body: largest })).status).toBe(200);
  expect(await send({ ...hook, body: Buffer.concat([largest, Buffer.from("a")]) })).toMatchObject({
    status: 413,
    body: '{"message":"Request Entity Too Large"}',
  });
  expect(events).toHaveLength(1);
});

test("a path without a route is answered 404, and a method of a signed route needs a signature", async () => {
  const get = { method: "GET", query: {}, headers: {}, body: "" };
  expect(await send({ ...get, path: "/nowhere" })).toMatchObject({ status: 404, body: '{"message":"Not Found"}' });
  expect(await send({ ...get, path: "/hook/%E0%A4%A" })).toMatchObject({ status: 404 });
  expect(await send({ ...get, path: "/hook/github/1" })).toMatchObject({ status: 403 });
});

const results: [string, unknown, object][] = [
  [
    "a status, headers and cookies",
    { statusCode: 202, headers: { "X-Id": 1 }, cookies: ["a=1"], body: "x" },
    { status: 202, body: "x", headers: { "x-id": "1", "set-cookie": ["a=1"] } },
  ],
  ["a base64 body", { statusCode: 200, body: "aGk=", isBase64Encoded: true }, { status: 200, body: "hi" }],
  [
    "an object without a status",
    { name: "web" },
    { status: 200, body: '{"name":"web"}', headers: { "content-type": "application/json" } },
  ],
  [
    "a body that is not a text",
    { statusCode: 200, body: { a: 1 } },
    { status: 500, body: '{"message":"Internal Server Error"}' },
  ],
  ["an invalid status", { statusCode: "x" }, { status: 500 }],
  ["more than 6 MB", { statusCode: 200, body: "x".repeat(6 * 1024 * 1024) }, { status: 500 }],
  ["an error", new Error("boom"), { status: 500, body: '{"message":"Internal Server Error"}' }],
  ["no result in time", "hang", { status: 503, body: '{"message":"Service Unavailable"}' }],
];
test.each(results)("the answer is that of API Gateway if the function returns %s", async (_, given, expected) => {
  result = given;
  expect(await send({ method: "POST", path: "/hook/github/1", query: {}, headers: {}, body: "x" })).toMatchObject(
    expected,
  );
});
