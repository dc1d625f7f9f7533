/** The functions' logs are read by FilterLogEvents, which may return an empty page before the last one. */
import { CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import type { RunningService } from "#local/aws/services/json-service.ts";
import { LogStore } from "#local/aws/services/log-store.ts";
import { startLogs } from "#local/aws/services/logs-server.ts";
import { CloudWatchLogReader } from "#shared/adapters/aws/cloudwatch-log-reader.ts";

const credentials = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
const groups = new Map([
  ["api", "/api"],
  ["apply", "/apply"],
  ["rollout", "/rollout"],
]);
const since = new Date("2026-11-20T07:00:00.000Z");
const id = "push-20261123T061254Z-1f8a90c2";

let store: LogStore;
let server: RunningService;
let reader: CloudWatchLogReader;
beforeEach(async () => {
  store = new LogStore();
  for (const group of groups.values()) store.create(group);
  const principals = new Principals([{ ...credentials, principalArn: "arn:aws:iam::000000000000:user/ana" }]);
  server = await startLogs({ principals, store, pageLines: 10 });
  const client = new CloudWatchLogsClient({ endpoint: server.endpoint, region: "us-east-1", credentials });
  reader = new CloudWatchLogReader(client, groups);
});
afterEach(() => server.stop());

function put(group: string, correlationId: string, count = 1): void {
  for (let index = 0; index < count; index++) {
    const at = new Date(since.getTime() + 1000 * (1 + (store.lines(group)?.length ?? 0)));
    store.put(group, JSON.stringify({ level: "INFO", message: group, correlationId }), at);
  }
}

function read(of: "functions" | "audit" = "functions") {
  return reader.read({ of, filter: [{ correlationId: id }], since, limit: 50 });
}

test("lines after empty pages are found, and the lines of all groups are in one order", async () => {
  put("/apply", "other", 150);
  put("/apply", id);
  put("/rollout", id);
  const { lines, isMore } = await read();
  expect([lines.map((line) => line.function), isMore]).toEqual([["rollout", "apply"], false]);
});

test("a log that is too long to be searched is an error, and does not count as empty", async () => {
  put("/apply", "other", 300);
  put("/rollout", id);
  await expect(read()).rejects.toMatchObject({
    code: "AnswerTooLarge",
    message: expect.stringMatching(/^the log of apply since 2026-11-20T07:00:00\.000Z is longer than .*`--since 10m`$/),
  });
  expect(await read("audit")).toEqual({ lines: [], isMore: false });
});

test("the audit log is read only from the API, and the functions' logs from the other groups", async () => {
  for (const group of groups.values()) put(group, id);
  expect((await read("audit")).lines.map((line) => line.function)).toEqual(["api"]);
  expect((await read()).lines.map((line) => line.function).sort()).toEqual(["apply", "rollout"]);
});
