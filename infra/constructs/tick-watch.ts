import { Duration } from "aws-cdk-lib";
import {
  AlarmRule,
  AlarmState,
  ComparisonOperator,
  CompositeAlarm,
  Metric,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { RunbookAlarm, runbookText } from "#infra/constructs/runbook-alarm.ts";

export interface TickWatchProps {
  /** Dimension of the function's metrics. */
  readonly installationId: string;
  readonly tick: IFunction;
  /** Dead letters of the schedule and of the function. */
  readonly deadLetters: IQueue;
}

const period = Duration.minutes(1);

/** More than the delay after three ticks that were throttled or failed. */
const lateSeconds = 900;

/**
 * Alarms on the only timer. When it does not run, nothing fails, but all due work waits. There is an alarm for a tick that fails,
 * one for a tick that does not run, and one for work that is late for any reason.
 */
export class TickWatch extends Construct {
  /** The delay of the most overdue row that a tick has claimed. */
  readonly lag: Metric;

  constructor(scope: Construct, id: string, { installationId, tick, deadLetters }: TickWatchProps) {
    super(scope, id);
    new RunbookAlarm(this, "DeadLetters", {
      says: "A tick could not be started, or failed; the dead letter says why. The tick of the next minute claims the rest.",
      section: "failing-timer",
      metric: deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
      threshold: 0,
    });
    new RunbookAlarm(this, "Failures", {
      says: "Several ticks in a row failed, so that due work waits. The log of tick says why.",
      section: "failing-timer",
      metric: tick.metricErrors({ period, statistic: "Sum" }),
      threshold: 0,
      // A single throttled write is repaired in the next minute.
      evaluationPeriods: 5,
      datapointsToAlarm: 3,
    });
    this.#ringWhenSilent(tick);
    this.lag = new Metric({
      namespace: "Starling",
      metricName: "DueLag",
      // The name of the function that writes the metric.
      dimensionsMap: { service: "tick", installation: installationId },
      period,
      statistic: "Maximum",
    });
    new RunbookAlarm(this, "Lag", {
      says: "A row was due for more than 15 minutes before a tick claimed it.",
      section: "late-timer",
      metric: this.lag.with({ period: Duration.minutes(15) }),
      threshold: lateSeconds,
      // A missing metric means that ticks fail or do not run, which other alarms report. Before the first tick nothing is late.
      treatMissingData: TreatMissingData.IGNORE,
    });
  }

  /**
   * A function that is not invoked has no metric, so that missing data is the signal. Before the first tick, missing data is
   * normal. Only two alarms together distinguish both cases. Neither of them ever goes into alarm itself.
   */
  #ringWhenSilent(tick: IFunction): void {
    const parts = {
      section: "silent-timer",
      threshold: 1,
      comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
      treatMissingData: TreatMissingData.MISSING,
      actionsEnabled: false,
    } as const;
    const now = new RunbookAlarm(this, "Now", {
      says: "Has no data while no tick has run for minutes. It is a part of the alarm Absence and never goes into alarm itself.",
      metric: tick.metricInvocations({ period, statistic: "Sum" }),
      evaluationPeriods: 5,
      ...parts,
    });
    const ever = new RunbookAlarm(this, "Ever", {
      says: "Is OK when a tick has run within a week. It is a part of the alarm Absence and never goes into alarm itself.",
      // The longest period of an alarm.
      metric: tick.metricInvocations({ period: Duration.days(7), statistic: "Sum" }),
      ...parts,
    });
    const isSilent = AlarmRule.fromAlarm(now, AlarmState.INSUFFICIENT_DATA);
    new CompositeAlarm(this, "Absence", {
      alarmDescription: runbookText(
        "No tick has run for minutes, though ticks ran before: due work is not done.",
        "silent-timer",
      ),
      alarmRule: AlarmRule.allOf(isSilent, AlarmRule.fromAlarm(ever, AlarmState.OK)),
    });
  }
}
