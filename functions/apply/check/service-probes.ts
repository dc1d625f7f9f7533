/** The requests of a check of a zone: one to each service that workers use, each with a right that workers have anyway. */
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { DescribeClusterCommand } from "@aws-sdk/client-eks";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { GetSecretValueCommand } from "@aws-sdk/client-secrets-manager";
import { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { GetCallerIdentityCommand } from "@aws-sdk/client-sts";
import type { ServiceProbe } from "#functions/apply/check/reach-service.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ZoneNeeds } from "#shared/fleet/zone-services.ts";
import type { ClusterClients, DataClients } from "#shared/lambda/cluster-clients.ts";

/** The parts of AWS that the workers of a zone use. */
export interface WorkerPlaces {
  readonly aws: ClusterClients;
  /** The same clients, or in a zone of another account or region those of the data role. */
  readonly data: Pick<DataClients, "dynamo" | "s3">;
  readonly zone: string;
  readonly table: string;
  readonly bucket: string;
  /** URL of the zone's own queue. */
  readonly queue: string;
  readonly secretPrefix: string;
}

/** The name of a blob, a secret and a cluster that do not exist. */
const nothing = "starling-zone-check";
/** A fleet in more regions is checked in the first of them. */
const mostRegions = 6;

/** The region of the workers. */
export function regionOf({ aws }: Pick<WorkerPlaces, "aws">): Promise<string> {
  return aws.sts.config.region();
}

export async function serviceProbes(
  { aws, data, zone, table, bucket, queue, secretPrefix }: WorkerPlaces,
  needs: ZoneNeeds,
): Promise<readonly ServiceProbe[]> {
  const { sqs, sts, secrets } = aws;
  const { dynamo, s3 } = data;
  const region = await regionOf({ aws });
  const home = await s3.config.region();
  const credentials = await sts.config.credentials();
  const byArn = needs.regions.length > 0;
  const item = new GetItemCommand({ TableName: table, Key: attributes(keys.zoneCheck(zone)) });
  const blob = new GetObjectCommand({ Bucket: bucket, Key: `inventories/${nothing}` });
  const attributesOfQueue = new GetQueueAttributesCommand({ QueueUrl: queue, AttributeNames: ["QueueArn"] });
  const identity = new GetCallerIdentityCommand({});
  const secret = new GetSecretValueCommand({ SecretId: `${secretPrefix}${nothing}` });
  const regions = (byArn ? needs.regions : [region]).slice(0, mostRegions);
  return [
    { service: "dynamodb", region: home, needed: true, command: item, send: (options) => dynamo.send(item, options) },
    { service: "s3", region: home, needed: true, command: blob, send: (options) => s3.send(blob, options) },
    {
      ...{ service: "sqs", region, needed: true, command: attributesOfQueue },
      send: (options) => sqs.send(attributesOfQueue, options),
    },
    {
      service: "sts",
      region,
      needed: byArn || data.s3 !== aws.s3,
      command: identity,
      send: (options) => sts.send(identity, options),
    },
    ...regions.map((of): ServiceProbe => {
      const eks = aws.eks({ region: of, credentials });
      const cluster = new DescribeClusterCommand({ name: nothing });
      return {
        ...{ service: "eks", region: of, needed: byArn, command: cluster },
        send: (options) => eks.send(cluster, options),
      };
    }),
    {
      ...{ service: "secretsmanager", region, needed: needs.secrets, command: secret },
      send: (options) => secrets.send(secret, options),
    },
  ];
}

function attributes({ pk, sk }: { readonly pk: string; readonly sk: string }) {
  return { pk: { S: pk }, sk: { S: sk } };
}
