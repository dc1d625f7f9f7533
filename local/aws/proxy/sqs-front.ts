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
  /** How many seconds of a message's own delay pass in one. Default 1. */
  readonly rate?: number;
}

export interface SqsFront {
  answer(call: AwsCall): Promise<HttpReply>;
  /** To be called when a reply did not reach its client. */
  undelivered(call: AwsCall, reply: HttpReply): void;
  /** To be called when the client went away before it was answered; true when nothing of the reply can be lost. */
  abandoned(call: AwsCall): boolean;
  stop(): void;
}

/** A message as SendMessage and the entries of SendMessageBatch have it in common. */
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
  /** Whether it travels with the request; otherwise it is lost or follows later, and its sender is none the wiser. */
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

  /** What is hidden for a time comes when that is over by the faster clock. */
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

  /** Decides what happens to one message, and holds it when it is to travel later. */
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

  /** The queue's own clock cannot be hurried: where time runs faster, messages wait here instead. */
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

/** The queue's own delay, when the message has none, is lost to the added one: the message still comes late. */
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

/** Queue and group of a message on a FIFO queue; on a standard queue the group id orders nothing. */
function groupOf({ request }: AwsCall, { MessageGroupId }: Outgoing): string | undefined {
  const queue = String(request.QueueUrl);
  return queue.endsWith(".fifo") ? `${queue} ${MessageGroupId}` : undefined;
}

/** The second of two deliveries; on a FIFO queue the de-duplication of the first must not swallow it. */
function copyOf(message: Outgoing): Outgoing {
  return message.MessageGroupId === undefined ? message : { ...message, MessageDeduplicationId: randomUUID() };
}

/** What SQS answers about a message it took; the SDK verifies the digest of the body. */
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
