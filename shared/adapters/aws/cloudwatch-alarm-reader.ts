import {
  type AlarmHistoryItem,
  type CloudWatchClient,
  DescribeAlarmHistoryCommand,
  DescribeAlarmsCommand,
} from "@aws-sdk/client-cloudwatch";
import * as z from "zod";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { parseAlarmArn } from "#shared/fleet/alarm-arn.ts";
import type { AlarmChange, AlarmReading } from "#shared/fleet/rollout/alarms.ts";
import { alarmStates } from "#shared/fleet/rows/rollout-rows.ts";
import type { AlarmReader } from "#shared/ports.ts";

/** Pages of a history, of a hundred changes each. An alarm with more since the last reading is not judged by a part. */
const mostPages = 10;

/** CloudWatch leaves composite alarms out unless they are asked for. */
const AlarmTypes = ["MetricAlarm" as const, "CompositeAlarm" as const];

const state = z.enum(alarmStates);
/** The text of a change in a history. */
const historyData = z.object({
  oldState: z.object({ stateValue: state }),
  newState: z.object({ stateValue: state }),
});

/** The history first, and then the present state: a change between both shows in the state. */
export class CloudWatchAlarmReader implements AlarmReader {
  readonly #client: CloudWatchClient;

  constructor(client: CloudWatchClient) {
    this.#client = client;
  }

  async read(arn: string, since: string, now: Date): Promise<AlarmReading> {
    try {
      const changes = await this.#changes(parseAlarmArn(arn).name, since);
      return { at: now.toISOString(), state: await this.#state(arn), changes };
    } catch (error) {
      throw error instanceof StarlingError ? error : unread(error);
    }
  }

  async #changes(AlarmName: string, since: string): Promise<readonly AlarmChange[]> {
    const changes: AlarmChange[] = [];
    let NextToken: string | undefined;
    for (let page = 0; page < mostPages; page++) {
      const command = new DescribeAlarmHistoryCommand({
        AlarmName,
        AlarmTypes,
        HistoryItemType: "StateUpdate",
        StartDate: new Date(since),
        ...defined({ NextToken }),
      });
      const { AlarmHistoryItems = [], NextToken: next } = await this.#client.send(command);
      changes.push(...AlarmHistoryItems.map(changeOf));
      NextToken = next;
      if (next === undefined) return changes;
    }
    throw new StarlingError(`it has changed more than ${mostPages * 100} times since ${since}`, {
      code: "AlarmsUnavailable",
      retry: "transient",
    });
  }

  async #state(arn: string) {
    const command = new DescribeAlarmsCommand({ AlarmNames: [parseAlarmArn(arn).name], AlarmTypes });
    const { MetricAlarms = [], CompositeAlarms = [] } = await this.#client.send(command);
    const found = [...MetricAlarms, ...CompositeAlarms].find(({ AlarmArn }) => AlarmArn === arn);
    if (found !== undefined) return state.parse(found.StateValue);
    throw new StarlingError("it does not exist", { code: "AlarmNotFound", retry: "transient" });
  }
}

function changeOf({ Timestamp, HistoryData = "" }: AlarmHistoryItem): AlarmChange {
  const { oldState, newState } = historyData.parse(JSON.parse(HistoryData));
  if (Timestamp === undefined) throw new Error("a change in its history has no time");
  return { at: Timestamp.toISOString(), before: oldState.stateValue, after: newState.stateValue };
}

/** The names under which AWS refuses. */
const denials = ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"];

function unread(error: unknown): StarlingError {
  const isDenied = error instanceof Error && denials.includes(error.name);
  return new StarlingError(errorMessage(error), {
    code: isDenied ? "AlarmDenied" : "AlarmsUnavailable",
    retry: "transient",
    cause: error,
  });
}
