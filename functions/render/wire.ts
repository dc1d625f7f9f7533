import type { RenderEnv } from "#functions/render/env.ts";
import { render } from "#functions/render/render.ts";
import { DynamoTable } from "#shared/adapters/dynamo-table.ts";
import { locateKubectl } from "#shared/adapters/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/kubectl-kustomize.ts";
import { powertoolsLog } from "#shared/adapters/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/s3-blob-store.ts";
import { SqsSender } from "#shared/adapters/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import type { CoreClients } from "#shared/lambda/core-clients.ts";
import { eachMessage, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export interface RenderWireOptions extends WireOptions {
  /** Gives the path of the program, where it is a matter of the machine. */
  readonly kubectl?: () => Promise<string>;
}

export function wireRender(env: RenderEnv, aws: CoreClients, options: RenderWireOptions = {}): SqsHandler {
  const { clock = systemClock, kubectl = () => locateKubectl("") } = options;
  const log = powertoolsLog("render");
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: new SqsSender(aws.sqs, { rollout: env.STARLING_QUEUE_ROLLOUT }),
    kustomize: new KubectlKustomize({ kubectl }),
    clock,
    ids: randomIds,
    log,
  };
  return sqsHandler({
    queue: "render",
    log,
    work: (messages) => eachMessage(messages, (message) => render(message, ports)),
  });
}
