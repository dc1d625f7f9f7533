/**
 * US East (N. Virginia), on demand, without free tiers; docs/cost.md has the sources. In USD.
 */
export const prices = {
  writeRolloutState: 0.625 / 1e6,
  readRolloutState: 0.125 / 1e6,
  lambdaRequest: 0.2 / 1e6,
  /** Arm. */
  lambdaGbSecond: 0.0000133334,
  sqsRequest: 0.4 / 1e6,
  sqsFifoRequest: 0.5 / 1e6,
  s3Get: 0.4 / 1e6,
  s3Put: 5 / 1e6,
  logGb: 0.5,
  secretRead: 0.05 / 1e4,
  /** An alarm costs this for each metric that it watches. */
  alarmMetric: 0.1,
  compositeAlarm: 0.5,
  dashboard: 3,
  /** A series of a custom metric. */
  metric: 0.3,
} as const;

export const monthHours = 730;
