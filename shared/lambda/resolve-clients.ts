import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { S3Client } from "@aws-sdk/client-s3";
import { type ClientOptions, type CoreClients, clientConfig, coreClients } from "#shared/lambda/core-clients.ts";

export interface RegionalClients {
  /** S3 of a region; undefined for the function's own. */
  s3In(region: string | undefined): S3Client;
}

/** The client for sending events. Only one function has it in its bundle. */
export interface EventClients {
  readonly events: EventBridgeClient;
}

/** The clients of `resolve`: Sources name buckets of any region. */
export interface ResolveClients extends CoreClients, RegionalClients, EventClients {}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function resolveClients(options?: ClientOptions<keyof CoreClients | keyof EventClients>): ResolveClients {
  return { ...coreClients(options), ...regionalClients(options), ...eventClients(options) };
}

export function eventClients(options?: ClientOptions<keyof EventClients>): EventClients {
  return { events: new EventBridgeClient(clientConfig("events", options)) };
}

export function regionalClients(options?: ClientOptions<"s3">): RegionalClients {
  const config = { ...clientConfig("s3", options), ...(options === undefined ? {} : { forcePathStyle: true }) };
  return { s3In: (region) => new S3Client(region === undefined ? config : { ...config, region }) };
}
