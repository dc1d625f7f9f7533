import { createHash, randomUUID } from "node:crypto";
import { withCarriedTrace, withShownTraces } from "#local/aws/proxy/carried-traces.ts";
import { createHeldMessages } from "#local/aws/proxy/held-messages.ts";
import { createLongPolls } from "#local/aws/proxy/long-polls.ts";
import { toClientUrls, withEmulatorUrl } from "#local/aws/services/queue-urls.ts";
import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import { jsonReply } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply, HttpRequest } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext, Forward } from "#local/aws/wire/fault-context.ts";
import { defined } from "#shared/base/defined.ts";

export interface SqsFrontOptions {
  readonly context: FaultContext;
  readonly forward: Forward;
  /** The number of a message delay's seconds that pass in one real second. The default is 1. */
  readonly rate?: number;
}

export interface SqsFront {
  answer(call: AwsCall): Promise<HttpReply>;
  /** Must be called when a reply did not reach its client. */
  undelivered(call: AwsCall, reply: HttpReply): void;
  /**
   * Must be called when the client disconnected before the answer. @returns true when no part of the reply can be lost.
   */
  abandoned(call: AwsCall): boolean;
  stop(): void;
}

/** The fields that SendMessage and the entries of SendMessageBatch share. */
interface Outgoing {
  readonly Id?: string;
  readonly MessageBody?: string;
  readonly DelaySeconds?: number;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
}

/** An entry of ChangeMessageVisibilityBatch. */
interface Hidden {
  readonly Id: string;
  readonly ReceiptHandle: string;
  readonly VisibilityTimeout: number;
}

interface Dispatch {
  readonly message: Outgoing;
  /**
   * Whether the message is sent with the request. Otherwise it is lost or sent later, and the sender does not notice.
   */
  readonly now: boolean;
  readonly duplicate: boolean;
}

/** SQS that loses, repeats, delays and reorders messages, and translates queue URLs. */
export function createSqsFront({ context, forward, rate = 1 }: SqsFrontOptions): SqsFront {
  const polls = createLongPolls(forward);
  const held = createHeldMessages();

  async function answer(arrived: AwsCall): Promise<HttpReply> {
    const sends = arrived.operation === "SendMessage" || arrived.operation === "SendMessageBatch";
    const call = withEmulatorUrl(sends ? withCarriedTrace(arrived) : arrived);
    if (call.operation === "ReceiveMessage") return withShownTraces(await polls.receive(call));
    if (rate !== 1 && call.operation === "ChangeMessageVisibilityBatch") return hideForOurTime(call);
    if (sends && (mayDisturb(context) || held.holdsAny() || rate !== 1)) return disturb(call);
    return toClientUrls(call, await forward(call.http));
  }

  /** Shows each message again when its time is over on the faster clock. */
  function hideForOurTime(call: AwsCall): HttpReply {
    const entries = call.request.Entries as readonly Hidden[];
    for (const { ReceiptHandle, VisibilityTimeout } of entries) {
      const shown = { QueueUrl: call.request.QueueUrl, ReceiptHandle, VisibilityTimeout: 0 };
      const http = withBody(call, shown);
      const headers = { ...http.headers, "x-amz-target": "AmazonSQS.ChangeMessageVisibility" };
      const holdMs = (VisibilityTimeout * 1000) / rate;
      held.hold({ group: undefined, holdMs, send: () => forward({ ...http, headers }) });
    }
    return jsonReply(200, { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] });
  }

  async function disturb(call: AwsCall): Promise<HttpReply> {
    const dispatches = outgoingOf(call).map((message) => dispatch(call, message));
    const now = dispatches.filter((dispatched) => dispatched.now);
    const reply = now.length > 0 ? await forward(sendRequest(call, now)) : undefined;
    for (const { message, duplicate } of now) {
      if (duplicate) hold(call, { message: copyOf(message), holdMs: 0 });
    }
    const accepted = dispatches.filter((dispatched) => !dispatched.now).map(({ message }) => acceptance(message));
    return mergeReply(call, { reply, accepted });
  }

  /** Decides the fate of one message, and holds a message that is sent later. */
  function dispatch(call: AwsCall, message: Outgoing): Dispatch {
    const { random, injected } = context;
    const faults = context.faults().sqs;
    const group = groupOf(call, message);
    const lose = random.chance(faults.lose);
    const duplicate = random.chance(faults.duplicate) && !lose;
    const delay = random.chance(faults.delay) && !lose;
    const reorder = random.chance(faults.reorder) && !lose && group === undefined;
    for (const [fault, happens] of Object.entries({ lose, duplicate, delay, reorder })) {
      if (happens) injected(`sqs:${fault}`);
    }
    if (lose) return { message, now: false, duplicate: false };
    const delaySeconds = delay ? random.integer(1, faults.maxDelaySeconds) : 0;
    if (group !== undefined) {
      if (!delay && !held.holds(group)) return { message, now: true, duplicate };
      hold(call, { message, holdMs: delaySeconds * 1000 });
      if (duplicate) hold(call, { message: copyOf(message), holdMs: 0 });
      return { message, now: false, duplicate };
    }
    const [delayed, waitMs] = ownDelay(delay ? laterBy(message, delaySeconds) : message);
    if (!reorder && waitMs === 0) return { message: delayed, now: true, duplicate };
    const overtakenMs = () => waitMs + (reorder ? random.integer(0, faults.maxReorderMs) : 0);
    hold(call, { message: delayed, holdMs: overtakenMs() });
    if (duplicate) hold(call, { message: delayed, holdMs: overtakenMs() });
    return { message, now: false, duplicate };
  }

  /**
   * The delay of a message. The emulator's clock cannot run faster, so with a faster clock this proxy holds the
   * message.
   */
  function ownDelay(message: Outgoing): readonly [Outgoing, number] {
    const { DelaySeconds, ...undelayed } = message;
    if (rate === 1 || DelaySeconds === undefined) return [message, 0];
    return [undelayed, (DelaySeconds * 1000) / rate];
  }

  function hold(call: AwsCall, { message, holdMs }: { readonly message: Outgoing; readonly holdMs: number }): void {
    const send = () => forward(sendRequest({ ...call, operation: "SendMessage" }, [{ message }]));
    held.hold({ group: groupOf(call, message), holdMs, send });
  }

  return {
    answer,
    undelivered(call, reply) {
      if (call.operation === "ReceiveMessage") polls.undelivered(withEmulatorUrl(call), reply);
    },
    abandoned: (call) => call.operation === "ReceiveMessage" && polls.abandoned(withEmulatorUrl(call)),
    stop: held.stop,
  };
}

