import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { RunbookAlarm } from "#infra/constructs/runbook-alarm.ts";
import { surveyedStates } from "#shared/fleet/survey.ts";

export interface FleetWatchProps {
  /** As the functions tell it with their metrics. */
  readonly installationId: string;
  /** Of the fleet, or what it is to have. */
  readonly clusters: number;
  readonly tableName: string;
  /** How old a revision may be that something still waits for. */
  readonly oldestRevisionDays: number;
}

/** Between two surveys of the tick. */
const period = Duration.minutes(5);
/** Zones, links and roles fail for many clusters at once; single clusters are away every day. */
const unreachablePercent = 10;
/**
 * Write units in six hours, for each cluster. At rest it takes some 300 (36 looks of 8.1, docs/cost.md), and twenty rollouts
 * a day of five Syncs each another 1,100.
 */
const unitsForEach = 3000;
const fewestClusters = 100;

/** Alarms on what the fleet comes to, whatever the machinery says of itself. */
export class FleetWatch extends Construct {
  /** Targets by their state. */
  readonly targets: readonly IMetric[];
  /** How old the oldest revision is that something waits for, and for how long what people have suspended has been. */
  readonly ages: readonly IMetric[];
  /** Write units of the table. */
  readonly writeUnits: IMetric;

  constructor(scope: Construct, id: string, props: FleetWatchProps) {
    super(scope, id);
    const { installationId } = props;
    const reported = (metricName: string, dimensions: Readonly<Record<string, string>> = {}) =>
      new Metric({
        namespace: "Starling",
        metricName,
        // Of the function that tells it, as it names itself.
        dimensionsMap: { service: "tick", installation: installationId, ...dimensions },
        period,
        statistic: "Maximum",
      });
    // A survey may be late, or come with one more: one of two is enough, and the alarm does not flicker.
    const oneOfTwo = { evaluationPeriods: 2, datapointsToAlarm: 1 };
    new RunbookAlarm(this, "Halted", {
      says: "A rollout has halted: more clusters failed or did not answer than it may bear, and nothing goes on by itself.",
      section: "halted-rollout",
      metric: reported("HaltedRollouts"),
      threshold: 0,
      ...oneOfTwo,
    });
    new RunbookAlarm(this, "StaleSource", {
      says: "A Source was not looked at, or could not be, for an hour: what is pushed there reaches no cluster.",
      section: "stale-source",
      metric: reported("StaleSources"),
      threshold: 0,
      ...oneOfTwo,
    });
    new RunbookAlarm(this, "OldRevision", {
      says: `A stage that nobody has suspended has waited for a newer revision for more than ${props.oldestRevisionDays} days.`,
      section: "old-revision",
      metric: reported("OldestRevision"),
      threshold: Duration.days(props.oldestRevisionDays).toSeconds(),
      ...oneOfTwo,
    });

    const byState = Object.fromEntries(surveyedStates.map((state) => [state, reported("Targets", { state })]));
    this.targets = Object.values(byState);
    // No alarm: whoever has suspended something knows of it. The dashboard shows for how long.
    this.ages = [reported("OldestRevision"), reported("OldestSuspend")];
    // What is zero is not told.
    const all = surveyedStates.map((state) => `FILL(${state}, 0)`).join(" + ");
    new RunbookAlarm(this, "Unreachable", {
      says: `More than ${unreachablePercent} % of all targets are on clusters that do not answer.`,
      section: "unreachable-clusters",
      metric: new MathExpression({
        expression: `100 * FILL(unreachable, 0) / (${all})`,
        usingMetrics: byState,
        label: "Unreachable, in percent",
        period,
      }),
      threshold: unreachablePercent,
      evaluationPeriods: 3,
    });

    const writeUnits = new Metric({
      namespace: "AWS/DynamoDB",
      metricName: "ConsumedWriteCapacityUnits",
      dimensionsMap: { TableName: props.tableName },
      period,
      statistic: "Sum",
    });
    this.writeUnits = writeUnits;
    const threshold = Math.max(props.clusters, fewestClusters) * unitsForEach;
    new RunbookAlarm(this, "Cost", {
      says: `More than ${threshold} write units in six hours: twice what a fleet of this size takes that rolls out all day.`,
      section: "cost",
      metric: writeUnits.with({ period: Duration.hours(6) }),
      threshold,
    });
  }
}
