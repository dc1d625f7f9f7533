import { accessKeyIdOf } from "#local/aws/iam/sessions.ts";
import type { AwsCall, AwsService } from "#local/aws/wire/aws-call.ts";
import type { Stack } from "#local/machine/stack.ts";

export interface TrafficCounts {
  /** Requests to AWS, without those of ticks and receives that found no message; those to Lambda are renderings. */
  readonly aws: Readonly<Record<AwsService, number>>;
  /** Requests to API servers. */
  readonly cluster: number;
  /** Requests to the git server. */
  readonly git: number;
  /** Messages by the queue that they are sent to. */
  readonly messages: Readonly<Record<string, number>>;
}

const services = ["dynamodb", "sqs", "s3", "lambda"] as const;

/** Without a request for so long, all work has ended: the longest pause is the window of a batch of reports. */
const quietMs = 3000;

/** Counts the requests to the servers of a machine, at the servers. */
export class Traffic {
  #counts = new Map<string, number>();
  #lastAt = 0;
  #lastClusterAt = 0;

  /** The listener for requests to the git server. */
  readonly onGitRequest = (): void => this.#count("git");

  watch({ machine, clusters }: Stack): void {
    machine.proxy.intercept({
      after: (call, { status, body }) => {
        const isEmpty = call.operation === "ReceiveMessage" && status === 200 && !body.includes('"Messages"');
        const caller = machine.principals
          .find(accessKeyIdOf(call) ?? "")
          ?.principalArn.split("/")
          .at(-1);
        if (isEmpty || caller === "tick") return;
        this.#count(call.service);
        this.#countMessages(call);
      },
    });
    clusters.onRequest(() => {
      this.#count("cluster");
      this.#lastClusterAt = this.#lastAt;
    });
  }

  isQuiet(): boolean {
    return performance.now() - this.#lastAt > quietMs;
  }

  /** As `performance.now()` has it. */
  lastClusterRequestAt(): number {
    return this.#lastClusterAt;
  }

  reset(): void {
    this.#counts = new Map();
  }

  counts(): TrafficCounts {
    const of = (what: string) => this.#counts.get(what) ?? 0;
    const [dynamodb, sqs, s3, lambda] = services.map(of) as [number, number, number, number];
    const queues = [...this.#counts].filter(([what]) => what.startsWith(queuePrefix));
    return {
      aws: { dynamodb, sqs, s3, lambda },
      cluster: of("cluster"),
      git: of("git"),
      messages: Object.fromEntries(queues.map(([queue, count]) => [queue.slice(queuePrefix.length), count])),
    };
  }

  #countMessages({ service, operation, request }: AwsCall): void {
    if (service !== "sqs" || !operation.startsWith("SendMessage")) return;
    const [, queue = "?"] = /To([A-Za-z]+)Queue/.exec(String(request.QueueUrl)) ?? [];
    const sent = operation === "SendMessageBatch" ? (request.Entries as readonly unknown[]).length : 1;
    this.#count(`${queuePrefix}${queue}`, sent);
  }

  #count(what: string, times = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + times);
    this.#lastAt = performance.now();
  }
}

const queuePrefix = "to ";
