/** Every alarm rings for the problem of its runbook section, and for nothing else. */
import { describe, expect, test } from "vitest";
import { embeddedMetrics } from "#shared/adapters/aws/powertools-observability.ts";
import type { Metrics } from "#shared/ports.ts";
import { type AlarmState, alarmState, compositeState, type Sample } from "#test/support/alarm-state.ts";
import { type EmbeddedLine, samplesIn } from "#test/support/embedded-metrics.ts";
import { functionNamed, ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates({ clusters: "200", oldestRevisionDays: "3" });
const alarms = ofType(resources, "AWS::CloudWatch::Alarm");
const composites = ofType(resources, "AWS::CloudWatch::CompositeAlarm");
const { Variables } = functionNamed(resources, "tick").Properties.Environment as {
  Variables: Record<string, unknown>;
};
const own = textOf(Variables.STARLING_INSTALLATION);
const tableName = textOf(Variables.STARLING_TABLE);

const now = 1_795_000_000;
const minute = 60;
const day = 86_400;

type Metric = Pick<Sample, "namespace" | "name" | "dimensions">;

const starlingMetric = (name: string, more: Readonly<Record<string, string>> = {}): Metric => ({
  namespace: "Starling",
  name,
  dimensions: { service: "tick", installation: own, ...more },
});
const targets = (state: string) => starlingMetric("Targets", { state });
const lambda = (folder: string, name: string): Metric => ({
  namespace: "AWS/Lambda",
  name,
  dimensions: { FunctionName: `<${functionNamed(resources, folder).id}>` },
});
const sqs = (queue: string, name: string): Metric => ({
  namespace: "AWS/SQS",
  name,
  dimensions: { QueueName: `<${queue}.QueueName>` },
});
const visible = "ApproximateNumberOfMessagesVisible";
const age = "ApproximateAgeOfOldestMessage";
const writes: Metric = {
  namespace: "AWS/DynamoDB",
  name: "ConsumedWriteCapacityUnits",
  dimensions: { TableName: tableName },
};

/** A function's queue and its dead-letter queue. @param name - as in the name of the construct: `ToApplySlow`. */
function queuesOf(name: string): { readonly queue: string; readonly letters: string } {
  const queue = ofType(resources, "AWS::Lambda::EventSourceMapping")
    .map(({ Properties }) => idIn(Properties.EventSourceArn))
    .find((id) => id.startsWith(`WiringTo${name}Queue`));
  const { RedrivePolicy } = (ofType(resources, "AWS::SQS::Queue").find((each) => each.id === queue)?.Properties ??
    {}) as {
    RedrivePolicy?: { deadLetterTargetArn: unknown };
  };
  return { queue: queue ?? "", letters: idIn(RedrivePolicy?.deadLetterTargetArn) };
}

function idIn(arn: unknown): string {
  const [, id] = /^<(\w+)\.Arn>$/.exec(textOf(arn)) ?? [];
  if (id === undefined) throw new Error(`${textOf(arn)} is no ARN of a resource`);
  return id;
}

const [letters = ""] = ofType(resources, "AWS::Scheduler::Schedule").map(({ Properties }) =>
  idIn((Properties.Target as { DeadLetterConfig: { Arn: unknown } }).DeadLetterConfig.Arn),
);

/** One value, at a number of seconds before now. */
const once = (metric: Metric, secondsAgo: number, value: number): readonly Sample[] => [
  { ...metric, atSeconds: now - secondsAgo, value },
];
/** A value in each of the last periods. */
const each = (metric: Metric, periodSeconds: number, periods: number, value: number): readonly Sample[] =>
  Array.from({ length: periods }, (_, index) => ({ ...metric, atSeconds: now - index * periodSeconds - 1, value }));
/** The same samples of another installation, or of another resource. */
const foreign = (samples: readonly Sample[]): readonly Sample[] =>
  samples.map((sample) => ({
    ...sample,
    dimensions: Object.fromEntries(
      Object.entries(sample.dimensions).map(([name, value]) => [name, name === "service" ? value : `${value}2`]),
    ),
  }));

interface Case {
  readonly rings: Readonly<Record<string, readonly Sample[]>>;
  readonly silent: Readonly<Record<string, readonly Sample[]>>;
}

/** The case of an alarm on a metric of the survey, which runs every five minutes. */
const surveyed = (metric: Metric, most: number): Case => ({
  rings: {
    "the last survey found it": once(metric, 100, most + 1),
    "the survey before found it, and there was none after it": once(metric, 400, most + 1),
  },
  silent: {
    "surveys found the highest value allowed": each(metric, 5 * minute, 4, most),
    "a survey found it ten minutes ago": once(metric, 601, most + 1),
    "another installation found it": foreign(each(metric, 5 * minute, 4, most + 1)),
  },
});

const share = (unreachable: number, others: number, periods: number): readonly Sample[] => [
  ...each(targets("unreachable"), 5 * minute, periods, unreachable),
  ...each(targets("ready"), 5 * minute, periods, others),
];

const others = [
  "api",
  "webhook",
  "discover",
  "resolve",
  "rollout",
  "render",
  "build",
  "apply",
  "report",
  "dashboard",
] as const;
const byFunction = <T extends string>(
  names: readonly T[],
  samplesOf: (name: T) => readonly Sample[],
): Readonly<Record<string, readonly Sample[]>> => Object.fromEntries(names.map((name) => [name, samplesOf(name)]));

const queued = Object.fromEntries(
  ["Discover", "Resolve", "Rollout", "Render", "Apply", "ApplySlow", "Report"].flatMap((name): [string, Case][] => {
    const { queue, letters: dead } = queuesOf(name);
    return [
      [
        `Watch${name}Age`,
        {
          rings: { "a message of half an hour": once(sqs(queue, age), 100, 1801) },
          silent: {
            "one that is younger": once(sqs(queue, age), 100, 1800),
            "one of the dead letters": once(sqs(dead, age), 100, day),
          },
        },
      ],
      [
        `Watch${name}DeadLetters`,
        {
          rings: { "one letter": once(sqs(dead, visible), 10, 1) },
          silent: { none: once(sqs(dead, visible), 10, 0), "messages that wait": once(sqs(queue, visible), 10, 900) },
        },
      ],
    ];
  }),
);

const cases: Readonly<Record<string, Case>> = {
  FleetWatchHalted: surveyed(starlingMetric("HaltedRollouts"), 0),
  FleetWatchStaleSource: surveyed(starlingMetric("StaleSources"), 0),
  FleetWatchOldRevision: surveyed(starlingMetric("OldestRevision"), 3 * day),
  FleetWatchWithheld: {
    rings: {
      "each survey of an hour found one": each(starlingMetric("WithheldChanges"), 5 * minute, 12, 1),
      "two surveys of an hour are missing": each(starlingMetric("WithheldChanges"), 5 * minute, 10, 1),
    },
    silent: {
      "the surveys of three quarters of an hour found one": each(starlingMetric("WithheldChanges"), 5 * minute, 9, 1),
      "another installation found it": foreign(each(starlingMetric("WithheldChanges"), 5 * minute, 12, 1)),
    },
  },
  FleetWatchUnreachable: {
    rings: {
      "more than one in ten, for a quarter of an hour": share(11, 89, 3),
      "where other states are told, too": [
        ...share(3, 10, 3),
        ...["changing", "failed", "waiting"].flatMap((state) => each(targets(state), 5 * minute, 3, 5)),
      ],
      "all of them, when nobody else is told of": each(targets("unreachable"), 5 * minute, 3, 4),
    },
    silent: {
      "one in ten": share(10, 90, 3),
      "two surveys of it": share(50, 50, 2),
      "others beside them": [
        ...share(3, 10, 3),
        ...["changing", "failed", "waiting"].flatMap((state) => each(targets(state), 5 * minute, 3, 6)),
      ],
      "another installation's": foreign(share(50, 50, 3)),
    },
  },
  FleetWatchCost: {
    rings: { "twice what 200 clusters take in six hours": each(writes, minute, 360, 1667) },
    silent: {
      "a little less": each(writes, minute, 360, 1666),
      "a burst of ten minutes": each(writes, minute, 10, 30_000),
      "another table's": foreign(each(writes, minute, 360, 5000)),
    },
  },
  WatchErrors: {
    // At night most functions are not invoked and write no metrics.
    rings: byFunction(others, (name) => each(lambda(name, "Errors"), 5 * minute, 3, 1)),
    silent: {
      "what failed twice": each(lambda("apply", "Errors"), 5 * minute, 2, 9),
      "all goes well": others.flatMap((name) => each(lambda(name, "Errors"), 5 * minute, 3, 0)),
      "the timer, which has its own": each(lambda("tick", "Errors"), 5 * minute, 3, 1),
    },
  },
  WatchNewerRows: {
    rings: { "six minutes of ten": each(starlingMetric("NewerRows"), minute, 6, 2) },
    silent: {
      "five, as in a deployment": each(starlingMetric("NewerRows"), minute, 5, 2),
      "another installation's": foreign(each(starlingMetric("NewerRows"), minute, 10, 2)),
    },
  },
  WatchThrottled: {
    rings: byFunction(["api", "webhook", "tick"], (name) => each(lambda(name, "Throttles"), minute, 3, 1)),
    silent: {
      "two minutes": each(lambda("api", "Throttles"), minute, 2, 40),
      "what a queue feeds, which waits": each(lambda("apply", "Throttles"), minute, 5, 40),
    },
  },
  TickWatchDeadLetters: {
    rings: { "one letter": once(sqs(letters, visible), 10, 1) },
    silent: { none: once(sqs(letters, visible), 10, 0) },
  },
  TickWatchFailures: {
    rings: { "three of five": [1, 3, 5].flatMap((ago) => once(lambda("tick", "Errors"), ago * minute - 1, 1)) },
    silent: { "two of five": [1, 3].flatMap((ago) => once(lambda("tick", "Errors"), ago * minute - 1, 1)) },
  },
  TickWatchLag: {
    rings: { "a row was due for more than a quarter of an hour": once(starlingMetric("DueLag"), 800, 901) },
    silent: {
      "a row was due for exactly a quarter of an hour": once(starlingMetric("DueLag"), 10, 900),
      "a row was due for long, more than a quarter of an hour ago": once(starlingMetric("DueLag"), 901, 5000),
      "another installation's": foreign(once(starlingMetric("DueLag"), 10, 5000)),
    },
  },
  TickWatchAbsence: {
    rings: { "no tick for five minutes": once(lambda("tick", "Invocations"), 301, 1) },
    silent: {
      "one a minute": each(lambda("tick", "Invocations"), minute, 60, 1),
      "one in five minutes": once(lambda("tick", "Invocations"), 299, 1),
      "none for more than a week": once(lambda("tick", "Invocations"), 7 * day + 1, 1),
    },
  },
  // Its part alarms have no actions.
  TickWatchNow: { rings: {}, silent: { "one a minute": each(lambda("tick", "Invocations"), minute, 60, 1) } },
  TickWatchEver: { rings: {}, silent: { "one a week": once(lambda("tick", "Invocations"), 6 * day, 1) } },
  ...queued,
};

function nameOf({ id }: { readonly id: string }): string {
  return /^Wiring(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id;
}

function stateOf(name: string, samples: readonly Sample[], before?: AlarmState): AlarmState {
  const alarm = alarms.find((one) => nameOf(one) === name || one.id === name);
  if (alarm !== undefined) return alarmState(alarm, samples, { nowSeconds: now, ...(before && { before }) });
  const composite = composites.find((one) => nameOf(one) === name);
  if (composite === undefined) throw new Error(`there is no alarm ${name}`);
  return compositeState(composite, (id) => stateOf(id, samples));
}

test("every alarm has cases", () => {
  expect([...alarms, ...composites].map(nameOf).sort()).toEqual(Object.keys(cases).sort());
});

describe.each(Object.entries(cases))("%s", (name, { rings, silent }) => {
  test.each(Object.entries(rings))("rings: %s", (_, samples) => expect(stateOf(name, samples)).toBe("ALARM"));
  test.each(Object.entries(silent))("is silent: %s", (_, samples) => expect(stateOf(name, samples)).not.toBe("ALARM"));
  test("the alarm is silent before anything was measured", () => expect(stateOf(name, [])).not.toBe("ALARM"));
});

test("the alarms read the metrics that the functions write", () => {
  const written = (record: (metrics: Metrics) => void) => {
    const lines: EmbeddedLine[] = [];
    record(embeddedMetrics("tick", "starling.1.eu", (line) => void lines.push(JSON.parse(line) as EmbeddedLine)));
    const nameThere = (value: string) => (value === "starling.1.eu" ? own : value);
    return [1, 2, 3].flatMap((survey) => samplesIn(lines, { atSeconds: now - survey * 5 * minute + 1, nameThere }));
  };
  const ringing = (record: (metrics: Metrics) => void) => {
    const samples = written(record);
    return Object.keys(cases).filter((name) => !/Absence|Now|Ever/.test(name) && stateOf(name, samples) === "ALARM");
  };
  expect(ringing((metrics) => metrics.count("HaltedRollouts", 1))).toEqual(["FleetWatchHalted"]);
  expect(ringing((metrics) => metrics.count("StaleSources", 1))).toEqual(["FleetWatchStaleSource"]);
  expect(ringing((metrics) => metrics.seconds("OldestRevision", 4 * day))).toEqual(["FleetWatchOldRevision"]);
  expect(ringing((metrics) => metrics.count("WithheldChanges", 1))).toEqual([]);
  expect(ringing((metrics) => metrics.seconds("DueLag", 1000))).toEqual(["TickWatchLag"]);
  const targets = (unreachable: number) => (metrics: Metrics) => {
    metrics.count("Targets", 8, { state: "ready" });
    metrics.count("Targets", unreachable, { state: "unreachable" });
  };
  expect(ringing(targets(1))).toEqual(["FleetWatchUnreachable"]);
  expect(ringing(targets(0))).toEqual([]);
});

test("the alarm on a late tick keeps its state when the tick stops reporting", () => {
  expect(stateOf("TickWatchLag", [], "ALARM")).toBe("ALARM");
});

test("an alarm returns to OK when its metric has no more samples", () => {
  const ends = Object.keys(cases).filter((name) => !/Lag|Absence|Now|Ever/.test(name));
  expect(ends.map((name) => stateOf(name, [], "ALARM"))).toEqual(ends.map(() => "OK"));
});
