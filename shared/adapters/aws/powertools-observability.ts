import { Logger } from "@aws-lambda-powertools/logger";
import { MetricUnit, Metrics as PowertoolsMetrics } from "@aws-lambda-powertools/metrics";
import type { Log, Metrics } from "#shared/ports.ts";

/** Structured JSON logs on standard output, one line an entry. */
export function powertoolsLog(serviceName: string): Log {
  const logger = new Logger({ serviceName });
  return {
    info: (message, fields) => logger.info(message, { ...fields }),
    warn: (message, fields) => logger.warn(message, { ...fields }),
    error: (message, fields) => logger.error(message, { ...fields }),
  };
}

/**
 * CloudWatch embedded metrics on standard output, in namespace `Starling`; one line per call. Their dimensions are
 * `service`, `installation` (an account may hold several), and those of the call.
 */
export function embeddedMetrics(serviceName: string, installation: string): Metrics {
  const metrics = new PowertoolsMetrics({ namespace: "Starling", serviceName, defaultDimensions: { installation } });
  return {
    count(name, value, dimensions) {
      const single = metrics.singleMetric();
      single.addDimensions({ ...dimensions });
      single.addMetric(name, MetricUnit.Count, value);
    },
    seconds(name, value) {
      metrics.singleMetric().addMetric(name, MetricUnit.Seconds, value);
    },
  };
}