const maxDelaySeconds = 900;

/**
 * Adds a delay to a message. A message without its own delay loses the queue's default delay, and still arrives late.
 */
function laterBy(message: Outgoing, addedSeconds: number): Outgoing {
  return { ...message, DelaySeconds: Math.min(maxDelaySeconds, (message.DelaySeconds ?? 0) + addedSeconds) };
}

function mayDisturb({ faults }: FaultContext): boolean {
  const { lose, duplicate, delay, reorder } = faults().sqs;
  return lose + duplicate + delay + reorder > 0;
}

function outgoingOf({ operation, request }: AwsCall): readonly Outgoing[] {
  return operation === "SendMessage" ? [request] : (request.Entries as readonly Outgoing[]);
}

function sendRequest(call: AwsCall, dispatches: readonly { readonly message: Outgoing }[]): HttpRequest {
  const { QueueUrl } = call.request;
  const messages = dispatches.map(({ message }) => message);
  if (call.operation === "SendMessageBatch") return withBody(call, { QueueUrl, Entries: messages });
  const { Id: _batchEntry, ...message } = messages[0] ?? {};
  const http = withBody(call, { ...message, QueueUrl });
  return { ...http, headers: { ...http.headers, "x-amz-target": "AmazonSQS.SendMessage" } };
}

/** The queue and group of a message on a FIFO queue. On a standard queue a group orders nothing. */
function groupOf({ request }: AwsCall, { MessageGroupId }: Outgoing): string | undefined {
  const queue = String(request.QueueUrl);
  return queue.endsWith(".fifo") ? `${queue} ${MessageGroupId}` : undefined;
}

/** The second of two deliveries. It gets a new de-duplication id, because a FIFO queue would drop it otherwise. */
function copyOf(message: Outgoing): Outgoing {
  return message.MessageGroupId === undefined ? message : { ...message, MessageDeduplicationId: randomUUID() };
}

/** The answer of SQS for an accepted message. The SDK verifies the digest of the body. */
function acceptance({ Id, MessageBody = "", MessageGroupId }: Outgoing): object {
  return {
    ...defined({ Id }),
    MessageId: randomUUID(),
    MD5OfMessageBody: createHash("md5").update(MessageBody).digest("hex"),
    ...(MessageGroupId === undefined ? {} : { SequenceNumber: "0" }),
  };
}

interface PartialReply {
  readonly reply: HttpReply | undefined;
  readonly accepted: readonly object[];
}

function mergeReply(call: AwsCall, { reply, accepted }: PartialReply): HttpReply {
  if (reply !== undefined && (reply.status !== 200 || accepted.length === 0)) return reply;
  if (call.operation === "SendMessage") return jsonReply(200, accepted[0] ?? {});
  const { Successful = [], Failed } = JSON.parse(reply?.body.toString() ?? "{}") as {
    readonly Successful?: readonly object[];
    readonly Failed?: readonly object[];
  };
  return jsonReply(200, { Successful: [...Successful, ...accepted], ...defined({ Failed }) });
}
