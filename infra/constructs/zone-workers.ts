import { Aws, Duration, Token } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { applyEnv } from "#functions/apply/env.ts";
import { assumeClusterRoles, type ClusterRoles } from "#infra/cluster-roles.ts";
import type { WorkerBounds } from "#infra/concurrency.ts";
import {
  type Access,
  type AccessFor,
  assumptionOf,
  blobsOf,
  type Named,
  plain,
  rowsOf,
} from "#infra/constructs/access.ts";
import { type Network, StarlingFunction, type TrustedRole } from "#infra/constructs/starling-function.ts";
import { WorkQueue } from "#infra/constructs/work-queue.ts";
import type { ZoneSetting } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { partitionOfZone, partitions, partitionsOfClusters } from "#shared/fleet/rows/keys.ts";

const workTime = {
  functionTimeout: Duration.minutes(5),
  // The lease of a crashed worker is over by then. Until then, the lease keeps out a second worker.
  visibilityTimeout: Duration.seconds(330),
  // Two of the receives are later checks of objects that were not ready, for which the message returns by itself.
  maxReceiveCount: 7,
};

/** The queues of a zone's workers: one for most clusters, and one for slow clusters, so that they do not take the workers of the others. */
export class ZoneQueues {
  readonly toApply: WorkQueue;
  readonly toApplySlow: WorkQueue;

  /**
   * Makes both queues with their dead letters.
   * @param names - of the queues of a zone; absent for `home`.
   * @param home - for queues that are elsewhere: the account of the installation.
   */
  constructor(
    scope: Construct,
    names: { readonly apply?: string; readonly applySlow?: string } = {},
    { home }: { readonly home?: string } = {},
  ) {
    const common = { ...workTime, ...defined({ home }) };
    this.toApply = new WorkQueue(scope, "ToApply", { ...common, ...defined({ name: names.apply }) });
    this.toApplySlow = new WorkQueue(scope, "ToApplySlow", { ...common, ...defined({ name: names.applySlow }) });
  }
}

/** The parts of the installation that workers read and write: rows, blobs, and the queues of `render` and `report`. */
export type FleetAccess = Pick<
  AccessFor<typeof applyEnv>,
  "STARLING_TABLE" | "STARLING_BUCKET" | "STARLING_QUEUE_RENDER" | "STARLING_QUEUE_REPORT"
>;

export interface FleetParts {
  readonly table: Named;
  readonly blobs: Named;
  readonly toRender: WorkQueue;
  readonly toReport: WorkQueue;
  /** Whether there are zones besides `home`, so that each zone says that its workers run. */
  readonly hasZones: boolean;
}

/** The access of one zone's workers to the installation. @param zone - with the patterns of the clusters that it may serve. */
export function fleetAccess(
  { name, clusterNames }: { readonly name: string; readonly clusterNames?: readonly string[] | undefined },
  { table, blobs, toRender, toReport, hasZones }: FleetParts,
): FleetAccess {
  const own = clusterNames?.map(partitionsOfClusters);
  const clusters = own?.map((each) => each.clusters) ?? [partitions.clusters];
  const checks = own?.map((each) => each.checks) ?? [partitions.checks];
  const ofZone = partitionOfZone(name);
  const inventories = clusterNames?.map((each) => `inventories/${each}` as const) ?? (["inventories"] as const);
  return {
    STARLING_TABLE: rowsOf(table, {
      // The owners and the freezes, because a suspend or a freeze also holds back messages that were queued before it.
      read: [...clusters, ...checks, ofZone, partitions.syncGroups, partitions.syncs, partitions.freezeState],
      put: [...clusters, ...checks, ofZone],
      update: [...clusters, ...(hasZones ? [ofZone] : [])],
      check: clusters,
    }),
    STARLING_BUCKET: blobsOf(blobs, {
      read: ["renderings", ...inventories],
      write: inventories,
      renew: ["renderings"],
    }),
    // To make lost renderings again, and to renew those that are still needed.
    STARLING_QUEUE_RENDER: toRender.send(),
    STARLING_QUEUE_REPORT: toReport.send(),
  };
}

type Served = Pick<ZoneSetting, "name" | "clusterNames">;

/** The names of clusters that zones may serve, for the environment of functions. Zones without patterns serve all. */
export function clustersOfZones(zones: readonly Served[]): { readonly STARLING_ZONE_CLUSTERS?: Access } {
  const named = zones.flatMap(({ name, clusterNames }) =>
    clusterNames === undefined ? [] : [`${name}=${clusterNames.join("+")}`],
  );
  return named.length === 0 ? {} : { STARLING_ZONE_CLUSTERS: plain(named.join(",")) };
}

