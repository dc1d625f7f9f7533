import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { RunbookAlarm, threeOfFour } from "#infra/constructs/runbook-alarm.ts";
import { oldSeconds } from "#infra/constructs/watch.ts";
import type { ZoneQueues } from "#infra/constructs/zone-workers.ts";
import { defined } from "#shared/base/defined.ts";

export interface WatchedZone {
  readonly zone: string;
  readonly worker: IFunction;
  readonly queues: ZoneQueues;
  /** Whether its workers reach none of its clusters, or its queue takes no messages. Absent for zones in other accounts, where nobody measures it. */
  readonly silent?: IMetric;
}

const period = Duration.minutes(5);
/** Messages that wait so long, while no worker is called at all, are not a matter of concurrency. */
const standstillSeconds = 300;

export interface ZoneWatchProps {
  /** Dimension of the functions' metrics. */
  readonly installationId: string;
  readonly zones: readonly WatchedZone[];
  /** Names of the zones in other accounts and regions. Their stacks have the alarms on their workers and queues. */
  readonly elsewhere: readonly string[];
}

/** One alarm for each zone. */
export class ZoneWatch extends Construct {
  constructor(scope: Construct, id: string, { installationId, zones, elsewhere }: ZoneWatchProps) {
    super(scope, id);
    for (const each of zones)
      alarmOfZone(this, `${each.zone}Down`, { ...each, silent: silentMetric(each.zone, installationId) });
    for (const zone of elsewhere)
      new RunbookAlarm(this, `${zone}Silent`, {
        says: `Zone ${zone} is down: its queue takes no messages, or its workers run and reach none of its clusters. Other zones are not affected.`,
        section: "zone-down",
        metric: silentMetric(zone, installationId),
        threshold: 0,
        ...threeOfFour,
      });
  }
}

/**
 * A broken network makes a zone's workers fail, its messages old and then dead, or all its clusters unreachable, and that
 * is one problem.
 */
export function alarmOfZone(scope: Construct, id: string, { zone, worker, queues, silent }: WatchedZone): void {
  const { toApply, toApplySlow } = queues;
  const usingMetrics: Record<string, IMetric> = {
    errors: worker.metricErrors({ period, statistic: "Sum" }),
    letters: toApply.deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
    slowLetters: toApplySlow.deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
    age: toApply.queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum" }),
    slowAge: toApplySlow.queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum" }),
    calls: worker.metricInvocations({ period, statistic: "Sum" }),
    ...defined({ silent }),
  };
  const counts = ["errors", "letters", "slowLetters", ...(silent === undefined ? [] : ["silent"])];
  const areOld = ["age", "slowAge"].map((name) => `(FILL(${name}, 0) > ${oldSeconds})`);
  const standsStill = `(FILL(age, 0) > ${standstillSeconds}) * (1 > FILL(calls, 0))`;
  const ofSurvey = silent === undefined ? "" : "they reach none of its clusters, its queue takes no messages, ";
  new RunbookAlarm(scope, id, {
    says: `Zone ${zone} is down: its workers fail, ${ofSurvey}or its messages wait or are dead letters. Other zones are not affected.`,
    section: "zone-down",
    metric: new MathExpression({
      expression: [...counts.map((name) => `FILL(${name}, 0)`), ...areOld, standsStill].join(" + "),
      usingMetrics,
      label: `Problems of zone ${zone}`,
      period,
    }),
    threshold: 0,
    // A message of a single failure is tried again, mostly with success.
    ...threeOfFour,
  });
}

/** Whether the zone's workers reach none of its clusters, or its queue takes no messages, by the survey of the tick. */
function silentMetric(zone: string, installationId: string): IMetric {
  return new Metric({
    namespace: "Starling",
    metricName: "SilentZones",
    // The name of the function that writes the metric.
    dimensionsMap: { service: "tick", installation: installationId, zone },
    period,
    statistic: "Maximum",
  });
}
