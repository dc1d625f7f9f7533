import { Duration, Stack } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  DeduplicationScope,
  FifoThroughputLimit,
  Queue,
  QueueEncryption,
  RedrivePermission,
} from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { Access } from "#infra/constructs/access.ts";

/** Lambda's advice: a batch that was throttled or crashed must not be delivered twice at once. */
const visibilityPerTimeout = 6;
/** Lambda's advice is at least 5: fewer turn a throttle into a dead letter. */
const fewestReceives = 5;

export interface WorkQueueProps {
  /** Of the function that works on it; the visibility timeout follows from it. */
  readonly functionTimeout: Duration;
  /**
   * When a message comes back whose worker died, where working on it twice at once is harmless; Lambda wants it no shorter
   * than the function's time.
   */
  readonly visibilityTimeout?: Duration;
  /** How often a message is tried before it is a dead letter; more where it is tried again soon. */
  readonly maxReceiveCount?: number;
  /** First in, first out within a message group, in high-throughput mode. */
  readonly fifo?: true;
}

/** A queue in front of one function, with its dead-letter queue: encrypted, TLS only, both. */
export class WorkQueue extends Construct {
  readonly queue: Queue;
  readonly deadLetters: Queue;
  readonly functionTimeout: Duration;

  constructor(scope: Construct, id: string, props: WorkQueueProps) {
    super(scope, id);
    this.functionTimeout = props.functionTimeout;
    const advised = Duration.seconds(props.functionTimeout.toSeconds() * visibilityPerTimeout);
    const common = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
    const fifo = {
      fifo: true,
      deduplicationScope: DeduplicationScope.MESSAGE_GROUP,
      fifoThroughputLimit: FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
    };
    const stack = Stack.of(this);
    // It has a name, since its dead-letter queue names it: two resources of a stack cannot refer to each other.
    const queueName = `${stack.stackName}-${id}${props.fifo === true ? ".fifo" : ""}`;
    const source = Queue.fromQueueArn(this, "Source", stack.formatArn({ service: "sqs", resource: queueName }));
    this.deadLetters = new Queue(this, "DeadLetters", {
      ...common,
      ...(props.fifo === true ? { fifo: true } : {}),
      retentionPeriod: Duration.days(14),
      redriveAllowPolicy: { redrivePermission: RedrivePermission.BY_QUEUE, sourceQueues: [source] },
    });
    this.queue = new Queue(this, "Queue", {
      ...common,
      queueName,
      redriveAllowPolicy: { redrivePermission: RedrivePermission.DENY_ALL },
      ...(props.fifo === true ? fifo : {}),
      visibilityTimeout: props.visibilityTimeout ?? advised,
      // Rows are the truth and the tick sends again: an old message has nothing to say.
      retentionPeriod: Duration.days(1),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: props.maxReceiveCount ?? fewestReceives },
    });
  }

  /** For the function that works on it: going on in another call, and saying when what failed comes back. */
  ownWork(): Access {
    const actions = ["sqs:SendMessage", "sqs:ChangeMessageVisibility"];
    return {
      value: this.queue.queueUrl,
      statements: [new PolicyStatement({ actions, resources: [this.queue.queueArn] })],
    };
  }

  /** Sending to it, and its URL. */
  send(): Access {
    return {
      value: this.queue.queueUrl,
      statements: [new PolicyStatement({ actions: ["sqs:SendMessage"], resources: [this.queue.queueArn] })],
    };
  }
}
