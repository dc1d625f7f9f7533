import { type AlarmClients, alarmClients } from "#shared/lambda/alarm-clients.ts";
import { type ClusterClients, clusterClients } from "#shared/lambda/cluster-clients.ts";
import type { ClientOptions, CoreClients } from "#shared/lambda/core-clients.ts";
import { type DiscoveryClients, listingClients } from "#shared/lambda/discovery-clients.ts";
import { type LogClients, logClients } from "#shared/lambda/log-clients.ts";
import { type RenderClients, renderClients } from "#shared/lambda/render-clients.ts";
import {
  type EventClients,
  eventClients,
  type RegionalClients,
  regionalClients,
} from "#shared/lambda/resolve-clients.ts";

/** The clients of all functions; `local/` points them at its emulators. */
export interface AwsClients
  extends ClusterClients,
    LogClients,
    AlarmClients,
    RenderClients,
    DiscoveryClients,
    RegionalClients,
    EventClients {}

export type AwsClientOptions = ClientOptions<
  keyof CoreClients | "sts" | "eks" | "lambda" | "logs" | "alarms" | "events"
>;

/** Clients for the endpoints given. */
export function awsClients(options: AwsClientOptions): AwsClients {
  return {
    ...clusterClients(options),
    ...logClients(options),
    ...alarmClients(options),
    ...renderClients(options),
    ...listingClients(options),
    ...regionalClients(options),
    ...eventClients(options),
  };
}
