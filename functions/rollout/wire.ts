import { planBatch } from "#functions/rollout/call/plan-batch.ts";
import type { RolloutEnv } from "#functions/rollout/env.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SqsReturns } from "#shared/adapters/aws/sqs-returns.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { zonedSender } from "#shared/adapters/zoned-sender.ts";
import { defaultGuardOf } from "#shared/fleet/kinds/guard-spec.ts";
import { parseServedNames } from "#shared/fleet/served-names.ts";
import { zoneQueues } from "#shared/fleet/zone-parts.ts";
import type { BlobClients, RowClients } from "#shared/lambda/core-clients.ts";
import { type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

/** Milliseconds that a step may take once it has begun. */
const reserveMs = 15_000;

/** The planner. */
export function wireRollout(env: RolloutEnv, aws: RowClients & BlobClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock, output } = options;
  const log = powertoolsLog("rollout", output);
  const table = new DynamoTable(aws.dynamo, env.STARLING_TABLE);
  const zones = zoneQueues(env.STARLING_ZONE_QUEUES, env.STARLING_QUEUE_APPLY);
  const served = parseServedNames(env.STARLING_ZONE_CLUSTERS);
  const queues = {
    rollout: env.STARLING_QUEUE_ROLLOUT,
    render: env.STARLING_QUEUE_RENDER,
    apply: env.STARLING_QUEUE_APPLY,
    report: env.STARLING_QUEUE_REPORT,
  };
  const ports = {
    table,
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: zonedSender(new SqsSender(aws.sqs, queues, { urls: zones, clock, log }), { zones, served, table }),
    clock,
    ids: randomIds,
    log,
    installation: env.STARLING_INSTALLATION,
    zones: new Set(zones.keys()),
    servedNames: served,
    defaultGuard: defaultGuardOf(env.STARLING_GUARD),
  };
  return sqsHandler({
    queue: "rollout",
    log,
    // While one of its messages is invisible, its owner stands still.
    returns: new SqsReturns(aws.sqs, env.STARLING_QUEUE_ROLLOUT),
    work: (messages, context) => planBatch(messages, context.getRemainingTimeInMillis() - reserveMs, ports),
  });
}
