import { Duration } from "aws-cdk-lib";
import { type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { RunbookAlarm, threeOfFour } from "#infra/constructs/runbook-alarm.ts";
import { surveyedStates } from "#shared/fleet/survey.ts";

export interface FleetWatchProps {
  /** Dimension of the functions' metrics. */
  readonly installationId: string;
  /** Number of clusters that the fleet has or will have. */
  readonly clusters: number;
  /** Whether there are zones besides `home`, with alarms of their own. */
  readonly hasZones: boolean;
  readonly tableName: string;
  /** Age in days of a waiting revision above which an alarm is raised. */
  readonly oldestRevisionDays: number;
}

/** The time between two surveys of the tick. */
const period = Duration.minutes(5);
/** Single clusters are unreachable every day; a failed zone, link or role affects many at once. */
const unreachablePercent = 10;
/**
 * Write units in six hours for each cluster. An idle cluster takes about 300 (36 checks of 8.1, docs/cost.md), and twenty rollouts
 * a day of five Syncs each take another 1,100.
 */
const unitsForEach = 3000;
const fewestClusters = 100;

/** Alarms on the state of the fleet, independent of the state of functions and queues. */
export class FleetWatch extends Construct {
  /** Targets by their state. */
  readonly targets: readonly IMetric[];
  /** Ages of the oldest revision that a stage waits for, and of the oldest suspend. */
  readonly ages: readonly IMetric[];
  /** Write units of the table. */
  readonly writeUnits: IMetric;

  constructor(scope: Construct, id: string, props: FleetWatchProps) {
    super(scope, id);
    const { installationId, hasZones } = props;
    const reported = (metricName: string, dimensions: Readonly<Record<string, string>> = {}) =>
      new Metric({
        namespace: "Starling",
        metricName,
        // The name of the function that writes the metric.
        dimensionsMap: { service: "tick", installation: installationId, ...dimensions },
        period,
        statistic: "Maximum",
      });
    // A survey may be late or doubled. One of two periods is enough, so that the alarm does not flicker.
    const oneOfTwo = { evaluationPeriods: 2, datapointsToAlarm: 1 };
    new RunbookAlarm(this, "Halted", {
      says: "A rollout is halted: more clusters failed or did not answer than it allows. It does not continue by itself.",
      section: "halted-rollout",
      metric: reported("HaltedRollouts"),
      threshold: 0,
      ...oneOfTwo,
    });
    new RunbookAlarm(this, "StaleSource", {
      says: "A Source could not be polled for an hour: new commits in its repository reach no cluster.",
      section: "stale-source",
      metric: reported("StaleSources"),
      threshold: 0,
      ...oneOfTwo,
    });
    new RunbookAlarm(this, "OldRevision", {
      says: `A stage has waited for a newer revision for more than ${props.oldestRevisionDays} days, and is not suspended.`,
      section: "old-revision",
      metric: reported("OldestRevision"),
      threshold: Duration.days(props.oldestRevisionDays).toSeconds(),
      ...oneOfTwo,
    });

    // Surveys may be late, so that an hour has fewer of them.
    new RunbookAlarm(this, "Withheld", {
      says: "For an hour, a guard has withheld clusters or templates of a group. A person has to approve or withdraw the change.",
      section: "withheld-change",
      metric: reported("WithheldChanges"),
      threshold: 0,
      evaluationPeriods: 12,
      datapointsToAlarm: 10,
    });

    const byState = Object.fromEntries(surveyedStates.map((state) => [state, reported("Targets", { state })]));
    this.targets = Object.values(byState);
    // A suspend raises no alarm, because a person made it. The dashboard shows its age.
    this.ages = [reported("OldestRevision"), reported("OldestSuspend")];
    // The survey writes no metric for zero.
    const all = surveyedStates.map((state) => `FILL(${state}, 0)`).join(" + ");
    const away = hasZones ? "(FILL(unreachable, 0) - FILL(inZones, 0))" : "FILL(unreachable, 0)";
    new RunbookAlarm(this, "Unreachable", {
      says: `More than ${unreachablePercent} % of all targets are on clusters that do not answer${hasZones ? ", without those of zones that are down" : ""}.`,
      section: "unreachable-clusters",
      metric: new MathExpression({
        expression: `100 * ${away} / (${all})`,
        usingMetrics: { ...byState, ...(hasZones ? { inZones: reported("UnreachableInZones") } : {}) },
        label: "Unreachable, in percent",
        period,
      }),
      threshold: unreachablePercent,
      ...threeOfFour,
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
      says: `The table took more than ${threshold} write units in six hours: twice the use of a fleet of this size that rolls out all day.`,
      section: "cost",
      metric: writeUnits.with({ period: Duration.hours(6) }),
      threshold,
    });
  }
}
