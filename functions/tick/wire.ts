import type { TickEnv } from "#functions/tick/env.ts";
import { everyMinute } from "#functions/tick/every-minute.ts";
import { CloudWatchAlarmReader } from "#shared/adapters/aws/cloudwatch-alarm-reader.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { embeddedMetrics, powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { knownZones } from "#shared/adapters/known-zones.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { zonedSender } from "#shared/adapters/zoned-sender.ts";
import { parseServedNames } from "#shared/fleet/served-names.ts";
import { zoneQueues } from "#shared/fleet/zone-parts.ts";
import type { AlarmClients } from "#shared/lambda/alarm-clients.ts";
import type { RowClients } from "#shared/lambda/core-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

/** Called by the scheduler; the event has no content that matters. */
export function wireTick(env: TickEnv, aws: RowClients & AlarmClients, options: WireOptions = {}): () => Promise<void> {
  const { clock = systemClock, output } = options;
  const table = new DynamoTable(aws.dynamo, env.STARLING_TABLE);
  const zones = zoneQueues(env.STARLING_ZONE_QUEUES, env.STARLING_QUEUE_APPLY);
  const served = parseServedNames(env.STARLING_ZONE_CLUSTERS);
  const queues = {
    resolve: env.STARLING_QUEUE_RESOLVE,
    render: env.STARLING_QUEUE_RENDER,
    discover: env.STARLING_QUEUE_DISCOVER,
    rollout: env.STARLING_QUEUE_ROLLOUT,
    apply: env.STARLING_QUEUE_APPLY,
  };
  const log = powertoolsLog("tick", output);
  const sender = new SqsSender(aws.sqs, queues, { urls: zones, clock, log });
  const ports = {
    table,
    sender: zonedSender(sender, { zones, served, table, zonesOf: knownZones({ table, clock }) }),
    zones: new Set(zones.keys()),
    deafZones: () => sender.deafZones(),
    alarms: new CloudWatchAlarmReader(aws.alarms),
    clock,
    log,
    metrics: embeddedMetrics("tick", env.STARLING_INSTALLATION, output),
  };
  return everyMinute(ports);
}
