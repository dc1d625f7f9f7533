import type { RenderEnv } from "#functions/render/env.ts";
import { renderInput } from "#functions/render/render-input.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { LambdaBuilder } from "#shared/adapters/aws/lambda-builder.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import type { RenderClients } from "#shared/lambda/render-clients.ts";
import { eachMessage, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireRender(env: RenderEnv, aws: RenderClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock, output } = options;
  const log = powertoolsLog("render", output);
  const { lambda, presigner } = aws;
  const blobs = new S3BlobStore(aws.s3, env.STARLING_BUCKET);
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs,
    sender: new SqsSender(aws.sqs, { resolve: env.STARLING_QUEUE_RESOLVE, rollout: env.STARLING_QUEUE_ROLLOUT }),
    builder: new LambdaBuilder({
      lambda,
      presigner,
      blobs,
      bucket: env.STARLING_BUCKET,
      functionName: env.STARLING_BUILD_FUNCTION,
    }),
    clock,
    ids: randomIds,
    turns: Math.max(1, Math.floor(env.STARLING_RENDER_CONCURRENCY / 2)),
    log,
  };
  return sqsHandler({
    queue: "render",
    log,
    work: (messages) => eachMessage(messages, (message) => renderInput(message, ports)),
  });
}
