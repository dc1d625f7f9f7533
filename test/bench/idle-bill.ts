/** Calculates the cost of a month without changes from the cost of one check and one tick; docs/cost.md has the formula. */

import type { Figures } from "#test/bench/bench.ts";
import { monthHours, prices } from "#test/bench/prices.ts";
import { ofType, type Resource } from "#test/synth/synthesized.ts";

const checksPerMonth = (monthHours * 60) / 10;
const ticksPerMonth = monthHours * 60;
/** Lambda polls an idle queue with this number of concurrent long polls of 20 s. */
const polled = { polls: 5, seconds: 20 } as const;
/** The log bytes that Lambda and the function write for an invocation without a finding. */
const logBytes = 1_000;
/** The metric series of functions in a fleet in sync. The tick counts its delay and the ready targets. */
const ownMetrics = 2;

/** The cost of a check of one cluster, or of a tick. */
export interface Spent extends Figures {
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly sqsRequests: number;
  readonly s3Reads: number;
  readonly s3Writes: number;
  readonly secretReads: number;
  /** Requests to EKS and STS. They are free of charge and limited per second. */
  readonly eksRequests: number;
  readonly stsRequests: number;
  readonly kubeRequests: number;
  readonly applyInvocations: number;
  /** Invocations of other functions, without the tick. */
  readonly otherInvocations: number;
  readonly applyGbSeconds: number;
  readonly tickGbSeconds: number;
}

export interface Bill extends Figures {
  readonly total: number;
}

/** The parts of the stacks that cost the same whether or not something happens. */
export interface Standing extends Figures {
  readonly standardQueues: number;
  readonly fifoQueues: number;
  /** An alarm costs by the number of metrics that it watches. */
  readonly alarmMetrics: number;
  readonly compositeAlarms: number;
  readonly dashboards: number;
}

export function standingOf(resources: readonly Resource[]): Standing {
  const byId = new Map(resources.map((resource) => [resource.id, resource]));
  const fifo = ofType(resources, "AWS::Lambda::EventSourceMapping").map(({ Properties }) => {
    const source = Properties.EventSourceArn as { readonly "Fn::GetAtt": readonly [string, string] };
    return byId.get(source["Fn::GetAtt"][0])?.Properties.FifoQueue === true;
  });
  const metrics = ofType(resources, "AWS::CloudWatch::Alarm").map(({ Properties }) => {
    const given = (Properties.Metrics ?? []) as readonly { readonly MetricStat?: unknown }[];
    return Math.max(1, given.filter(({ MetricStat }) => MetricStat !== undefined).length);
  });
  return {
    standardQueues: fifo.filter((isFifo) => !isFifo).length,
    fifoQueues: fifo.filter((isFifo) => isFifo).length,
    alarmMetrics: metrics.reduce((sum, count) => sum + count, 0),
    compositeAlarms: ofType(resources, "AWS::CloudWatch::CompositeAlarm").length,
    dashboards: ofType(resources, "AWS::CloudWatch::Dashboard").length,
  };
}

export function billOf(
  clusters: number,
  { check, quiet, standing }: { readonly check: Spent; readonly quiet: Spent; readonly standing: Standing },
): Bill {
  const checks = clusters * checksPerMonth;
  const times = (name: keyof Spent & string) => checks * Number(check[name]) + ticksPerMonth * Number(quiet[name]);
  const emptyPolls = (queues: number) => queues * polled.polls * ((monthHours * 3600) / polled.seconds);
  const items = {
    writes: times("writeUnits") * prices.writeUnit,
    reads: times("readUnits") * prices.readUnit,
    apply: checks * (check.applyInvocations * prices.lambdaRequest + check.applyGbSeconds * prices.lambdaGbSecond),
    tick: ticksPerMonth * prices.lambdaRequest + times("tickGbSeconds") * prices.lambdaGbSecond,
    messages: times("sqsRequests") * prices.sqsRequest,
    polls:
      emptyPolls(standing.standardQueues) * prices.sqsRequest + emptyPolls(standing.fifoQueues) * prices.sqsFifoRequest,
    blobs: times("s3Reads") * prices.s3Get + times("s3Writes") * prices.s3Put,
    secrets: times("secretReads") * prices.secretRead,
    logs: ((checks + ticksPerMonth) * logBytes * prices.logGb) / 1e9,
    alarms: standing.alarmMetrics * prices.alarmMetric + standing.compositeAlarms * prices.compositeAlarm,
    dashboards: standing.dashboards * prices.dashboard,
    metrics: ownMetrics * prices.metric,
  };
  const total = Object.values(items).reduce((sum, item) => sum + item, 0);
  return { ...(mapped(items) as typeof items), total: cents(total) };
}

function mapped(items: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(items).map(([name, value]) => [name, cents(value)]));
}

function cents(usd: number): number {
  return Math.round(usd * 100) / 100;
}
