import { answerCheck } from "#functions/apply/check/answer-check.ts";
import { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import type { ApplyEnv } from "#functions/apply/env.ts";
import { workCluster } from "#functions/apply/worker/work-cluster.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { embeddedMetrics, powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { SqsReturns } from "#shared/adapters/aws/sqs-returns.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { ClusterClients } from "#shared/lambda/cluster-clients.ts";
import { eachMessage, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireApply(env: ApplyEnv, aws: ClusterClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock, output } = options;
  const log = powertoolsLog("apply", output);
  const installation = env.STARLING_INSTALLATION;
  const connectorBy = (eks: EksAccess) => {
    const secrets = new SecretsManagerReader(aws.secrets, clock, { prefix: env.STARLING_SECRET_PREFIX });
    return new KubeConnector({ secrets, eks, clock, installation });
  };
  const access = new EksAccess({ sts: aws.sts, eks: aws.eks, clock, installation });
  const connector = connectorBy(access);
  const newWay = () => {
    const eks = access.withoutMemory();
    return { eks, connector: connectorBy(eks), clock };
  };
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    blobs: new S3BlobStore(aws.s3, env.STARLING_BUCKET),
    sender: new SqsSender(aws.sqs, {
      render: env.STARLING_QUEUE_RENDER,
      apply: env.STARLING_QUEUE_APPLY,
      report: env.STARLING_QUEUE_REPORT,
    }),
    clock,
    ids: randomIds,
    log,
    metrics: embeddedMetrics("apply", installation, output),
    connector,
    newAddress: (cluster: ClusterRow) => connector.newAddress(cluster),
    installation,
  };
  return sqsHandler({
    queue: "apply",
    log,
    delays: new SqsReturns(aws.sqs, env.STARLING_QUEUE_APPLY),
    work(messages, context) {
      return eachMessage(messages, ({ cluster, check, receives, sentAt }) => {
        if (check === true) return answerCheck(cluster, { table: ports.table, newWay });
        const remainingMs = context.getRemainingTimeInMillis();
        const budget = { remainingMs, receives, ...defined({ sentAt }) };
        return connector.during(() => workCluster(cluster, budget, ports));
      });
    },
  });
}
