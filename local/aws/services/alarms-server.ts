import * as z from "zod";
import type { Principals } from "#local/aws/iam/principals.ts";
import type { AlarmStore } from "#local/aws/services/alarm-store.ts";
import {
  type JsonAnswer,
  type JsonRequest,
  type RunningService,
  startJsonService,
} from "#local/aws/services/json-service.ts";
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
export async function startAlarms(options: AlarmsServerOptions): Promise<RunningService> {
  const { principals, store, arnOf, pageChanges = 100 } = options;

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

  function answer({ target, body: sent }: JsonRequest): JsonAnswer {
    try {
      const body: unknown = JSON.parse(sent.toString());
      if (target === `${targets}DescribeAlarms`) return { status: 200, body: describeAlarms(body) };
      if (target === `${targets}DescribeAlarmHistory`) return { status: 200, body: describeAlarmHistory(body) };
      const message = `the local CloudWatch does not support ${target}`;
      return { status: 400, body: { __type: "UnknownOperationException", message } };
    } catch (error) {
      return { status: 400, body: { __type: "InvalidParameterValue", message: String(error) } };
    }
  }

  return startJsonService({ principals, service: "monitoring", version: "1.0", maxBodyBytes, answer });
}
