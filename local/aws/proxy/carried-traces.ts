/**
 * SQS stores the trace header of the request that sends a message, and returns it to receivers as `AWSTraceHeader`. The
 * emulator does not. Here the header travels as a hidden message attribute.
 */
import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";

const carrier = "local.AWSTraceHeader";
const systemAttribute = "AWSTraceHeader";

interface Sent {
  readonly MessageAttributes?: Readonly<Record<string, unknown>>;
}

interface Received {
  readonly MessageAttributes?: Readonly<Record<string, { readonly StringValue?: string }>>;
  readonly Attributes?: Readonly<Record<string, string>>;
}

/** A send with the trace header of its request on each message. */
export function withCarriedTrace(call: AwsCall): AwsCall {
  const header = call.http.headers["x-amzn-trace-id"];
  if (typeof header !== "string") return call;
  const carry = <T extends Sent>(message: T) => ({
    ...message,
    MessageAttributes: { ...message.MessageAttributes, [carrier]: { DataType: "String", StringValue: header } },
  });
  const request =
    call.operation === "SendMessageBatch"
      ? { ...call.request, Entries: (call.request.Entries as readonly Sent[]).map(carry) }
      : carry(call.request);
  const { service, operation, invocationId } = call;
  return { service, operation, invocationId, request, http: withBody(call, request) };
}

/** A receive reply whose messages have their trace header in the attribute that SQS uses. */
export function withShownTraces(reply: HttpReply): HttpReply {
  if (reply.status !== 200 || !reply.body.includes(carrier)) return reply;
  const { Messages = [], ...rest } = JSON.parse(reply.body.toString()) as { readonly Messages?: readonly Received[] };
  const shown = Messages.map((message) => {
    const { [carrier]: carried, ...own } = message.MessageAttributes ?? {};
    if (carried?.StringValue === undefined) return message;
    return {
      ...message,
      Attributes: { ...message.Attributes, [systemAttribute]: carried.StringValue },
      MessageAttributes: own,
    };
  });
  const body = Buffer.from(JSON.stringify({ ...rest, Messages: shown }));
  return { ...reply, headers: { ...reply.headers, "content-length": String(body.length) }, body };
}
