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
  /** As the function tells it with its metrics. */
  readonly installationId: string;
  readonly tick: IFunction;
  /** Of the schedule, and of the function. */
  readonly deadLetters: IQueue;
}

const period = Duration.minutes(1);

/** No single tick that was throttled or failed takes so long, nor three of them. */
const lateSeconds = 900;

/**
 * Alarms on the only timer. Without it nothing fails: all that is due waits. So there is one for a tick that fails, one for
 * a tick that is not there, and one for what it is there for, whoever is to blame.
 */
export class TickWatch extends Construct {
  /** How late the latest row was that a tick has claimed. */
  readonly lag: Metric;

  constructor(scope: Construct, id: string, { installationId, tick, deadLetters }: TickWatchProps) {
    super(scope, id);
    new RunbookAlarm(this, "DeadLetters", {
      says: "A tick could not be started, or did not get through; the letter says why. The next minute's claims what it left.",
      section: "failing-timer",
      metric: deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
      threshold: 0,
    });
    new RunbookAlarm(this, "Failures", {
      says: "Tick after tick fails: what is due waits. Its log says why.",
      section: "failing-timer",
      metric: tick.metricErrors({ period, statistic: "Sum" }),
      threshold: 0,
      // One throttled write is over with the next minute.
      evaluationPeriods: 5,
      datapointsToAlarm: 3,
    });
    this.#ringWhenSilent(tick);
    this.lag = new Metric({
      namespace: "Starling",
      metricName: "DueLag",
      // Of the function that tells it, as it names itself.
      dimensionsMap: { service: "tick", installation: installationId },
      period,
      statistic: "Maximum",
    });
    new RunbookAlarm(this, "Lag", {
      says: "Something was due for a quarter of an hour before a tick came to it.",
      section: "late-timer",
      metric: this.lag.with({ period: Duration.minutes(15) }),
      threshold: lateSeconds,
      // A tick that does not say is one that fails, or that is not there: both ring for themselves, and none is late
      // before the first has run.
      treatMissingData: TreatMissingData.IGNORE,
    });
  }

  /**
   * A function that is not invoked has no metric, so that what is missing is the point; and yet nothing is missing before
   * the first tick. Only two alarms together know both. Neither of them is ever red, nor rings.
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
      says: "Without data while no tick has run for minutes. A part of the alarm Absence: it rings for nothing itself.",
      metric: tick.metricInvocations({ period, statistic: "Sum" }),
      evaluationPeriods: 5,
      ...parts,
    });
    const ever = new RunbookAlarm(this, "Ever", {
      says: "OK when a tick has run within a week. A part of the alarm Absence: it rings for nothing itself.",
      // The longest that an alarm looks back.
      metric: tick.metricInvocations({ period: Duration.days(7), statistic: "Sum" }),
      ...parts,
    });
    const isSilent = AlarmRule.fromAlarm(now, AlarmState.INSUFFICIENT_DATA);
    new CompositeAlarm(this, "Absence", {
      alarmDescription: runbookText(
        "No tick has run for minutes, and one has before: nothing that is due is done.",
        "silent-timer",
      ),
      alarmRule: AlarmRule.allOf(isSilent, AlarmRule.fromAlarm(ever, AlarmState.OK)),
    });
  }
}
