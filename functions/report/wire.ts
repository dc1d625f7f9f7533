import type { ReportEnv } from "#functions/report/env.ts";
import { reportChanges } from "#functions/report/report-changes.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { embeddedMetrics, powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import type { RowClients } from "#shared/lambda/core-clients.ts";
import { type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireReport(env: ReportEnv, aws: RowClients, { output }: WireOptions = {}): SqsHandler {
  const log = powertoolsLog("report", output);
  const table = new DynamoTable(aws.dynamo, env.STARLING_TABLE);
  const ports = {
    table,
    events: table,
    sender: new SqsSender(aws.sqs, { rollout: env.STARLING_QUEUE_ROLLOUT }),
    metrics: embeddedMetrics("report", env.STARLING_INSTALLATION, output),
    log,
  };
  return sqsHandler({
    queue: "report",
    log,
    async work(messages) {
      await reportChanges(messages, ports);
      return [];
    },
  });
}
