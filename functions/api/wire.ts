import type { ApiEnv } from "#functions/api/env.ts";
import { apiHandler } from "#functions/api/http/api-handler.ts";
import { AwsAccountReader } from "#shared/adapters/aws/aws-account-reader.ts";
import { CloudWatchLogReader } from "#shared/adapters/aws/cloudwatch-log-reader.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobLinks } from "#shared/adapters/aws/s3-blob-links.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { S3Uploads } from "#shared/adapters/aws/s3-uploads.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { zonedSender } from "#shared/adapters/zoned-sender.ts";
import { namedTexts } from "#shared/base/named-texts.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { defaultGuardOf } from "#shared/fleet/kinds/guard-spec.ts";
import { networkZone } from "#shared/fleet/kinds/zone-name.ts";
import { parseServedNames } from "#shared/fleet/served-names.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { besideQueue, logGroupsOf, zoneQueues } from "#shared/fleet/zone-parts.ts";
import type { ApiClients } from "#shared/lambda/api-clients.ts";
import type { HttpHandler } from "#shared/lambda/http-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireApi(env: ApiEnv, aws: ApiClients, { clock = systemClock, output }: WireOptions = {}): HttpHandler {
  const table = new DynamoTable(aws.dynamo, env.STARLING_TABLE);
  const zones = zoneQueues(env.STARLING_ZONE_QUEUES, env.STARLING_QUEUE_APPLY);
  // The logs of zones in other accounts and regions are there, and this function cannot read them.
  const { place } = besideQueue(env.STARLING_QUEUE_APPLY);
  const zonesHere = [...zones].filter(([, url]) => besideQueue(url).place === place);
  const served = parseServedNames(env.STARLING_ZONE_CLUSTERS);
  const queues = {
    resolve: env.STARLING_QUEUE_RESOLVE,
    discover: env.STARLING_QUEUE_DISCOVER,
    rollout: env.STARLING_QUEUE_ROLLOUT,
    apply: env.STARLING_QUEUE_APPLY,
  };
  const log = powertoolsLog("api", output);
  return apiHandler({
    table,
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    links: new S3BlobLinks(aws.s3, env.STARLING_BUCKET),
    uploads: new S3Uploads(aws.s3, env.STARLING_BUCKET),
    sender: zonedSender(new SqsSender(aws.sqs, queues, { urls: zones, clock, log }), { zones, served, table }),
    servedNames: served,
    zoneNetworks: parseZoneNetworks(env.STARLING_ZONE_NETWORKS, { queues: zones, served }),
    resolveZone: networkZone(env.STARLING_RESOLVE_ZONE),
    clock,
    ids: randomIds,
    log,
    logs: new CloudWatchLogReader(
      aws.logs,
      new Map([...namedTexts(env.STARLING_LOG_GROUPS), ...logGroupsOf(zonesHere)]),
    ),
    installation: env.STARLING_INSTALLATION,
    defaultGuard: defaultGuardOf(env.STARLING_GUARD),
    bucketRules: { allowed: parseAllowedBuckets(env.STARLING_SOURCE_BUCKETS ?? ""), own: env.STARLING_BUCKET },
    personalRoles: env.STARLING_PERSONAL_ROLES.split(","),
    account: new AwsAccountReader(aws),
    own: {
      webhookSecretArn: env.STARLING_WEBHOOK_SECRET,
      tickFunction: env.STARLING_TICK_FUNCTION,
      deadLetters: {
        resolve: env.STARLING_DEAD_QUEUE_RESOLVE,
        rollout: env.STARLING_DEAD_QUEUE_ROLLOUT,
        render: env.STARLING_DEAD_QUEUE_RENDER,
        apply: env.STARLING_DEAD_QUEUE_APPLY,
        applySlow: env.STARLING_DEAD_QUEUE_APPLY_SLOW,
        report: env.STARLING_DEAD_QUEUE_REPORT,
        tick: env.STARLING_DEAD_QUEUE_TICK,
        ...Object.fromEntries(
          [...zones].flatMap(([zone, url]) => {
            const { deadLetters, slowDeadLetters } = besideQueue(url);
            return [
              [`apply-${zone}`, deadLetters],
              [`applySlow-${zone}`, slowDeadLetters],
            ];
          }),
        ),
      },
      concurrency: {
        clusters: env.STARLING_CLUSTERS,
        deployedFor: env.STARLING_CONCURRENCY,
        desired: env.STARLING_CONCURRENCY_DESIRED,
      },
    },
  });
}
