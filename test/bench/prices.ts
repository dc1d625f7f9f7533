/** Prices in USD for US East (N. Virginia), on demand, without free tiers. docs/cost.md has the sources. */
export const prices = {
  writeUnit: 0.625 / 1e6,
  readUnit: 0.125 / 1e6,
  lambdaRequest: 0.2 / 1e6,
  /** The price on Arm. */
  lambdaGbSecond: 0.0000133334,
  sqsRequest: 0.4 / 1e6,
  sqsFifoRequest: 0.5 / 1e6,
  s3Get: 0.4 / 1e6,
  s3Put: 5 / 1e6,
  logGb: 0.5,
  secretRead: 0.05 / 1e4,
  /** The price of an alarm for each metric that it watches. */
  alarmMetric: 0.1,
  compositeAlarm: 0.5,
  dashboard: 3,
  /** The price of a series of a custom metric. */
  metric: 0.3,
} as const;

export const monthHours = 730;