export interface ZoneWorkersProps {
  readonly zone: string;
  readonly installation: string;
  /** Unlike the installation's name, it is unique across accounts and regions. */
  readonly installationId: string;
  readonly queues: ZoneQueues;
  readonly bounds: WorkerBounds;
  readonly fleet: FleetAccess;
  /** For a zone elsewhere: the role that has the access to the installation, and the installation's region. */
  readonly dataRole?: { readonly arn: string; readonly region: string };
  readonly clusterRoles: ClusterRoles;
  readonly trustedRole: TrustedRole;
  readonly codeIn?: { readonly bucket: string; readonly key: string };
  readonly network?: Network;
  /** Public addresses of the network, where they are known. */
  readonly addresses?: readonly string[];
  /** The security groups of a network that existed before. */
  readonly securityGroups?: readonly string[];
  /** The zones whose patterns of clusters the workers know: their own, and for `home` all. */
  readonly served: readonly Served[];
  /** Name of a new log group. Absent: a name of the stack. */
  readonly logName?: string;
  /** The other zones, for `home`. */
  readonly others?: readonly string[];
}

/** The workers of one zone: the function `apply` on the queues of the zone, in its network, with a role of its own. */
export class ZoneWorkers extends StarlingFunction<typeof applyEnv> {
  constructor(scope: Construct, props: ZoneWorkersProps) {
    const {
      zone,
      installation,
      queues,
      bounds,
      network,
      dataRole,
      codeIn,
      others = [],
      addresses = [],
      securityGroups = [],
    } = props;
    // How many subnets a list of another app has is known to that app only.
    const subnets =
      securityGroups.length === 0 || Token.isUnresolved(network?.subnetIds) ? [] : (network?.subnetIds ?? []);
    const secrets = `arn:${Aws.PARTITION}:secretsmanager:${Aws.REGION}:${Aws.ACCOUNT_ID}:secret:${installation}`;
    super(scope, "Apply", {
      folder: "apply",
      env: applyEnv,
      access: {
        ...props.fleet,
        STARLING_INSTALLATION: plain(props.installationId),
        STARLING_SECRET_PREFIX: plain(`${installation}/clusters/`),
        STARLING_QUEUE_APPLY: queues.toApply.ownWork(),
        STARLING_QUEUE_APPLY_SLOW: queues.toApplySlow.ownWork(),
        STARLING_ZONE: plain(zone),
        ...clustersOfZones(props.served),
        ...(others.length === 0 ? {} : { STARLING_ZONES: plain(others.join(",")) }),
        ...(addresses.length === 0 ? {} : { STARLING_ZONE_ADDRESSES: plain(addresses.join(",")) }),
        ...(securityGroups.length === 0 ? {} : { STARLING_ZONE_SECURITY_GROUPS: plain(securityGroups.join(",")) }),
        ...(subnets.length === 0 ? {} : { STARLING_ZONE_SUBNETS: plain(String(subnets.length)) }),
        ...(dataRole === undefined
          ? {}
          : { STARLING_DATA_ROLE: assumptionOf(dataRole.arn), STARLING_HOME_REGION: plain(dataRole.region) }),
      },
      namedByRows: [
        {
          action: "secretsmanager:GetSecretValue",
          arns: [`${secrets}/clusters/*`],
          reason: "Clusters name their own tokens, which are all below this prefix and hold nothing else.",
        },
        assumeClusterRoles(props.clusterRoles),
        {
          action: "eks:DescribeCluster",
          arns: [`arn:${Aws.PARTITION}:eks:*:${Aws.ACCOUNT_ID}:cluster/*`],
          reason: "Clusters of this account are registered later, in any region; reading where one is opens none.",
        },
      ],
      trustedRole: props.trustedRole,
      timeout: queues.toApply.functionTimeout,
      memoryMiB: 1024,
      inMessageCircle: true,
      ...defined({ network, codeIn, logName: props.logName }),
    });
    // A cluster's answer may crash its worker, so that each invocation works on one cluster.
    this.workOn(queues.toApply, { batchSize: 1, maxConcurrency: bounds.apply });
    this.workOn(queues.toApplySlow, { batchSize: 1, maxConcurrency: bounds.applySlow });
  }
}
