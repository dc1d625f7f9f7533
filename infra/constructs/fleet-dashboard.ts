import { Duration } from "aws-cdk-lib";
import { CustomWidget, Dashboard, GraphWidget, type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";

export interface FleetDashboardProps {
  /** Dimension of the functions' metrics. */
  readonly installationId: string;
  /** The function that draws the views of the rows. */
  readonly dashboard: IFunction;
  /** Targets by their state. */
  readonly targets: readonly IMetric[];
  /** Ages in seconds: of the oldest revision that a stage waits for, and of the oldest suspend. */
  readonly ages: readonly IMetric[];
}

const width = 12;

/**
 * The dashboard for the people who run the fleet. A widget shows the rows: the rollouts in progress, and the clusters that need
 * attention, lag behind or do not answer. The graphs below it mark each change of a rollout's phase with a peak on the right axis.
 *
 * The marks are a metric (`RolloutPhase`), because annotations would need a function that may write dashboards, and pictures with
 * annotations need `cloudwatch:GetMetricWidgetImage`, which lets a function read every metric of the account.
 */
export class FleetDashboard extends Construct {
  readonly name: string;

  constructor(scope: Construct, id: string, { installationId, dashboard, targets, ages }: FleetDashboardProps) {
    super(scope, id);
    const board = new Dashboard(this, "Dashboard", { defaultInterval: Duration.hours(3) });
    this.name = board.dashboardName;
    const view = (title: string, path: string, height: number) =>
      new CustomWidget({
        title,
        functionArn: dashboard.functionArn,
        params: { path },
        width: 24,
        height,
        updateOnRefresh: true,
        updateOnResize: false,
        updateOnTimeRangeChange: true,
      });
    board.addWidgets(view("Fleet", "/", 16));
    board.addWidgets(view("Rollouts in this time", "/timeline", 8));
    const rollouts = rolloutPhases(installationId);
    const reported = (metricName: string, statistic: string) =>
      new Metric({
        namespace: "Starling",
        metricName,
        dimensionsMap: { service: "apply", installation: installationId },
        period: Duration.minutes(5),
        statistic,
        label: `${metricName}, ${statistic}`,
      });
    const graph = (title: string, left: readonly IMetric[], more: { readonly stacked?: true } = {}) =>
      new GraphWidget({
        title,
        left: [...left],
        right: [rollouts],
        rightYAxis: { label: "Rollouts", min: 0, showUnits: false },
        width,
        ...more,
      });
    board.addWidgets(
      graph("Targets by state", targets, { stacked: true }),
      graph("Age of the oldest waiting revision and of the oldest suspend, in seconds", ages),
      graph(
        "Time from a push to the first and the last ready cluster, in seconds",
        ["Minimum", "Maximum"].map((statistic) => reported("PushToReady", statistic)),
      ),
      graph(
        "Applies and drift",
        ["Applies", "Drift"].map((name) => reported(name, "Sum")),
      ),
      graph("Syncs that changed, by phase", [phases("SyncPhase", installationId)]),
    );
  }
}

/** The changes of rollout phases in the time of a graph. */
function rolloutPhases(installationId: string): MathExpression {
  return phases("RolloutPhase", installationId);
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
