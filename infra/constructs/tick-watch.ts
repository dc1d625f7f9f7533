import { Duration } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";

export interface TickWatchProps {
  /** As the function tells it with its metrics. */
  readonly installationId: string;
  readonly tick: IFunction;
  /** Of the schedule, and of the function. */
  readonly deadLetters: IQueue;
}

const period = Duration.minutes(1);
const { GREATER_THAN_THRESHOLD, LESS_THAN_THRESHOLD } = ComparisonOperator;
const { BREACHING, NOT_BREACHING } = TreatMissingData;

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
    const see = "See docs/runbook.md, The timer.";
    new Alarm(this, "DeadLetters", {
      alarmDescription: `A tick could not be started, or did not get through; the letter says why. The next minute's claims what it left. ${see}`,
      metric: deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
      threshold: 0,
      comparisonOperator: GREATER_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: NOT_BREACHING,
    });
    new Alarm(this, "Failures", {
      alarmDescription: `Tick after tick fails: what is due waits. Its log says why. ${see}`,
      metric: tick.metricErrors({ period, statistic: "Sum" }),
      threshold: 0,
      comparisonOperator: GREATER_THAN_THRESHOLD,
      // One throttled write is over with the next minute.
      evaluationPeriods: 5,
      datapointsToAlarm: 3,
      treatMissingData: NOT_BREACHING,
    });
    new Alarm(this, "Absence", {
      alarmDescription: `No tick has run for minutes: nothing that is due is done. ${see}`,
      metric: tick.metricInvocations({ period, statistic: "Sum" }),
      threshold: 1,
      comparisonOperator: LESS_THAN_THRESHOLD,
      // A function that is not invoked has no metric: what is missing is the point.
      evaluationPeriods: 5,
      treatMissingData: BREACHING,
    });
    this.lag = new Metric({
      namespace: "Starling",
      metricName: "DueLag",
      // Of the function that tells it, as it names itself.
      dimensionsMap: { service: "tick", installation: installationId },
      period,
      statistic: "Maximum",
    });
    new Alarm(this, "Lag", {
      alarmDescription: `Something was due for a quarter of an hour before a tick came to it, or no tick got through. ${see}`,
      metric: this.lag.with({ period: Duration.minutes(15) }),
      threshold: lateSeconds,
      comparisonOperator: GREATER_THAN_THRESHOLD,
      // A row is seen when it is claimed, and no more then: the alarm stays on for so long.
      evaluationPeriods: 1,
      // A tick that ran and never got through tells nothing.
      treatMissingData: BREACHING,
    });
  }
}
