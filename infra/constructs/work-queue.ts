import { Duration, Stack } from "aws-cdk-lib";
import { AccountPrincipal, PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  DeduplicationScope,
  FifoThroughputLimit,
  Queue,
  QueueEncryption,
  RedrivePermission,
} from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { Access } from "#infra/constructs/access.ts";
import { deadLettersOf } from "#shared/fleet/zone-parts.ts";

/** Lambda's advice, so that a throttled or crashed batch is not delivered twice at once. */
const visibilityPerTimeout = 6;
/** Lambda's advice is at least 5. With fewer receives, throttling turns messages into dead letters. */
const fewestReceives = 5;

export interface WorkQueueProps {
  /** Timeout of the function that works on the queue. The visibility timeout follows from it. */
  readonly functionTimeout: Duration;
  /**
   * The time after which the message of a crashed worker returns, for work that may run twice at once. Lambda requires at least
   * the function's timeout.
   */
  readonly visibilityTimeout?: Duration;
  /** Number of attempts before a message is a dead letter; more if attempts follow each other quickly. */
  readonly maxReceiveCount?: number;
  /** First in, first out within a message group, in high-throughput mode. */
  readonly fifo?: true;
  /** The whole name of a zone's queue, which names its dead letters, too. Absent: a name of the stack. */
  readonly name?: string;
  /** For a queue that is elsewhere: the account of the installation. */
  readonly home?: string;
}

/** A queue for one function, with its dead-letter queue. Both are encrypted and require TLS. */
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
    // The queue has a fixed name, because its dead-letter queue names it and two resources cannot refer to each other.
    const { name, home } = props;
    const queueName = name ?? `${stack.stackName}-${id}${props.fifo === true ? ".fifo" : ""}`;
    const source = Queue.fromQueueArn(this, "Source", stack.formatArn({ service: "sqs", resource: queueName }));
    this.deadLetters = new Queue(this, "DeadLetters", {
      ...common,
      ...(props.fifo === true ? { fifo: true } : {}),
      ...(name === undefined ? {} : { queueName: deadLettersOf(name) }),
      retentionPeriod: Duration.days(14),
      redriveAllowPolicy: { redrivePermission: RedrivePermission.BY_QUEUE, sourceQueues: [source] },
    });
    this.queue = new Queue(this, "Queue", {
      ...common,
      queueName,
      redriveAllowPolicy: { redrivePermission: RedrivePermission.DENY_ALL },
      ...(props.fifo === true ? fifo : {}),
      visibilityTimeout: props.visibilityTimeout ?? advised,
      // The rows keep all state and the tick sends messages again, so that old messages are not needed.
      retentionPeriod: Duration.days(1),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: props.maxReceiveCount ?? fewestReceives },
    });
    if (home !== undefined) this.#letIn(home);
  }

  /** Lets the installation send messages and count them. Its own roles narrow who of that account may. */
  #letIn(account: string): void {
    const grants = [
      { to: this.queue, actions: ["sqs:SendMessage", "sqs:GetQueueAttributes"] },
      { to: this.deadLetters, actions: ["sqs:GetQueueAttributes"] },
    ];
    for (const { to, actions } of grants)
      to.addToResourcePolicy(
        new PolicyStatement({ actions, principals: [new AccountPrincipal(account)], resources: [to.queueArn] }),
      );
  }

  /** Access for the function that works on the queue: to continue in another call, and to set when a failed message returns. */
  ownWork(): Access {
    return this.#access(["sqs:SendMessage", "sqs:ChangeMessageVisibility"]);
  }

  /** Access to send to the queue. */
  send(): Access {
    return this.#access(["sqs:SendMessage"]);
  }

  /** The same, with the right to ask for its attributes, by which a check sees that the way to it holds. */
  sendAndCheck(): Access {
    return this.#access(["sqs:SendMessage", "sqs:GetQueueAttributes"]);
  }

  #access(actions: string[]): Access {
    return {
      value: this.queue.queueUrl,
      statements: [new PolicyStatement({ actions, resources: [this.queue.queueArn] })],
    };
  }
}
