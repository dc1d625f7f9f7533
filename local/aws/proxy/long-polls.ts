import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";

export interface LongPolls {
  /** Forwards a ReceiveMessage. */
  receive(call: AwsCall): Promise<HttpReply>;
  /** Must be called when the reply of a ReceiveMessage did not reach its client. */
  undelivered(call: AwsCall, reply: HttpReply): void;
  /**
   * Must be called when the client of a ReceiveMessage has disconnected. @returns true when the poll is still open and
   * this object takes care of it.
   */
  abandoned(call: AwsCall): boolean;
}

interface Poll {
  readonly reply: Promise<HttpReply>;
  adopted: boolean;
}

/**
 * Long polls whose client disconnects. The emulator does not notice this and would hand the next message to the lost
 * client. The message would then be invisible for a whole visibility timeout. So the next equal receive takes over the
 * open poll, and messages without a client become visible again at once.
 */
export function createLongPolls(forward: Forward): LongPolls {
  const open = new Map<string, Poll>();
  const abandonedPolls = new Map<string, Poll[]>();

  function receive(call: AwsCall): Promise<HttpReply> {
    const key = pollKey(call);
    const waiting = Number(call.request.WaitTimeSeconds ?? 0) > 0 ? abandonedPolls.get(key)?.shift() : undefined;
    const poll = waiting ?? { reply: forward(call.http), adopted: true };
    poll.adopted = true;
    open.set(call.invocationId, poll);
    const close = () => {
      if (open.get(call.invocationId) === poll) open.delete(call.invocationId);
    };
    poll.reply.then(close, close);
    return poll.reply;
  }

  function abandoned(call: AwsCall): boolean {
    const poll = open.get(call.invocationId);
    if (poll === undefined) return false;
    poll.adopted = false;
    const key = pollKey(call);
    const siblings = abandonedPolls.get(key) ?? [];
    abandonedPolls.set(key, [...siblings, poll]);
    poll.reply
      .then((reply) => {
        if (poll.adopted) return;
        abandonedPolls.set(
          key,
          (abandonedPolls.get(key) ?? []).filter((candidate) => candidate !== poll),
        );
        undelivered(call, reply);
      })
      .catch(() => {});
    return true;
  }

  function undelivered(call: AwsCall, reply: HttpReply): void {
    if (reply.status !== 200) return;
    const { Messages = [] } = JSON.parse(reply.body.toString()) as { Messages?: { readonly ReceiptHandle: string }[] };
    if (Messages.length === 0) return;
    const Entries = Messages.map(({ ReceiptHandle }, index) => ({
      Id: `${index}`,
      ReceiptHandle,
      VisibilityTimeout: 0,
    }));
    const http = withBody(call, { QueueUrl: call.request.QueueUrl, Entries });
    const headers = { ...http.headers, "x-amz-target": "AmazonSQS.ChangeMessageVisibilityBatch" };
    forward({ ...http, headers }).catch(() => {});
  }

  return { receive, undelivered, abandoned };
}

function pollKey({ request }: AwsCall): string {
  return JSON.stringify(request);
}
