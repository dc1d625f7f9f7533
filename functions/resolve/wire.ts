import type { ResolveEnv } from "#functions/resolve/env.ts";
import { resolveSource } from "#functions/resolve/resolve.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { EventBridgeBus } from "#shared/adapters/aws/event-bridge-bus.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { readCertificates } from "#shared/adapters/git/read-certificates.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { readFromZone } from "#shared/adapters/net/read-from-zone.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { networkZone } from "#shared/fleet/kinds/zone-name.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import type { ResolveClients } from "#shared/lambda/resolve-clients.ts";
import { eachMessage, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import { awsGrant } from "#shared/source/aws-place.ts";

export function wireResolve(env: ResolveEnv, aws: ResolveClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock, output } = options;
  const log = powertoolsLog("resolve", output);
  const guard = {
    rules: addressRules(env.STARLING_GIT_ALLOW ?? ""),
    ...defined({ ca: readCertificates(env.STARLING_GIT_CA_FILE) }),
  };
  const remotes = {
    git: new IsomorphicGitRemote(guard),
    http: new GuardedHttpRemote(guard),
    buckets: new S3BucketReader((region) => aws.s3In(region)),
  };
  const ports = {
    ...readFromZone(remotes, networkZone(env.STARLING_RESOLVE_ZONE)),
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: new SqsSender(aws.sqs, { rollout: env.STARLING_QUEUE_ROLLOUT, resolve: env.STARLING_QUEUE_RESOLVE }),
    bucketRules: { allowed: parseAllowedBuckets(env.STARLING_SOURCE_BUCKETS ?? ""), own: env.STARLING_BUCKET },
    secrets: new SecretsManagerReader(aws.secrets, clock, { prefix: env.STARLING_SECRET_PREFIX }),
    role: {
      // The client of any service has them: those of the function's role.
      credentials: () => aws.secrets.config.credentials(),
      grants: (env.STARLING_AWS_SOURCES ?? "").split(",").filter(Boolean).map(awsGrant),
    },
    events:
      env.STARLING_EVENT_BUS === "none"
        ? undefined
        : {
            bus: new EventBridgeBus(aws.events, env.STARLING_EVENT_BUS, clock),
            installation: env.STARLING_INSTALLATION,
          },
    clock,
    ids: randomIds,
    log,
  };
  return sqsHandler({
    queue: "resolve",
    log,
    work: (messages, context) => eachMessage(messages, (message) => resolveSource(message, ports, context)),
  });
}
