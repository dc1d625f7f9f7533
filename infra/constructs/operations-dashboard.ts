import { Duration } from "aws-cdk-lib";
import { Dashboard, GraphWidget, type IMetric, MathExpression, Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";

export interface OperationsDashboardProps {
  /** Dimension of the functions' metrics. */
  readonly installationId: string;
  readonly queues: Readonly<Record<string, IQueue>>;
  readonly deadLetters: Readonly<Record<string, IQueue>>;
  readonly functions: Readonly<Record<string, IFunction>>;
  /** How late the most overdue row was claimed. */
  readonly lag: IMetric;
  /** Rows of a newer version that are due. */
  readonly newerRows: IMetric;
  /** Write units of the table. */
  readonly writeUnits: IMetric;
  readonly tableName: string;
}

const period = Duration.minutes(5);
const width = 12;

/** The dashboard of the timer, queues, functions, throttles, dead letters and costs. */
export class OperationsDashboard extends Construct {
  readonly name: string;

  constructor(scope: Construct, id: string, props: OperationsDashboardProps) {
    super(scope, id);
    const { queues, deadLetters, functions, lag, newerRows, writeUnits } = props;
    const board = new Dashboard(this, "Dashboard", { defaultInterval: Duration.hours(3) });
    this.name = board.dashboardName;
    const graph = (title: string, left: readonly IMetric[], right: readonly IMetric[] = []) =>
      new GraphWidget({ title, left: [...left], ...(right.length === 0 ? {} : { right: [...right] }), width });
    const each = <T>(of: Readonly<Record<string, T>>, metric: (one: T, label: string) => IMetric) =>
      Object.entries(of).map(([name, one]) => metric(one, name));
    board.addWidgets(
      graph("Tick: delay of the most overdue row, in seconds", [lag]),
      graph("Rows of a newer version that are due", [newerRows]),
      graph(
        "Queues: oldest message, in seconds",
        each(queues, (queue, label) =>
          queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum", label }),
        ),
      ),
      graph(
        "Dead letters",
        each(deadLetters, (queue, label) =>
          queue.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum", label }),
        ),
      ),
      graph(
        "Functions: errors",
        each(functions, (lambda, label) => lambda.metricErrors({ period, statistic: "Sum", label })),
      ),
      graph(
        "Functions: throttles",
        each(functions, (lambda, label) => lambda.metricThrottles({ period, statistic: "Sum", label })),
      ),
      graph(
        "Functions: duration of 99 %, in milliseconds",
        each(functions, (lambda, label) => lambda.metricDuration({ period, statistic: "p99", label })),
      ),
      graph(
        "Functions: invocations",
        each(functions, (lambda, label) => lambda.metricInvocations({ period, statistic: "Sum", label })),
      ),
      ...costs(props, writeUnits).map(({ title, left, right }) => graph(title, left, right)),
    );
  }
}

/** The graphs of costs: units of the table, and the time that functions run. */
function costs(
  { installationId, tableName, functions }: OperationsDashboardProps,
  writeUnits: IMetric,
): readonly { readonly title: string; readonly left: readonly IMetric[]; readonly right?: readonly IMetric[] }[] {
  const reported = (metricName: string, statistic: string) =>
    new Metric({
      namespace: "Starling",
      metricName,
      dimensionsMap: { service: "apply", installation: installationId },
      period,
      statistic,
      label: `${metricName}, ${statistic}`,
    });
  const readUnits = new Metric({
    namespace: "AWS/DynamoDB",
    metricName: "ConsumedReadCapacityUnits",
    dimensionsMap: { TableName: tableName },
    period,
    statistic: "Sum",
    label: "Read units",
  });
  const perApply = new MathExpression({
    expression: "units / applies",
    usingMetrics: { units: writeUnits, applies: reported("Applies", "Sum") },
    label: "Write units",
    period,
  });
  return [
    { title: "Cost: units of the table", left: [writeUnits, readUnits] },
    { title: "Cost: write units for each apply", left: [perApply], right: [reported("ApplySeconds", "p90")] },
    {
      title: "Cost: milliseconds that functions ran",
      left: Object.entries(functions).map(([label, lambda]) =>
        lambda.metricDuration({ period, statistic: "Sum", label }),
      ),
    },
  ];
}
