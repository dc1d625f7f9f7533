import type { IncomingMessage, ServerResponse } from "node:http";
import * as z from "zod";
import type { Principals } from "#local/aws/iam/principals.ts";
import { refusalReply } from "#local/aws/iam/signature-refusals.ts";
import { verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import type { AlarmStore } from "#local/aws/services/alarm-store.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";
import { defined } from "#shared/base/defined.ts";

export interface AlarmsServerOptions {
  readonly principals: Pick<Principals, "find">;
  readonly store: AlarmStore;
  /** The ARN of an alarm of this name. */
  readonly arnOf: (name: string) => string;
  /** The number of changes in one page of a history. */
  readonly pageChanges?: number;
}

const maxBodyBytes = 64 * 1024;
const targets = "GraniteServiceVersion20100801.";
const millisecondsPerSecond = 1000;
const alarmTypes = z.array(z.enum(["MetricAlarm", "CompositeAlarm"])).optional();

const historyRequest = z.strictObject({
  AlarmName: z.string().min(1),
  AlarmTypes: alarmTypes,
  HistoryItemType: z.literal("StateUpdate"),
  /** Seconds since 1970. */
  StartDate: z.number(),
  NextToken: z.string().regex(/^\d+$/).optional(),
});
const alarmsRequest = z.strictObject({ AlarmNames: z.array(z.string().min(1)), AlarmTypes: alarmTypes });

/** CloudWatch on 127.0.0.1, reduced to the states of alarms: DescribeAlarms and DescribeAlarmHistory. */
export async function startAlarms({ principals, store, arnOf, pageChanges = 100 }: AlarmsServerOptions): Promise<{
  readonly endpoint: string;
  stop(): Promise<void>;
}> {
  function describeAlarms(body: unknown): object {
    const { AlarmNames } = alarmsRequest.parse(body);
    const MetricAlarms = AlarmNames.flatMap((name) => {
      const found = store.named(name);
      return found === undefined ? [] : [{ AlarmName: name, AlarmArn: arnOf(name), StateValue: found.state }];
    });
    return { MetricAlarms, CompositeAlarms: [] };
  }

  function describeAlarmHistory(body: unknown): object {
    const { AlarmName, StartDate, NextToken = "0" } = historyRequest.parse(body);
    const { changes = [] } = store.named(AlarmName) ?? {};
    const newestFirst = changes.filter(({ at }) => at.getTime() >= StartDate * millisecondsPerSecond).toReversed();
    const from = Number(NextToken);
    const AlarmHistoryItems = newestFirst.slice(from, from + pageChanges).map(({ at, before, after }) => ({
      AlarmName,
      AlarmType: "MetricAlarm",
      HistoryItemType: "StateUpdate",
      Timestamp: at.getTime() / millisecondsPerSecond,
      HistoryData: JSON.stringify({
        version: "1.0",
        oldState: { stateValue: before },
        newState: { stateValue: after },
      }),
    }));
    const next = from + pageChanges < newestFirst.length ? String(from + pageChanges) : undefined;
    return { AlarmHistoryItems, ...defined({ NextToken: next }) };
  }

  function answer(target: string, text: string) {
    try {
      const body: unknown = JSON.parse(text);
      if (target === `${targets}DescribeAlarms`) return { status: 200, body: describeAlarms(body) };
      if (target === `${targets}DescribeAlarmHistory`) return { status: 200, body: describeAlarmHistory(body) };
      const message = `the local CloudWatch does not support ${target}`;
      return { status: 400, body: { __type: "UnknownOperationException", message } };
    } catch (error) {
      return { status: 400, body: { __type: "InvalidParameterValue", message: String(error) } };
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = request;
    const verdict = await verifySigV4(
      { method, url, headers, body: () => readBytesUpTo(maxBodyBytes, request) },
      { principals, service: "monitoring", now: () => new Date() },
    );
    if (verdict.verdict === "refused") {
      const refusal = refusalReply("monitoring", verdict);
      response.writeHead(refusal.status, refusal.headers).end(refusal.body);
      return;
    }
    const { status, body } = answer(String(headers["x-amz-target"]), verdict.body.toString());
    response.writeHead(status, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(body));
  }

  // An error here means that the sender closed the connection before its request was complete.
  const listening = await serveOnLoopback((request, response) => {
    respond(request, response).catch(() => response.destroy());
  }, {});
  return { endpoint: listening.origin, stop: () => listening.stop() };
}
