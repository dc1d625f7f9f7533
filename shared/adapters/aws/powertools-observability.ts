import { Logger } from "@aws-lambda-powertools/logger";
import { MetricUnit, Metrics as PowertoolsMetrics } from "@aws-lambda-powertools/metrics";
import { currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import type { Log, Metrics } from "#shared/ports.ts";

/** Takes what a function says, line by line; left out, it goes to standard output, where Lambda reads it. */
export type LineOutput = (line: string) => void;

/** Structured JSON logs, one line an entry, each with the correlation id of what is being done. */
export function powertoolsLog(serviceName: string, output?: LineOutput): Log {
  const logger = new Logger({ serviceName, ...(output === undefined ? {} : { logLevel: "INFO" as const }) });
  // The library has no other way to its output than standard output, and says so nowhere.
  if (output !== undefined) Object.assign(logger, { console: { info: output, warn: output, error: output } });
  const reported = (fields?: Readonly<Record<string, unknown>>) => ({
    ...defined({ correlationId: currentCorrelation() }),
    ...fields,
  });
  return {
    info: (message, fields) => logger.info(message, reported(fields)),
    warn: (message, fields) => logger.warn(message, reported(fields)),
    error: (message, fields) => logger.error(message, reported(fields)),
  };
}

interface Measured {
  readonly unit: (typeof MetricUnit)[keyof typeof MetricUnit];
  readonly value: number;
}

/**
 * CloudWatch embedded metrics, in namespace `Starling`; one line per call. Their dimensions are `service`, `installation`
 * (an account may hold several), and those of the call.
 */
export function embeddedMetrics(serviceName: string, installation: string, output?: LineOutput): Metrics {
  const reported = (name: string, measured: Measured, more = {}) => {
    const metrics = new PowertoolsMetrics({ namespace: "Starling", serviceName, defaultDimensions: { installation } });
    metrics.addDimensions(more);
    metrics.addMetric(name, measured.unit, measured.value);
    if (output === undefined) metrics.publishStoredMetrics();
    else output(JSON.stringify(metrics.serializeMetrics()));
  };
  return {
    count: (name, value, dimensions) => reported(name, { unit: MetricUnit.Count, value }, dimensions),
    seconds: (name, value) => reported(name, { unit: MetricUnit.Seconds, value }),
  };
}
