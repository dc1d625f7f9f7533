/** The functions of this machine, as the control stack wires them: queue, batch, concurrency and time of each. */
import { wireApply } from "#functions/apply/wire.ts";
import { wireRender } from "#functions/render/wire.ts";
import { wireReport } from "#functions/report/wire.ts";
import { wireResolve } from "#functions/resolve/wire.ts";
import { wireRollout } from "#functions/rollout/wire.ts";
import type { LambdaHandler } from "#local/aws/lambda-context.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import type { QueueName } from "#shared/messages.ts";

/** What the functions are told in their environment. */
export interface LocalEnvironment {
  readonly table: string;
  readonly bucket: string;
  readonly installation: string;
  readonly queues: Readonly<Record<QueueName, string>>;
  /** PEM certificates the git hosts of this machine prove themselves with. */
  readonly gitCa?: string;
}

export interface QueueFunction {
  readonly timeoutSeconds: number;
  readonly batchSize: number;
  readonly maximumConcurrency: number;
  readonly batchingWindowSeconds?: number;
  readonly fifo?: true;
  readonly wire: (environment: LocalEnvironment, aws: AwsClients, options?: WireOptions) => LambdaHandler;
}

/** This machine's git hosts and clusters are all on the loopback interface. */
const LOOPBACK = "127.0.0.0/8,localhost,::1/128";

export const queueFunctions: Readonly<Record<QueueName, QueueFunction>> = {
  resolve: {
    timeoutSeconds: 180,
    batchSize: 1,
    maximumConcurrency: 10,
    wire: (environment, aws, options) =>
      wireResolve(
        {
          STARLING_TABLE: environment.table,
          STARLING_BUCKET: environment.bucket,
          STARLING_QUEUE_ROLLOUT: environment.queues.rollout,
          STARLING_GIT_ALLOW: LOOPBACK,
          ...(environment.gitCa === undefined ? {} : { STARLING_GIT_CA: environment.gitCa }),
        },
        aws,
        options,
      ) as LambdaHandler,
  },
  rollout: {
    timeoutSeconds: 60,
    batchSize: 10,
    maximumConcurrency: 20,
    fifo: true,
    wire: (environment, aws, options) =>
      wireRollout(
        {
          STARLING_TABLE: environment.table,
          STARLING_BUCKET: environment.bucket,
          STARLING_INSTALLATION: environment.installation,
          STARLING_QUEUE_RENDER: environment.queues.render,
          STARLING_QUEUE_APPLY: environment.queues.apply,
          STARLING_QUEUE_REPORT: environment.queues.report,
        },
        aws,
        options,
      ) as LambdaHandler,
  },
  render: {
    timeoutSeconds: 120,
    batchSize: 1,
    maximumConcurrency: 10,
    wire: (environment, aws, options) =>
      wireRender(
        {
          STARLING_TABLE: environment.table,
          STARLING_BUCKET: environment.bucket,
          STARLING_QUEUE_ROLLOUT: environment.queues.rollout,
        },
        aws,
        options,
      ) as LambdaHandler,
  },
  apply: {
    timeoutSeconds: 300,
    batchSize: 5,
    maximumConcurrency: 20,
    wire: (environment, aws, options) =>
      wireApply(
        {
          STARLING_TABLE: environment.table,
          STARLING_BUCKET: environment.bucket,
          STARLING_INSTALLATION: environment.installation,
          STARLING_QUEUE_APPLY: environment.queues.apply,
          STARLING_QUEUE_REPORT: environment.queues.report,
        },
        aws,
        options,
      ) as LambdaHandler,
  },
  report: {
    timeoutSeconds: 60,
    batchSize: 10,
    maximumConcurrency: 5,
    batchingWindowSeconds: 1,
    wire: (environment, aws) =>
      wireReport(
        { STARLING_TABLE: environment.table, STARLING_QUEUE_ROLLOUT: environment.queues.rollout },
        aws,
      ) as LambdaHandler,
  },
};
