import type { ClusterFaults } from "@starling/embedded-apiserver/faults";
import { type ConnectionFaults, type FaultOptions, hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { createRandom, type Random } from "#local/base/random.ts";

/** Everything that goes wrong in one run, chosen by its seed. */
export interface Weather {
  readonly seed: number;
  readonly faults: FaultOptions;
  /** The faults of every cluster, each with a seed of its own. */
  readonly clusters: ClusterFaults;
  /** The share of requests to the git server that break before or during their answer. */
  readonly gitFails: number;
  /** The largest error of each function's clock, in its own milliseconds. */
  readonly mostOffMs: number;
  /** Event sources per queue, so that planners and workers run at once. */
  readonly copies: number;
  /** The chance that the sandbox dies at a call of a function. */
  readonly dies: number;
  /** The longest time between two purges of all queues; 0 for no purges. */
  readonly purgeEveryMs: number;
}

/** The longest known lag of DynamoDB's indexes. */
const longestLagMs = 5000;
const worstClockMs = 3000;

/**
 * The weather of a seed: of each kind of fault there is none in about half of all seeds, and up to twice of `hostile` in
 * the others, so that faults meet each other in ever new company.
 * @param rate - seconds of the functions in one of ours: what takes time takes it on their clock, most of the time.
 */
export function weatherOf(seed: number, rate: number): Weather {
  const random = createRandom(seed);
  const some = someOf(random);
  // By chance of its own: what a seed brought to the other services, it goes on bringing.
  const later = someOf(createRandom(seed + 1_000_003));
  const latest = someOf(createRandom(seed + 2_000_003));
  const { dynamodb, sqs, s3, lambda } = hostile;
  const connection = (
    { resetBefore, resetAfter, serverError, expiredCredentials }: ConnectionFaults,
    amount = some,
  ): ConnectionFaults => ({
    resetBefore: amount(resetBefore),
    resetAfter: amount(resetAfter),
    serverError: amount(serverError),
    expiredCredentials: amount(expiredCredentials),
  });
  return {
    seed,
    faults: {
      dynamodb: {
        ...connection(dynamodb),
        transactionConflict: some(dynamodb.transactionConflict),
        throttle: some(dynamodb.throttle),
        unprocessed: some(dynamodb.unprocessed),
        shortPage: latest(dynamodb.shortPage),
        indexLagMs: lag(random, rate),
      },
      sqs: {
        ...connection(sqs),
        lose: some(sqs.lose),
        duplicate: some(sqs.duplicate),
        delay: some(sqs.delay),
        maxDelaySeconds: 1,
        reorder: some(sqs.reorder),
        maxReorderMs: 200,
        silence: some(sqs.silence),
        maxSilenceMs: random.integer(200, 1500),
      },
      s3: {
        ...connection(s3),
        slowDown: some(s3.slowDown),
        conditionalConflict: some(s3.conditionalConflict),
        preconditionFailed: some(s3.preconditionFailed),
      },
      lambda: { ...connection(lambda, later), throttle: later(lambda.throttle) },
    },
    clusters: clusterWeather(random),
    gitFails: some(0.05),
    mostOffMs: random.chance(0.5) ? random.integer(1, worstClockMs) : 0,
    copies: random.chance(0.25) ? 2 : 1,
    dies: random.chance(0.3) ? random.integer(1, 8) / 1000 : 0,
    purgeEveryMs: random.chance(0.15) ? random.integer(500, 2000) : 0,
  };
}

function someOf(random: Random): (most: number) => number {
  return (most) => (random.chance(0.5) ? (most * random.integer(1, 200)) / 100 : 0);
}

function lag(random: Random, rate: number): number {
  if (random.chance(0.4)) return 0;
  const lagMs = random.integer(1, longestLagMs);
  return random.chance(0.1) ? lagMs : Math.ceil(lagMs / rate);
}

function clusterWeather(random: Random): ClusterFaults {
  const probability = () => random.integer(1, 40) / 1000;
  const phase = () => (random.chance(0.5) ? ("before" as const) : ("after" as const));
  return {
    ...(random.chance(0.3) ? { latency: { ms: random.integer(0, 20), jitterMs: random.integer(0, 40) } } : {}),
    ...(random.chance(0.3) ? { throttle: { probability: probability(), retryAfterSeconds: 0 } } : {}),
    ...(random.chance(0.3) ? { errors: { probability: probability(), status: 503, phase: phase() } } : {}),
    ...(random.chance(0.3) ? { resets: { probability: probability(), phase: phase() } } : {}),
  };
}

/** The end of all weather. */
export const fair: Pick<Weather, "faults" | "clusters"> = { faults: quiet, clusters: {} };
