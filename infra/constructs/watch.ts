import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { RunbookAlarm } from "#infra/constructs/runbook-alarm.ts";

export interface WatchProps {
  /** As the functions tell it with their metrics. */
  readonly installationId: string;
  readonly deadLetters: Readonly<Record<string, IQueue>>;
  readonly queues: Readonly<Record<string, IQueue>>;
  readonly functions: Readonly<Record<string, IFunction>>;
  /** Whom somebody waits for, and the timer: they must not lack a place to run in. */
  readonly first: Readonly<Record<string, IFunction>>;
}

/** Longer than the longest delay that a message is sent with, 15 minutes, and a worker's 5 after it. */
const oldSeconds = 1800;

/**
 * Alarms on every queue's dead letters and oldest message, on functions that fail, on rows that nobody can read and on an account
 * that is too small.
 */
export class Watch extends Construct {
  /** Rows of a newer version that are due. */
  readonly newerRows: IMetric;

  constructor(scope: Construct, id: string, props: WatchProps) {
    super(scope, id);
    for (const [name, queue] of Object.entries(props.deadLetters)) {
      new RunbookAlarm(this, `${name}DeadLetters`, {
        says: `Messages for ${name} failed again and again; its log says why. No row is lost: the tick goes on sending.`,
        section: "dead-letters",
        metric: queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" }),
        threshold: 0,
      });
    }
    for (const [name, queue] of Object.entries(props.queues)) {
      new RunbookAlarm(this, `${name}Age`, {
        says: `Messages for ${name} wait: its function fails, or has too few places for the work.`,
        section: "messages-wait",
        metric: queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(5), statistic: "Maximum" }),
        threshold: oldSeconds,
      });
    }

    const { tick: _ringsForItself, ...others } = props.functions;
    new RunbookAlarm(this, "Errors", {
      says: "A function fails again and again: it dies of time or memory, or of a right that it lacks.",
      section: "function-errors",
      metric: sumOf(others, { label: "Failed", period: Duration.minutes(5) }, (lambda, period) =>
        lambda.metricErrors({ statistic: "Sum", period }),
      ),
      threshold: 0,
      // What died once is tried again, and mostly in vain no more.
      evaluationPeriods: 3,
    });

    const newerRows = new Metric({
      namespace: "Starling",
      metricName: "NewerRows",
      // Of the function that counts them, as it names itself.
      dimensionsMap: { service: "tick", installation: props.installationId },
      period: Duration.minutes(1),
      statistic: "Sum",
    });
    this.newerRows = newerRows;
    new RunbookAlarm(this, "NewerRows", {
      says: "Rows that a newer version of Starling wrote are left alone: the deployment was rolled back.",
      section: "rows-of-a-newer-version",
      metric: newerRows,
      threshold: 0,
      // While a deployment replaces one function after the other, the last of the old ones see rows of the new ones.
      evaluationPeriods: 10,
      datapointsToAlarm: 6,
    });

    new RunbookAlarm(this, "Throttled", {
      says: "The account's concurrency is used up: the API or the timer did not run at once.",
      section: "throttles",
      metric: sumOf(props.first, { label: "Throttled", period: Duration.minutes(1) }, (lambda, period) =>
        lambda.metricThrottles({ statistic: "Sum", period }),
      ),
      threshold: 0,
      evaluationPeriods: 5,
      datapointsToAlarm: 3,
    });
  }
}

function sumOf(
  functions: Readonly<Record<string, IFunction>>,
  { label, period }: { readonly label: string; readonly period: Duration },
  metricOf: (lambda: IFunction, period: Duration) => IMetric,
): MathExpression {
  return new MathExpression({
    // A function that nobody invokes tells nothing, and what has no operand has no sum.
    expression: Object.keys(functions)
      .map((name) => `FILL(${name}, 0)`)
      .join(" + "),
    usingMetrics: Object.fromEntries(
      Object.entries(functions).map(([name, lambda]) => [name, metricOf(lambda, period)]),
    ),
    label,
    period,
  });
}
