import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply, HttpRequest } from "#local/aws/wire/emulator-client.ts";

/**
 * `Host` header that fauxqs sees: it makes queue URLs of it and then knows a queue by that URL only, so it has to be the
 * same in every run, whatever the ports are.
 */
export const emulatorHost = "localhost:4566";

const emulatorUrl = /http:\/\/sqs\.[a-z0-9-]+\.localhost:4566\//g;
const answersWithUrls = new Set(["CreateQueue", "GetQueueUrl", "ListQueues"]);

/**
 * The call with the URL that the emulator knows the queue by. Clients are given URLs of the endpoint they asked, as SQS
 * does: their next request, which the SDK may send to the URL instead of the endpoint, then takes the same way.
 */
export function withEmulatorUrl(call: AwsCall): AwsCall {
  const { QueueUrl } = call.request;
  if (typeof QueueUrl !== "string") return call;
  const request = { ...call.request, QueueUrl: emulatorQueueUrl(QueueUrl, call.http) };
  const { service, operation, invocationId } = call;
  return { service, operation, invocationId, request, http: withBody(call, request) };
}

/** The reply with queue URLs on the host that the client asked. */
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
