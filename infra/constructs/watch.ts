import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { RunbookAlarm } from "#infra/constructs/runbook-alarm.ts";

export interface WatchProps {
  /** Dimension of the functions' metrics. */
  readonly installationId: string;
  readonly deadLetters: Readonly<Record<string, IQueue>>;
  readonly queues: Readonly<Record<string, IQueue>>;
  readonly functions: Readonly<Record<string, IFunction>>;
  /** Functions that callers wait for, and the timer. They must always have concurrency left. */
  readonly first: Readonly<Record<string, IFunction>>;
}

/** Longer than the longest delay of a message, 15 minutes, and the 5 minutes of a worker after it. */
export const oldSeconds = 1800;

/**
 * Alarms on every queue's dead letters and oldest message, on failing functions, on unreadable rows, and on an account whose
 * quota is too small.
 */
export class Watch extends Construct {
  /** Rows of a newer version that are due. */
  readonly newerRows: IMetric;

  constructor(scope: Construct, id: string, props: WatchProps) {
    super(scope, id);
    for (const [name, queue] of Object.entries(props.deadLetters)) {
      new RunbookAlarm(this, `${name}DeadLetters`, {
        says: `Messages for ${name} failed in every attempt; its log says why. No row is lost: the tick sends them again.`,
        section: "dead-letters",
        metric: queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" }),
        threshold: 0,
      });
    }
    for (const [name, queue] of Object.entries(props.queues)) {
      new RunbookAlarm(this, `${name}Age`, {
        says: `Messages for ${name} wait too long: its function fails, or has too little concurrency for the work.`,
        section: "messages-wait",
        metric: queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(5), statistic: "Maximum" }),
        threshold: oldSeconds,
      });
    }

    const { tick: _ringsForItself, ...others } = props.functions;
    new RunbookAlarm(this, "Errors", {
      says: "A function fails repeatedly: it runs out of time or memory, or lacks a permission.",
      section: "function-errors",
      metric: sumOf(others, { label: "Failed", period: Duration.minutes(5) }, (lambda, period) =>
        lambda.metricErrors({ statistic: "Sum", period }),
      ),
      threshold: 0,
      // A message of a single failure is tried again, mostly with success.
      evaluationPeriods: 3,
    });

    const newerRows = new Metric({
      namespace: "Starling",
      metricName: "NewerRows",
      // The name of the function that writes the metric.
      dimensionsMap: { service: "tick", installation: props.installationId },
      period: Duration.minutes(1),
      statistic: "Sum",
    });
    this.newerRows = newerRows;
    new RunbookAlarm(this, "NewerRows", {
      says: "Rows of a newer version of Starling are skipped: the deployment was rolled back.",
      section: "rows-of-a-newer-version",
      metric: newerRows,
      threshold: 0,
      // During a deployment, functions of the old version see rows of the new version.
      evaluationPeriods: 10,
      datapointsToAlarm: 6,
    });

    new RunbookAlarm(this, "Throttled", {
      says: "The account's concurrency is used up: the API or the timer was throttled.",
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
    // A function that is not invoked has no metric, and a sum with a missing operand has no value.
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
