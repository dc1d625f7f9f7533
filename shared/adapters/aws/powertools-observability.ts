import { Logger } from "@aws-lambda-powertools/logger";
import { MetricUnit, Metrics as PowertoolsMetrics } from "@aws-lambda-powertools/metrics";
import { currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import type { Log, Metrics } from "#shared/ports.ts";

/** Receives a function's log lines. Default: standard output, which Lambda reads. */
export type LineOutput = (line: string) => void;

/** Structured JSON logs with one line for each entry and the correlation id of the current work. */
export function powertoolsLog(serviceName: string, output?: LineOutput): Log {
  const logger = new Logger({ serviceName, ...(output === undefined ? {} : { logLevel: "INFO" as const }) });
  // The library offers no other way to redirect its output, and does not document this one.
  if (output !== undefined) Object.assign(logger, { console: { info: output, warn: output, error: output } });
  const withCorrelation = (fields?: Readonly<Record<string, unknown>>) => ({
    ...defined({ correlationId: currentCorrelation() }),
    ...fields,
  });
  return {
    info: (message, fields) => logger.info(message, withCorrelation(fields)),
    warn: (message, fields) => logger.warn(message, withCorrelation(fields)),
    error: (message, fields) => logger.error(message, withCorrelation(fields)),
  };
}

interface Measured {
  readonly unit: (typeof MetricUnit)[keyof typeof MetricUnit];
  readonly value: number;
}

/**
 * CloudWatch embedded metrics in the namespace `Starling`, one line for each call. Their dimensions are `service`,
 * `installation` (an account may contain several), and those of the call.
 */
export function embeddedMetrics(serviceName: string, installation: string, output?: LineOutput): Metrics {
  const publish = (name: string, measured: Measured, more = {}) => {
    const metrics = new PowertoolsMetrics({ namespace: "Starling", serviceName, defaultDimensions: { installation } });
    metrics.addDimensions(more);
    metrics.addMetric(name, measured.unit, measured.value);
    if (output === undefined) metrics.publishStoredMetrics();
    else output(JSON.stringify(metrics.serializeMetrics()));
  };
  return {
    count: (name, value, dimensions) => publish(name, { unit: MetricUnit.Count, value }, dimensions),
    seconds: (name, value) => publish(name, { unit: MetricUnit.Seconds, value }),
  };
}
