/** The requests of a check of a zone: one to each service that workers use, each with a right that workers have anyway. */
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { DescribeClusterCommand } from "@aws-sdk/client-eks";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { GetSecretValueCommand } from "@aws-sdk/client-secrets-manager";
import { GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { GetCallerIdentityCommand } from "@aws-sdk/client-sts";
import type { ServiceProbe } from "#functions/apply/check/reach-service.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ServiceFinding, ZoneNeeds } from "#shared/fleet/zone-services.ts";
import type { ClusterClients, DataClients } from "#shared/lambda/cluster-clients.ts";

/** The parts of AWS that the workers of a zone use. */
export interface WorkerPlaces {
  readonly aws: ClusterClients;
  /** The same clients, or in a zone of another account or region those of the data role. */
  readonly data: DataClients;
  readonly zone: string;
  readonly table: string;
  readonly bucket: string;
  /** URL of the zone's own queue. */
  readonly queue: string;
  /** URL of the queue of `report`, which is at `home`. */
  readonly report: string;
  readonly secretPrefix: string;
}

/** The name of a blob, a secret and a cluster that do not exist. */
const nothing = "starling-zone-check";
/** A fleet in more regions is checked in that of the workers and in the first of the others. */
const mostRegions = 6;

/** The region of the workers. */
export function regionOf({ aws }: Pick<WorkerPlaces, "aws">): Promise<string> {
  return aws.sts.config.region();
}

/** @returns the probes, and findings for the regions in which EKS is not asked. */
export async function serviceProbes(
  { aws, data, zone, table, bucket, queue, report, secretPrefix }: WorkerPlaces,
  needs: ZoneNeeds,
): Promise<{ readonly probes: readonly ServiceProbe[]; readonly left: readonly ServiceFinding[] }> {
  const { sqs, sts, secrets } = aws;
  const { dynamo, s3 } = data;
  const region = await regionOf({ aws });
  const home = await s3.config.region();
  const credentials = await sts.config.credentials();
  const byArn = needs.regions.length > 0;
  const item = new GetItemCommand({ TableName: table, Key: attributes(keys.zoneCheck(zone)) });
  // A zone with clusterNames may read the inventories of its own clusters only.
  const blob = new GetObjectCommand({ Bucket: bucket, Key: `renderings/${nothing}` });
  const identity = new GetCallerIdentityCommand({});
  const secret = new GetSecretValueCommand({ SecretId: `${secretPrefix}${nothing}` });
  const { asked, left } = regionsOfEks(byArn ? needs.regions : [region], region);
  const probes = [
    { service: "dynamodb", region: home, needed: true, command: item, send: (options) => dynamo.send(item, options) },
    { service: "s3", region: home, needed: true, command: blob, send: (options) => s3.send(blob, options) },
    queueProbe(sqs, { region, url: queue }),
    // Its own region has another endpoint than that of the queues to which it reports.
    ...(home === region ? [] : [queueProbe(data.sqs, { region: home, url: report })]),
    {
      service: "sts",
      region,
      needed: byArn || data.s3 !== aws.s3,
      command: identity,
      send: (options) => sts.send(identity, options),
    },
    ...asked.map((of): ServiceProbe => {
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
  ] satisfies readonly ServiceProbe[];
  return { probes, left: left.map(notAsked) };
}

function queueProbe(sqs: SQSClient, { region, url }: { readonly region: string; readonly url: string }): ServiceProbe {
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["QueueArn"] });
  return { service: "sqs", region, needed: true, command, send: (options) => sqs.send(command, options) };
}

/** The regions of clusters, that of the workers first. */
function regionsOfEks(regions: readonly string[], own: string) {
  const ordered = [...regions.filter((each) => each === own), ...regions.filter((each) => each !== own)];
  return { asked: ordered.slice(0, mostRegions), left: ordered.slice(mostRegions) };
}

function notAsked(region: string): ServiceFinding {
  return {
    ...{ service: "eks", region, state: "skipped", needed: true, host: "-", addresses: [] },
    message: `not asked: a check asks EKS in ${mostRegions} regions at most`,
    remedy: "check a cluster of this region: `starling cluster check NAME`",
  };
}

function attributes({ pk, sk }: { readonly pk: string; readonly sk: string }) {
  return { pk: { S: pk }, sk: { S: sk } };
}
