import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply, HttpRequest } from "#local/aws/wire/emulator-client.ts";

/**
 * The `Host` header of all requests to fauxqs. It builds queue URLs from this header and knows a queue by its URL only.
 * So the host must be the same in every run, whatever the ports.
 */
export const emulatorHost = "localhost:4566";

const emulatorUrl = /http:\/\/sqs\.[a-z0-9-]+\.localhost:4566\//g;
const answersWithUrls = new Set(["CreateQueue", "GetQueueUrl", "ListQueues"]);

/**
 * Replaces the client's queue URL by the emulator's. Like SQS, the proxy gives clients URLs of the endpoint that they
 * called. So later requests reach the proxy even if the SDK sends them to the queue URL.
 */
export function withEmulatorUrl(call: AwsCall): AwsCall {
  const { QueueUrl } = call.request;
  if (typeof QueueUrl !== "string") return call;
  const request = { ...call.request, QueueUrl: emulatorQueueUrl(QueueUrl, call.http) };
  const { service, operation, invocationId } = call;
  return { service, operation, invocationId, request, http: withBody(call, request) };
}

/** Replaces the emulator's queue URLs in a reply by URLs of the host that the client called. */
export function toClientUrls(call: AwsCall, reply: HttpReply): HttpReply {
  if (!answersWithUrls.has(call.operation) || reply.status !== 200) return reply;
  const body = Buffer.from(reply.body.toString().replaceAll(emulatorUrl, `http://${call.http.headers.host}/`));
  return { ...reply, headers: { ...reply.headers, "content-length": body.length }, body };
}

function emulatorQueueUrl(queueUrl: string, { headers }: HttpRequest): string {
  const name = queueUrl.slice(queueUrl.lastIndexOf("/") + 1);
  const region = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(String(headers.authorization ?? ""))?.[1] ?? localRegion;
  return `http://sqs.${region}.${emulatorHost}/${localAccountId}/${name}`;
}
