import { apiHandler } from "#functions/api/http/api-handler.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { HttpAnswer } from "#shared/lambda/http-handler.ts";
import type { Message } from "#shared/messages.ts";
import type { Ids, Table } from "#shared/ports.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { versionedTable } from "#test/support/versioned-table.ts";

const installation = "starling.111122223333.eu-west-1";
export const principal = "arn:aws:sts::111122223333:assumed-role/sre/ana";

export interface ApiFixture {
  readonly table: MemoryTable;
  readonly blobs: MemoryBlobStore;
  readonly log: readonly Readonly<Record<string, unknown>>[];
  setNow(at: string): void;
  takeMessages(): readonly Message[];
  call(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: Answer }>;
  /** The whole answer to an event. */
  answer(event: unknown): Promise<HttpAnswer>;
  /** Calls the handler with any event. */
  raw(event: unknown): Promise<{ readonly status: number; readonly body: Answer }>;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are JSON, and a wrong shape fails the assertion that reads it
export type Answer = any;

/**
 * The wired handler over a table and a queue in memory, a clock that stands and ids that count.
 * @param through - the table as the handler sees it.
 */
export function apiFixture(
  table = new MemoryTable(),
  through: Table = table,
  blobs = new MemoryBlobStore(),
  settings: Partial<
    Pick<ApiPorts, "bucketRules" | "defaultGuard" | "personalRoles" | "zoneNetworks" | "servedNames">
  > = {},
): ApiFixture {
  const sender = new MemorySender();
  const log: Record<string, unknown>[] = [];
  let now = new Date("2026-11-20T08:00:00Z");
  let count = 0;
  const clock: Clock = { now: () => now };
  const ids: Ids = { unique: () => `uid-${++count}` };
  const write = (message: string, fields?: Readonly<Record<string, unknown>>) => log.push({ message, ...fields });
  const handler = apiHandler({
    table: versionedTable(through, table),
    blobs,
    sender,
    clock,
    ids,
    installation,
    ...healthyInstallation,
    ...settings,
    log: { info: write, warn: write, error: write },
  });
  const raw = async (event: unknown) => {
    const answer = await handler(event, {});
    return { status: answer.statusCode, body: JSON.parse(answer.body) };
  };
  return {
    table,
    blobs,
    log,
    setNow: (at) => {
      now = new Date(at);
    },
    takeMessages: () => sender.take(),
    answer: (event) => handler(event, {}),
    raw,
    call: (method, path, body) => raw(httpEvent(method, path, body)),
  };
}

/** An event as API Gateway sends it to a function behind an IAM-authorised HTTP API (payload format 2.0). */
export function httpEvent(method: string, path: string, body?: unknown) {
  const [rawPath = "", rawQueryString = ""] = path.split("?");
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath,
    rawQueryString,
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      host: "abc123.execute-api.eu-west-1.amazonaws.com",
      "x-amz-date": "20261120T080000Z",
      "x-forwarded-for": "192.0.2.7",
    },
    requestContext: {
      accountId: "111122223333",
      apiId: "abc123",
      authorizer: {
        iam: {
          accessKey: "ASIAEXAMPLE",
          accountId: "111122223333",
          callerId: "AROAEXAMPLE:ana",
          cognitoIdentity: null,
          principalOrgId: "o-example",
          userArn: principal,
          userId: "AROAEXAMPLE:ana",
        },
      },
      domainName: "abc123.execute-api.eu-west-1.amazonaws.com",
      domainPrefix: "abc123",
      http: { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: "192.0.2.7", userAgent: "starling/0.1.0" },
      requestId: "JKJaXmPLvHcESHA=",
      routeKey: "$default",
      stage: "$default",
      time: "20/Nov/2026:08:00:00 +0000",
      timeEpoch: 1_795_161_600_000,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    isBase64Encoded: false,
  };
}

const apiVersion = "starling.dev/v1alpha1";

export function source(name: string, spec: Readonly<Record<string, unknown>> = {}) {
  return {
    apiVersion,
    kind: "Source",
    metadata: { name, namespace: "payments" },
    spec: { git: { url: "https://github.com/acme/app", ref: { branch: "main" } }, ...spec },
  };
}

/** A Receiver that takes tokens of one repository. @param repository - a regular expression. */
export function receiver(name: string, repository: string, namespace = "payments") {
  const issuer = "https://token.actions.githubusercontent.com";
  return {
    apiVersion,
    kind: "Receiver",
    metadata: { name, namespace },
    spec: {
      provider: "generic-oidc",
      sources: ["app"],
      oidc: { issuer, audience: "starling", claims: { repository } },
    },
  };
}

export function cluster(name: string, labels: Readonly<Record<string, string>> = {}) {
  return {
    apiVersion,
    kind: "Cluster",
    metadata: { name, labels },
    spec: { endpoint: { server: `https://${name}.example.com:6443`, token: { secret: `starling/clusters/${name}` } } },
  };
}

export function clusterValues(name: string, clusters: object, values: object, priority = 0) {
  return { apiVersion, kind: "ClusterValues", metadata: { name }, spec: { clusters, priority, values } };
}

export function syncGroup(name: string, templates: readonly Readonly<Record<string, unknown>>[]) {
  return {
    apiVersion,
    kind: "SyncGroup",
    metadata: { name, namespace: "payments" },
    spec: { clusters: { selector: { matchLabels: { env: "prod" } } }, templates },
  };
}

export function sync(name: string, spec: Readonly<Record<string, unknown>>) {
  return { apiVersion, kind: "Sync", metadata: { name, namespace: "payments" }, spec };
}
