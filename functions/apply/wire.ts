import { answerCheck } from "#functions/apply/check/answer-check.ts";
import { answerZoneCheck } from "#functions/apply/check/answer-zone-check.ts";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import { clientsForData } from "#functions/apply/data-session.ts";
import type { ApplyEnv } from "#functions/apply/env.ts";
import { unlessRefused } from "#functions/apply/worker/unless-refused.ts";
import { type Lane, workCluster } from "#functions/apply/worker/work-cluster.ts";
import { zonePulse } from "#functions/apply/worker/zone-pulse.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { embeddedMetrics, powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { SqsReturns } from "#shared/adapters/aws/sqs-returns.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { workerAddresses } from "#shared/adapters/net/address-rules.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { parseServedNames } from "#shared/fleet/served-names.ts";
import type { ClusterClients } from "#shared/lambda/cluster-clients.ts";
import {
  byQueue,
  type Delivered,
  eachMessage,
  type InvocationContext,
  type SqsHandler,
  sqsHandler,
} from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import type { QueueName } from "#shared/messages.ts";

type Woken = Delivered & { readonly cluster: string };

export function wireApply(env: ApplyEnv, aws: ClusterClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock, output } = options;
  const log = powertoolsLog("apply", output);
  const installation = env.STARLING_INSTALLATION;
  const served = parseServedNames(env.STARLING_ZONE_CLUSTERS);
  const addresses = workerAddresses(env.STARLING_CLUSTER_ALLOW ?? "");
  const connectorBy = (eks: EksAccess) => {
    const secrets = new SecretsManagerReader(aws.secrets, clock, { prefix: env.STARLING_SECRET_PREFIX });
    return new KubeConnector({ secrets, eks, clock, installation, addresses, zone: env.STARLING_ZONE, served });
  };
  const access = new EksAccess({ sts: aws.sts, eks: aws.eks, clock, installation, zone: env.STARLING_ZONE });
  const connector = connectorBy(access);
  const zone = {
    own: env.STARLING_ZONE,
    others: env.STARLING_ZONES?.split(",") ?? [],
    served,
    addresses: env.STARLING_ZONE_ADDRESSES?.split(",") ?? [],
    ...defined({ securityGroups: env.STARLING_ZONE_SECURITY_GROUPS?.split(","), subnets: env.STARLING_ZONE_SUBNETS }),
  };
  const newWay = () => {
    const eks = access.withoutMemory();
    return { eks, connector: connectorBy(eks), clock, zone };
  };
  const data = clientsForData(aws, {
    role: env.STARLING_DATA_ROLE,
    region: env.STARLING_HOME_REGION,
    zone: zone.own,
    clock,
  });
  const ports = {
    table: new DynamoTable(data.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(data.s3, env.STARLING_BUCKET),
    sender: new SqsSender((to) => (isOwnQueue(to) ? aws.sqs : data.sqs), {
      render: env.STARLING_QUEUE_RENDER,
      apply: env.STARLING_QUEUE_APPLY,
      applySlow: env.STARLING_QUEUE_APPLY_SLOW,
      report: env.STARLING_QUEUE_REPORT,
    }),
    clock,
    ids: randomIds,
    log,
    metrics: embeddedMetrics("apply", installation, output),
    connector,
    newAddress: (cluster: ClusterRow) => connector.newAddress(cluster),
    installation,
    zone,
  };
  const places = {
    ...{ aws, data, zone: zone.own, table: env.STARLING_TABLE, bucket: env.STARLING_BUCKET },
    ...{ queue: env.STARLING_QUEUE_APPLY, report: env.STARLING_QUEUE_REPORT },
    secretPrefix: env.STARLING_SECRET_PREFIX,
  };
  const pulse = zonePulse(ports);
  const serving = { zone: env.STARLING_ZONE, served, log };
  const work = async (lane: Lane, { cluster, receives, sentAt }: Woken, context: InvocationContext) => {
    await pulse();
    const budget = { remainingMs: context.getRemainingTimeInMillis(), receives, lane, ...defined({ sentAt }) };
    return unlessRefused(cluster, serving, () => connector.during(() => workCluster(cluster, budget, ports)));
  };
  return byQueue({
    [env.STARLING_QUEUE_APPLY]: sqsHandler({
      queue: "apply",
      log,
      delays: new SqsReturns(aws.sqs, env.STARLING_QUEUE_APPLY),
      work: (messages, context) =>
        eachMessage(messages, (message) =>
          message.check === undefined
            ? work("common", message, context)
            : message.check === "zone"
              ? answerZoneCheck({ table: ports.table, clock, zone, places })
              : unlessRefused(message.cluster, serving, () =>
                  answerCheck(message.cluster, { table: ports.table, newWay }),
                ),
        ),
    }),
    [env.STARLING_QUEUE_APPLY_SLOW]: sqsHandler({
      queue: "applySlow",
      log,
      delays: new SqsReturns(aws.sqs, env.STARLING_QUEUE_APPLY_SLOW),
      work: (messages, context) => eachMessage(messages, (message) => work("slow", message, context)),
    }),
  });
}

function isOwnQueue(to: QueueName): boolean {
  return to === "apply" || to === "applySlow";
}
