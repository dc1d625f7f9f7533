import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { RunbookAlarm } from "#infra/constructs/runbook-alarm.ts";
import { oldSeconds } from "#infra/constructs/watch.ts";
import type { ZoneQueues } from "#infra/constructs/zone-workers.ts";

export interface WatchedZone {
  readonly zone: string;
  readonly worker: IFunction;
  readonly queues: ZoneQueues;
}

const period = Duration.minutes(5);

/** One alarm for each zone. */
export class ZoneWatch extends Construct {
  constructor(scope: Construct, id: string, zones: readonly WatchedZone[]) {
    super(scope, id);
    for (const each of zones) alarmOfZone(this, `${each.zone}Down`, each);
  }
}

/** A broken network makes a zone's workers fail, its messages old and then dead, and that is one problem. */
export function alarmOfZone(scope: Construct, id: string, { zone, worker, queues }: WatchedZone): void {
  const { toApply, toApplySlow } = queues;
  const usingMetrics: Record<string, IMetric> = {
    errors: worker.metricErrors({ period, statistic: "Sum" }),
    letters: toApply.deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
    slowLetters: toApplySlow.deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
    age: toApply.queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum" }),
    slowAge: toApplySlow.queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum" }),
  };
  const counts = ["errors", "letters", "slowLetters"].map((name) => `FILL(${name}, 0)`);
  const areOld = ["age", "slowAge"].map((name) => `(FILL(${name}, 0) > ${oldSeconds})`);
  new RunbookAlarm(scope, id, {
    says: `Zone ${zone} is down: its workers fail, or its messages wait or are dead letters. Other zones are not affected.`,
    section: "zone-down",
    metric: new MathExpression({
      expression: [...counts, ...areOld].join(" + "),
      usingMetrics,
      label: `Problems of zone ${zone}`,
      period,
    }),
    threshold: 0,
    // A message of a single failure is tried again, mostly with success.
    evaluationPeriods: 3,
  });
}
