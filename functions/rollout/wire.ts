import type { RolloutEnv } from "#functions/rollout/env.ts";
import { planSubject } from "#functions/rollout/plan-subject.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import type { BlobClients, RowClients } from "#shared/lambda/core-clients.ts";
import { type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import { type RolloutMessage, subjectKey } from "#shared/messages.ts";

/** The planner. Messages of one subject in a batch are one look; on the FIFO queue they are neighbours anyway. */
export function wireRollout(env: RolloutEnv, aws: RowClients & BlobClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock } = options;
  const log = powertoolsLog("rollout");
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: new SqsSender(aws.sqs, {
      render: env.STARLING_QUEUE_RENDER,
      apply: env.STARLING_QUEUE_APPLY,
      report: env.STARLING_QUEUE_REPORT,
    }),
    clock,
    ids: randomIds,
    log,
    installation: env.STARLING_INSTALLATION,
  };
  return sqsHandler({
    queue: "rollout",
    log,
    async work(messages) {
      const bySubject = Map.groupBy([...messages.entries()], ([, message]) => subjectKey(message.subject));
      const failures = [];
      for (const group of bySubject.values()) {
        try {
          const [first] = group as [[number, RolloutMessage]];
          await planSubject(first[1].subject, ports);
        } catch (error) {
          failures.push(...group.map(([index]) => ({ index, error })));
        }
      }
      return failures;
    },
  });
}
