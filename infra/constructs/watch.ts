import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  Dashboard,
  GraphWidget,
  MathExpression,
  Metric,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";

export interface WatchProps {
  readonly deadLetters: Readonly<Record<string, IQueue>>;
  readonly queues: Readonly<Record<string, IQueue>>;
  readonly functions: Readonly<Record<string, IFunction>>;
}

/** Alarms on every dead-letter queue and on rows that nobody can read, and one dashboard: what the fleet does, and what the machinery does. */
export class Watch extends Construct {
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

    const newerRows = new Metric({
      namespace: "Starling",
      metricName: "NewerRows",
      // Of the function that counts them, as it names itself.
      dimensionsMap: { service: "tick" },
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

    const dashboard = new Dashboard(this, "Dashboard", { defaultInterval: Duration.hours(3) });
    dashboard.addWidgets(
      new GraphWidget({ title: "Syncs that changed, by phase", left: [phases("SyncPhase")], width: 12 }),
      new GraphWidget({ title: "Rollouts that changed, by phase", left: [phases("RolloutPhase")], width: 12 }),
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
    );
  }
}

/** The embedded metrics of `report`, one line for each value of their dimension `phase`. */
function phases(metric: string): MathExpression {
  return new MathExpression({
    expression: `SEARCH('Namespace="Starling" MetricName="${metric}"', 'Sum', 60)`,
    usingMetrics: {},
    label: "",
    period: Duration.minutes(1),
  });
}
