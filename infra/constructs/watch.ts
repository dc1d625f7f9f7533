import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  Dashboard,
  GraphWidget,
  type IMetric,
  MathExpression,
  Metric,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";

export interface WatchProps {
  /** As the functions tell it with their metrics. */
  readonly installationId: string;
  readonly deadLetters: Readonly<Record<string, IQueue>>;
  readonly queues: Readonly<Record<string, IQueue>>;
  readonly functions: Readonly<Record<string, IFunction>>;
  /** Whom somebody waits for, and the timer: they must not lack a place to run in. */
  readonly first: Readonly<Record<string, IFunction>>;
  /** How late the latest row is. */
  readonly lag: IMetric;
}

/** Longer than the longest delay that a message is sent with, 15 minutes, and a worker's 5 after it. */
const oldSeconds = 1800;

/**
 * Alarms on every queue's dead letters and oldest message, on rows that nobody can read and on an account that is too small, and one
 * dashboard: what the fleet does, and what the machinery does.
 */
export class Watch extends Construct {
  readonly dashboardName: string;

  constructor(scope: Construct, id: string, props: WatchProps) {
    super(scope, id);
    for (const [name, queue] of Object.entries(props.deadLetters)) {
      new Alarm(this, `${name}DeadLetters`, {
        alarmDescription: `Messages for ${name} failed again and again; its log says why. No row is lost: the tick goes on sending.`,
        metric: queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" }),
        threshold: 0,
        comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
        evaluationPeriods: 1,
        treatMissingData: TreatMissingData.NOT_BREACHING,
      });
    }

    for (const [name, queue] of Object.entries(props.queues)) {
      new Alarm(this, `${name}Age`, {
        alarmDescription: `Messages for ${name} wait: its function fails, or has too few places for the work. See docs/runbook.md, The timer.`,
        metric: queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(5), statistic: "Maximum" }),
        threshold: oldSeconds,
        comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
        evaluationPeriods: 1,
        treatMissingData: TreatMissingData.NOT_BREACHING,
      });
    }

    const newerRows = new Metric({
      namespace: "Starling",
      metricName: "NewerRows",
      // Of the function that counts them, as it names itself.
      dimensionsMap: { service: "tick", installation: props.installationId },
      period: Duration.minutes(1),
      statistic: "Sum",
    });
    new Alarm(this, "NewerRows", {
      alarmDescription:
        "Rows that a newer version of Starling wrote are left alone: the deployment was rolled back. See docs/runbook.md, Rows of a newer version.",
      metric: newerRows,
      threshold: 0,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      // While a deployment replaces one function after the other, the last of the old ones see rows of the new ones.
      evaluationPeriods: 10,
      datapointsToAlarm: 6,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });

    new Alarm(this, "Throttled", {
      alarmDescription:
        "The account's concurrency is used up: the API or the timer did not run at once. See docs/runbook.md, The timer.",
      metric: new MathExpression({
        expression: Object.keys(props.first).join(" + "),
        usingMetrics: Object.fromEntries(
          Object.entries(props.first).map(([name, lambda]) => [name, lambda.metricThrottles({ statistic: "Sum" })]),
        ),
        label: "Throttled",
        period: Duration.minutes(1),
      }),
      threshold: 0,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: 5,
      datapointsToAlarm: 3,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });

    const dashboard = new Dashboard(this, "Dashboard", { defaultInterval: Duration.hours(3) });
    this.dashboardName = dashboard.dashboardName;
    dashboard.addWidgets(
      new GraphWidget({
        title: "Syncs that changed, by phase",
        left: [phases("SyncPhase", props.installationId)],
        width: 12,
      }),
      new GraphWidget({
        title: "Rollouts that changed, by phase",
        left: [phases("RolloutPhase", props.installationId)],
        width: 12,
      }),
    );
    dashboard.addWidgets(
      new GraphWidget({
        title: "Oldest message",
        left: Object.values(props.queues).map((queue) => queue.metricApproximateAgeOfOldestMessage()),
        width: 12,
      }),
      new GraphWidget({
        title: "Errors",
        left: Object.values(props.functions).map((lambda) => lambda.metricErrors()),
        width: 12,
      }),
      new GraphWidget({ title: "Rows of a newer version that are due", left: [newerRows], width: 12 }),
      new GraphWidget({ title: "How late the latest row is, in seconds", left: [props.lag], width: 12 }),
      new GraphWidget({
        title: "Throttles",
        left: Object.values(props.functions).map((lambda) => lambda.metricThrottles()),
        width: 12,
      }),
    );
  }
}

/** The embedded metrics of `report`, one line for each value of their dimension `phase`. */
function phases(metric: string, installationId: string): MathExpression {
  return new MathExpression({
    expression: `SEARCH('Namespace="Starling" MetricName="${metric}" installation="${installationId}"', 'Sum', 60)`,
    usingMetrics: {},
    label: "",
    period: Duration.minutes(1),
  });
}
