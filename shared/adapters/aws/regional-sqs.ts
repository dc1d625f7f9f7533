import { SQSClient } from "@aws-sdk/client-sqs";
import { regionOfQueue } from "#shared/base/queue-place.ts";

const others = new WeakMap<SQSClient, Map<string, SQSClient>>();

/**
 * The client for a queue, which may be of another region: the SDK sends a request to the host of the queue's URL, but
 * signs it for the region of the client, and SQS refuses a signature for another region.
 */
export async function sqsFor(client: SQSClient, queueUrl: string): Promise<SQSClient> {
  const region = regionOfQueue(queueUrl);
  if (region === undefined || region === (await client.config.region())) return client;
  const made = others.get(client) ?? new Map<string, SQSClient>();
  others.set(client, made);
  const known = made.get(region);
  if (known !== undefined) return known;
  const { credentials, requestHandler, endpoint } = client.config;
  const other = new SQSClient({ region, credentials, requestHandler, ...(endpoint === undefined ? {} : { endpoint }) });
  made.set(region, other);
  return other;
}
