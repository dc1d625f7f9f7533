/** An alarm rings whenever the only timer fails, is late or does not run. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  functionNamed,
  listOf,
  ofType,
  roleOf,
  statementsByRole,
  synthesizeTemplates,
  textOf,
} from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();

const tick = functionNamed(resources, "tick");
const [deadLetters = ""] = ofType(resources, "AWS::Scheduler::Schedule").map(({ Properties }) =>
  textOf((Properties.Target as { DeadLetterConfig: { Arn: unknown } }).DeadLetterConfig.Arn),
);

interface MetricOf {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

function alarmOn(namespace: string, metric: string, dimension: string) {
  const found = ofType(resources, "AWS::CloudWatch::Alarm").filter(({ Properties }) => {
    const { Namespace, MetricName, Dimensions = [] } = Properties as unknown as MetricOf;
    const values = Dimensions.map(({ Value }) => textOf(Value));
    return Namespace === namespace && MetricName === metric && values.includes(dimension);
  });
  expect(
    found.map(({ id }) => id),
    `alarms on ${metric}`,
  ).toHaveLength(1);
  return found[0]?.Properties ?? {};
}

describe("a tick that failed, was late or was throttled", () => {
  test("a failed tick becomes a dead letter, because the scheduler does not wait for the result", () => {
    const configs = ofType(resources, "AWS::Lambda::EventInvokeConfig").map(({ Properties }) => Properties);
    expect(configs).toEqual([
      {
        FunctionName: { Ref: tick.id },
        Qualifier: "$LATEST",
        // The next minute brings the next tick.
        MaximumRetryAttempts: 0,
        MaximumEventAgeInSeconds: 60,
        DestinationConfig: { OnFailure: { Destination: { "Fn::GetAtt": [deadLetters.slice(1, -5), "Arn"] } } },
      },
    ]);
  });

  test("the tick's role may send to the dead-letter queue, and has its policy before Lambda checks that", () => {
    const role = roleOf(tick);
    const grants = (statementsByRole(resources).get(role) ?? []).flatMap(({ Action, Resource }) =>
      listOf(Resource).map((resource) => `${Action} ${textOf(resource)}`),
    );
    expect(grants).toContain(`sqs:SendMessage ${deadLetters}`);
    const [config] = ofType(resources, "AWS::Lambda::EventInvokeConfig") as unknown as { DependsOn: string[] }[];
    const policies = ofType(resources, "AWS::IAM::Policy").filter(({ Properties }) =>
      (Properties.Roles as { Ref: string }[]).some(({ Ref }) => Ref === role),
    );
    expect(policies).not.toEqual([]);
    expect(config?.DependsOn).toEqual(expect.arrayContaining(policies.map(({ id }) => id)));
  });

  test("a dead letter of the tick sets off an alarm", () => {
    const alarm = alarmOn("AWS/SQS", "ApproximateNumberOfMessagesVisible", deadLetters.replace(".Arn", ".QueueName"));
    expect(alarm).toMatchObject({ Threshold: 0, ComparisonOperator: "GreaterThanThreshold", EvaluationPeriods: 1 });
  });

  test("three failed ticks of five set off an alarm", () => {
    expect(alarmOn("AWS/Lambda", "Errors", `<${tick.id}>`)).toMatchObject({
      Statistic: "Sum",
      Period: 60,
      Threshold: 0,
      ComparisonOperator: "GreaterThanThreshold",
      EvaluationPeriods: 5,
      DatapointsToAlarm: 3,
    });
  });
});

describe("five minutes without a tick set off an alarm, although nothing is measured then", () => {
  const parts = ofType(resources, "AWS::CloudWatch::Alarm").filter(
    ({ Properties }) => Properties.MetricName === "Invocations",
  );

  test("two alarms without actions watch the ticks of minutes and the ticks of a week", () => {
    const [now, ever] = parts.map(({ Properties }) => Properties);
    const both = { Statistic: "Sum", Threshold: 1, ComparisonOperator: "LessThanThreshold", ActionsEnabled: false };
    // Both alarms are silent when the function has never run.
    expect(now).toMatchObject({ ...both, Period: 60, EvaluationPeriods: 5, TreatMissingData: "missing" });
    expect(ever).toMatchObject({ ...both, Period: 604_800, EvaluationPeriods: 1, TreatMissingData: "missing" });
    for (const { Properties } of parts)
      expect(textOf((Properties as unknown as MetricOf).Dimensions[0]?.Value)).toBe(`<${tick.id}>`);
  });

  test("the alarm rings when no tick has run for minutes and one has run within a week", () => {
    const [now, ever] = parts.map(({ id }) => id);
    const [absence, ...others] = ofType(resources, "AWS::CloudWatch::CompositeAlarm");
    expect(others).toEqual([]);
    expect(textOf(absence?.Properties.AlarmRule)).toBe(`(INSUFFICIENT_DATA("<${now}.Arn>") AND OK("<${ever}.Arn>"))`);
  });
});

test("a row that is due for a quarter of an hour sets off an alarm, which keeps its state when the tick does not report", () => {
  expect(alarmOn("Starling", "DueLag", "tick")).toMatchObject({
    Statistic: "Maximum",
    Period: 900,
    Threshold: 900,
    ComparisonOperator: "GreaterThanThreshold",
    EvaluationPeriods: 1,
    TreatMissingData: "ignore",
  });
});

test("alarms and dashboards read the metrics of their own installation only", () => {
  const { Variables } = tick.Properties.Environment as { Variables: Record<string, unknown> };
  const own = textOf(Variables.STARLING_INSTALLATION);
  expect(own).toContain("starling.");
  for (const metric of ["DueLag", "NewerRows"]) {
    const { Dimensions } = alarmOn("Starling", metric, own) as unknown as MetricOf;
    expect(Dimensions.map(({ Name, Value }) => `${Name} ${textOf(Value)}`).sort()).toEqual([
      `installation ${own}`,
      "service tick",
    ]);
  }
  const boards = ofType(resources, "AWS::CloudWatch::Dashboard").map(({ Properties }) =>
    textOf(Properties.DashboardBody),
  );
  const searches = new Set(
    boards.flatMap((body) => [...body.matchAll(/SEARCH\('(.*?)',/g)].map(([, search]) => search)),
  );
  expect([...searches].sort()).toEqual(
    ["RolloutPhase", "SyncPhase"].map((name) =>
      expect.stringMatching(new RegExp(`MetricName=\\W+${name}\\W+ installation=\\W+${RegExp.escape(own)}\\W+$`)),
    ),
  );
});

test("an alarm rings when the account's quota throttles api, webhook or tick", () => {
  const alarm = ofType(resources, "AWS::CloudWatch::Alarm").find(({ id }) => id.includes("Throttled"));
  const { Metrics } = (alarm?.Properties ?? {}) as {
    Metrics: { Expression?: string; MetricStat?: { Metric: MetricOf } }[];
  };
  const throttled = Metrics.flatMap(({ MetricStat }) => (MetricStat === undefined ? [] : [MetricStat.Metric]));
  expect(throttled.map(({ Namespace, MetricName }) => `${Namespace} ${MetricName}`)).toEqual(
    Array.from({ length: 3 }, () => "AWS/Lambda Throttles"),
  );
  const functions = throttled.map(({ Dimensions }) => textOf(Dimensions[0]?.Value));
  expect(functions.sort()).toEqual(
    ["api", "webhook", "tick"].map((folder) => `<${functionNamed(resources, folder).id}>`).sort(),
  );
  expect(Metrics.find(({ Expression }) => Expression !== undefined)?.Expression).toBe(
    "FILL(api, 0) + FILL(webhook, 0) + FILL(tick, 0)",
  );
});

test("the function writes its metrics under the names that the alarms read", async () => {
  const code = `
    import { embeddedMetrics } from "#shared/adapters/aws/powertools-observability.ts";
    const metrics = embeddedMetrics("tick", "starling.1.eu");
    metrics.seconds("DueLag", 12.5);
    metrics.count("NewerRows", 3);
  `;
  const { POWERTOOLS_METRICS_DISABLED: _, ...env } = process.env;
  const args = ["--input-type=module", "--eval", code];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const metricsOf = (line: Record<string, unknown>) =>
    (line._aws as { CloudWatchMetrics: { Dimensions: string[][] }[] }).CloudWatchMetrics.map((metric) => ({
      ...metric,
      Dimensions: metric.Dimensions.map((names) => names.toSorted()),
    }));
  expect(lines.flatMap(metricsOf)).toEqual([
    {
      Namespace: "Starling",
      Dimensions: [["installation", "service"]],
      Metrics: [{ Name: "DueLag", Unit: "Seconds" }],
    },
    {
      Namespace: "Starling",
      Dimensions: [["installation", "service"]],
      Metrics: [{ Name: "NewerRows", Unit: "Count" }],
    },
  ]);
  expect(lines).toMatchObject([
    { service: "tick", installation: "starling.1.eu", DueLag: 12.5 },
    { service: "tick", installation: "starling.1.eu", NewerRows: 3 },
  ]);
});
