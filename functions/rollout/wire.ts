import type { RolloutEnv } from "#functions/rollout/env.ts";
import { type Call, planSubject } from "#functions/rollout/plan-subject.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SqsReturns } from "#shared/adapters/aws/sqs-returns.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { BlobClients, RowClients } from "#shared/lambda/core-clients.ts";
import { type Failure, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import { type RolloutMessage, subjectKey } from "#shared/messages.ts";

/** What a step that has begun may take. */
const reserveMs = 15_000;
/** Of a batch; each waits for the table most of the time. */
const subjectsAtOnce = 5;

/** Of all clusters together that the messages name; of any, where one names none. */
function toldOf(messages: readonly RolloutMessage[]): Pick<Call, "clusters"> {
  if (messages.some(({ clusters }) => clusters === undefined)) return {};
  return { clusters: new Set(messages.flatMap(({ clusters = [] }) => clusters)) };
}

/** The planner. Messages of one subject in a batch are one look; on the FIFO queue they are neighbours anyway. */
export function wireRollout(env: RolloutEnv, aws: RowClients & BlobClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock } = options;
  const log = powertoolsLog("rollout");
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: new SqsSender(aws.sqs, {
      rollout: env.STARLING_QUEUE_ROLLOUT,
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
    // While one is out of sight, its subject stands still.
    returns: new SqsReturns(aws.sqs, env.STARLING_QUEUE_ROLLOUT),
    async work(messages, context) {
      const until = new Date(clock.now().getTime() + context.getRemainingTimeInMillis() - reserveMs);
      const bySubject = Map.groupBy([...messages.entries()], ([, message]) => subjectKey(message.subject));
      const failures: Failure[] = [];
      await runConcurrently([...bySubject.values()], subjectsAtOnce, async (group) => {
        const [first] = group;
        if (first === undefined) return;
        try {
          await planSubject(first[1].subject, { until, ...toldOf(group.map(([, message]) => message)) }, ports);
        } catch (error) {
          failures.push(...group.map(([index]) => ({ index, error })));
        }
      });
      return failures;
    },
  });
}
