import { dashboardHandler, type WidgetHandler } from "#functions/dashboard/dashboard-handler.ts";
import type { DashboardEnv } from "#functions/dashboard/env.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { BlobClients, RowClients } from "#shared/lambda/core-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireDashboard(
  env: DashboardEnv,
  aws: RowClients & BlobClients,
  { clock = systemClock, output }: WireOptions = {},
): WidgetHandler {
  return dashboardHandler({
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    clock,
    log: powertoolsLog("dashboard", output),
    installation: env.STARLING_INSTALLATION,
  });
}
