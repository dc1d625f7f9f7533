/** Alarms are read by DescribeAlarmHistory and DescribeAlarms, with the real client. */
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { AlarmStore } from "#local/aws/services/alarm-store.ts";
import { startAlarms } from "#local/aws/services/alarms-server.ts";
import { CloudWatchAlarmReader } from "#shared/adapters/aws/cloudwatch-alarm-reader.ts";
import { startScriptedServer } from "#test/support/scripted-server.ts";

const credentials = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
const since = "2026-11-20T07:00:00.000Z";
const now = new Date("2026-11-20T09:00:00.000Z");
const arnOf = (name: string) => `arn:aws:cloudwatch:us-east-1:000000000000:alarm:${name}`;
const errors = arnOf("errors");

let store: AlarmStore;
let server: Awaited<ReturnType<typeof startAlarms>>;
let reader: CloudWatchAlarmReader;
beforeEach(async () => {
  store = new AlarmStore();
  const principals = new Principals([{ ...credentials, principalArn: "arn:aws:iam::000000000000:user/ana" }]);
  server = await startAlarms({ principals, store, arnOf, pageChanges: 3 });
  reader = readerAt(server.endpoint, credentials);
});
afterEach(() => server.stop());

const readerAt = (endpoint: string, keys: typeof credentials) =>
  new CloudWatchAlarmReader(new CloudWatchClient({ endpoint, region: "us-east-1", credentials: keys, maxAttempts: 1 }));

const at = (minute: number) => new Date(Date.parse(since) + minute * 60_000);

test("a short alarm is in the changes, although the alarm is OK again", async () => {
  store.set("errors", "OK", at(-5));
  store.set("errors", "ALARM", at(10));
  store.set("errors", "OK", at(11));
  expect(await reader.read(errors, since, now)).toEqual({
    at: now.toISOString(),
    state: "OK",
    changes: expect.arrayContaining([
      { at: at(10).toISOString(), before: "OK", after: "ALARM" },
      { at: at(11).toISOString(), before: "ALARM", after: "OK" },
    ]),
  });
});

test("the changes of all pages are read, and none from before", async () => {
  for (let minute = -4; minute < 8; minute++) store.set("errors", minute % 2 === 0 ? "OK" : "ALARM", at(minute));
  expect((await reader.read(errors, since, now)).changes).toHaveLength(8);
});

test("an alarm with more changes than are read is not judged by a part of them", async () => {
  for (let minute = 0; minute < 31; minute++) store.set("errors", minute % 2 === 0 ? "OK" : "ALARM", at(minute));
  await expect(reader.read(errors, since, now)).rejects.toMatchObject({ code: "AlarmsUnavailable" });
});

test("an alarm that does not exist, and one of the same name elsewhere, are errors", async () => {
  const missing = { code: "AlarmNotFound", message: "it does not exist" };
  await expect(reader.read(errors, since, now)).rejects.toMatchObject(missing);
  store.set("errors", "OK", at(0));
  const elsewhere = "arn:aws:cloudwatch:eu-west-1:000000000000:alarm:errors";
  await expect(reader.read(elsewhere, since, now)).rejects.toMatchObject(missing);
});

test("a request that CloudWatch refuses is an error with its reason", async () => {
  store.set("errors", "OK", at(0));
  const stranger = readerAt(server.endpoint, { ...credentials, accessKeyId: "AKOTHER" });
  await expect(stranger.read(errors, since, now)).rejects.toMatchObject({
    code: "AlarmsUnavailable",
    message: expect.stringContaining("The security token included in the request is invalid."),
  });
});

test("a denied request is named as denied", async () => {
  const message = "User is not authorized to perform: cloudwatch:DescribeAlarmHistory";
  const denying = await startScriptedServer();
  denying.restart(() => ({
    status: 403,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: JSON.stringify({ __type: "com.amazon.coral.service#AccessDeniedException", message }),
  }));
  try {
    await expect(readerAt(denying.endpoint, credentials).read(errors, since, now)).rejects.toMatchObject({
      code: "AlarmDenied",
      message: expect.stringContaining(message),
    });
  } finally {
    await denying.stop();
  }
});
