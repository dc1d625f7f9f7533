import { KubectlV35Layer } from "@aws-cdk/lambda-layer-kubectl-v35";
import { Aws, Duration } from "aws-cdk-lib";
import { Architecture } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { apiEnv } from "#functions/api/env.ts";
import { buildEnv } from "#functions/build/env.ts";
import { dashboardEnv } from "#functions/dashboard/env.ts";
import { discoverEnv } from "#functions/discover/env.ts";
import { renderEnv } from "#functions/render/env.ts";
import { reportEnv } from "#functions/report/env.ts";
import { resolveEnv } from "#functions/resolve/env.ts";
import { rolloutEnv } from "#functions/rollout/env.ts";
import { tickEnv } from "#functions/tick/env.ts";
import { webhookEnv } from "#functions/webhook/env.ts";
import { assumeDiscoveryRoles, type ClusterRoles } from "#infra/cluster-roles.ts";
import { type Concurrency, discoverAtOnce } from "#infra/concurrency.ts";
import {
  accountQuota,
  blobsOf,
  eventsTo,
  invocationOf,
  logsOf,
  type Named,
  networksOfZones,
  plain,
  queueLengthOf,
  queuesAndLettersOfZones,
  queuesOfZones,
  rowsOf,
  secretDescriptionOf,
  secretOf,
  sourceBuckets,
} from "#infra/constructs/access.ts";
import { ApiEntry, type ApiEntryProps } from "#infra/constructs/api-entry.ts";
import type { ApiPolicies } from "#infra/constructs/api-policies.ts";
import { awsSourceGrants } from "#infra/constructs/aws-source-grants.ts";
import { warnOfLargeEnvironment } from "#infra/constructs/environment-size.ts";
import { EveryMinute } from "#infra/constructs/every-minute.ts";
import { FleetDashboard } from "#infra/constructs/fleet-dashboard.ts";
import { FleetWatch } from "#infra/constructs/fleet-watch.ts";
import { GitCaLayer } from "#infra/constructs/git-ca-layer.ts";
import { OperationsDashboard } from "#infra/constructs/operations-dashboard.ts";
import { RepositoryEvents } from "#infra/constructs/repository-events.ts";
import { SavedQueries } from "#infra/constructs/saved-queries.ts";
import { StarlingFunction } from "#infra/constructs/starling-function.ts";
import { TickWatch } from "#infra/constructs/tick-watch.ts";
import { Watch } from "#infra/constructs/watch.ts";
import { WorkQueue } from "#infra/constructs/work-queue.ts";
import { ZoneAccess } from "#infra/constructs/zone-access.ts";
import { ZoneNetwork } from "#infra/constructs/zone-network.ts";
import { ZoneWatch } from "#infra/constructs/zone-watch.ts";
import { clustersOfZones, fleetAccess, ZoneQueues, ZoneWorkers } from "#infra/constructs/zone-workers.ts";
import { isElsewhere, type Place, type ZoneSetting } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import { homeZone, zoneInOutputs } from "#shared/fleet/kinds/zone-name.ts";
import { partitions } from "#shared/fleet/rows/keys.ts";
import { zoneParts } from "#shared/fleet/zone-parts.ts";

const ofNamespaces = [partitions.sources, partitions.syncGroups, partitions.syncs] as const;
const objects = [...ofNamespaces, partitions.discoveries] as const;
const listed = [partitions.ownerEntries, partitions.sourceEntries] as const;
const directories = [partitions.fleet, ...listed] as const;
const receivers = [partitions.receivers, partitions.receiverEntries] as const;
const whatPeopleWrite = [
  ...objects,
  ...receivers,
  partitions.clusters,
  partitions.clusterValues,
  partitions.windows,
  ...directories,
] as const;

/** A zone as the outputs of the stack describe it. */
export interface WiredZone {
  readonly name: string;
  /** The name in the form of CloudFormation's names. */
  readonly outputs: string;
  readonly roleArn: string;
  /** Public addresses from which its requests come; none for existing subnets. */
  readonly addresses: readonly string[];
}

export interface WiringProps {
  readonly installation: string;
  readonly table: Named;
  readonly blobs: Named;
  readonly webhookSecretArn: string;
  readonly audit: Named;
  readonly clusterRoles: ClusterRoles;
  readonly concurrency: Concurrency;
  /** Age in days of a revision that a stage still waits for, above which an alarm is raised. */
  readonly oldestRevisionDays: number;
  /** Repositories of AWS that Sources may read with the role of `resolve`. */
  readonly awsSources: readonly string[];
  /** Name or ARN of the bus for events, or `none`. */
  readonly eventBus: string;
  /** Private hosts and address ranges that git may be fetched from. */
  readonly gitAllow: readonly string[];
  /** The zone from whose network Sources are read. Absent: outside of every VPC. */
  readonly resolveZone?: string;
  /** Buckets that Sources may read, as in the setting. */
  readonly sourceBuckets: readonly string[];
  /** The guard of groups that have none of their own. */
  readonly guard: GuardSpec | "none";
  /** Patterns of the names of roles whose sessions have the names of people. */
  readonly personalRoles: readonly string[];
  /** The zones besides `home`. */
  readonly zones: readonly ZoneSetting[];
  /** Those of them that are in other accounts and regions, with stacks of their own. */
  readonly zonesElsewhere: readonly (ZoneSetting & Place)[];
  readonly domain?: ApiEntryProps["domain"];
  /** PEM certificates to trust for git in addition to the public authorities. */
  readonly gitCa?: string;
  /** An existing role that clusters trust. */
  readonly applyRoleArn?: string;
  /** An existing role that the roles for discovery trust. */
  readonly discoverRoleArn?: string;
}

/** Connects the functions with queues, in the order of the flow. shared/messages.ts has the messages of the queues. */
export class Wiring extends Construct {
  readonly apiUrl: string;
  readonly webhookUrl: string;
  readonly domainTarget: string | undefined;
  readonly policies: ApiPolicies;
  /** Names of the dashboards in CloudWatch. */
  readonly dashboards: { readonly fleet: string; readonly operations: string };
  /** The role that the roles for discovery must trust. */
  readonly discoverRoleArn: string;
  /** The role that reads Sources. */
  readonly resolveRoleArn: string;
  /** The role that the roles of clusters must trust, and the external id. */
  readonly caller: { readonly roleArn: string; readonly externalId: string };
  readonly zones: readonly WiredZone[];

  constructor(scope: Construct, id: string, props: WiringProps) {
    super(scope, id);
    const { table, blobs, installation } = props;
    const { bounds, clusters, quota, quotaToAskFor, reservedForTick } = props.concurrency;
    const guard = plain(props.guard === "none" ? "none" : JSON.stringify(props.guard));
    // Unlike the installation's name, it is unique across accounts and regions. Every cluster stores it.
    const installationId = `${installation}.${Aws.ACCOUNT_ID}.${Aws.REGION}`;
    const secrets = `arn:${Aws.PARTITION}:secretsmanager:${Aws.REGION}:${Aws.ACCOUNT_ID}:secret:${installation}`;

    const toDiscover = new WorkQueue(this, "ToDiscover", { functionTimeout: Duration.minutes(1) });
    const toResolve = new WorkQueue(this, "ToResolve", { functionTimeout: Duration.minutes(3) });
    const toRollout = new WorkQueue(this, "ToRollout", {
      // A planner stops itself long before, and continues in another call.
      functionTimeout: Duration.seconds(30),
      // While the message of a crashed planner is invisible, its owner is not planned. The rows' versions refuse two planners at once.
      visibilityTimeout: Duration.seconds(40),
      // A failed message returns after seconds. With this count, people have minutes to repair the cause before it is a dead letter.
      maxReceiveCount: 12,
      fifo: true,
    });
    const toRender = new WorkQueue(this, "ToRender", { functionTimeout: Duration.minutes(2) });
    const ofHome = new ZoneQueues(this);
    const { toApply, toApplySlow } = ofHome;
    const toReport = new WorkQueue(this, "ToReport", { functionTimeout: Duration.minutes(1) });
    const zones = props.zones
      .filter((setting) => !isElsewhere(setting))
      .map((setting) => {
        const { name: zone } = setting;
        const place = new Construct(this, `Zone-${zone}`);
        return {
          setting,
          place,
          network: new ZoneNetwork(place, "Network", setting),
          queues: new ZoneQueues(place, zoneParts(installation, zone)),
        };
      });
    const hasZones = props.zones.length > 0;
    const fleetParts = { table, blobs, toRender, toReport, hasZones };
    const remotes = props.zonesElsewhere.map((zone) => {
      const place = new Construct(this, `Zone-${zone.name}`);
      const fleet = { ...fleetAccess(zone, fleetParts), STARLING_QUEUE_REPORT: toReport.sendAndCheck() };
      return new ZoneAccess(place, "Access", { installation, zone, fleet });
    });
    const ofZones = hasZones ? [partitions.zones] : [];
    const zoneVpcs = props.zones.flatMap(({ name, vpcs = [] }) => vpcs.map((vpc) => `${vpc}=${name}`));
    // By the names of their functions and queues, which `home` has without a zone.
    const workOfZones = Object.fromEntries(
      zones.flatMap(({ setting: { name }, queues: { toApply, toApplySlow } }) => [
        [`apply-${name}`, toApply],
        [`applySlow-${name}`, toApplySlow],
      ]),
    );
    const lettersOfZones = mapValues(workOfZones, ({ deadLetters }) => deadLetters);
    const allLetters = [
      ...Object.values(lettersOfZones),
      ...remotes.flatMap(({ letters: { common, slow } }) => [common, slow]),
    ];
    const toApplyOfZones = [
      ...zones.map(({ setting: { name: zone }, queues: { toApply } }) => ({
        ...{ zone, queue: toApply.queue, name: zoneParts(installation, zone).apply },
      })),
      ...remotes.map(({ zone, toApply }) => ({ zone, queue: toApply })),
    ];
    const toZones = hasZones ? { STARLING_ZONE_QUEUES: queuesOfZones(toApplyOfZones) } : {};
    const servedByZones = clustersOfZones(props.zones);

    /** The log group of every function, filled when all functions exist. The function api derives those of zones. */
    const logNames: Record<string, Named> = {};
    const logNamesOfZones: Record<string, Named> = {};

    // every minute -> tick
    const tick = new StarlingFunction(this, "Tick", {
      folder: "tick",
      env: tickEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          // The directories, for the survey, and that of clusters for their zones.
          read: [
            ...objects,
            ...listed,
            ...(hasZones ? [partitions.fleet, partitions.fleetVersion, partitions.zones] : []),
            partitions.clusters,
            partitions.rollouts,
            partitions.renderings,
            partitions.pins,
          ],
          update: [
            ...objects,
            partitions.clusters,
            partitions.rollouts,
            partitions.renderings,
            partitions.pins,
            partitions.tick,
            ...ofZones,
          ],
          indexes: hasZones ? ["due", "state"] : ["due"],
        }),
        STARLING_INSTALLATION: plain(installationId),
        STARLING_QUEUE_RESOLVE: toResolve.send(),
        STARLING_QUEUE_RENDER: toRender.send(),
        STARLING_QUEUE_DISCOVER: toDiscover.send(),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
        STARLING_QUEUE_APPLY: toApply.send(),
        ...toZones,
        ...servedByZones,
      },
      namedByRows: (["cloudwatch:DescribeAlarms", "cloudwatch:DescribeAlarmHistory"] as const).map((action) => ({
        action,
        arns: ["*"],
        reason:
          "Groups name their alarms later, and CloudWatch tells of composite alarms only with a right for all alarms.",
      })),
      timeout: Duration.seconds(55),
      memoryMiB: 512,
      ...defined({ reservedConcurrency: reservedForTick }),
    });
    const everyMinute = new EveryMinute(this, "EveryMinute", tick.lambda);

    // Hosts that people name are asked from here: those of Sources, and issuers of tokens.
    const readFrom = plain(props.resolveZone ?? homeZone);
    const reading = defined({
      network: zones.find(({ setting: { name } }) => name === props.resolveZone)?.network.network,
    });

    // people, CI -> api
    const api = new StarlingFunction(this, "Api", {
      folder: "api",
      env: apiEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [
            ...whatPeopleWrite,
            partitions.fleetVersion,
            partitions.uses,
            partitions.freezeState,
            partitions.windowState,
            partitions.cordonState,
            partitions.checks,
            partitions.rollouts,
            partitions.renderings,
            partitions.events,
            partitions.revisions,
            partitions.pins,
            partitions.tick,
            partitions.zones,
            partitions.deliveries,
          ],
          put: [
            ...whatPeopleWrite,
            partitions.uses,
            partitions.repositories,
            partitions.freezeState,
            partitions.checks,
            partitions.zones,
          ],
          update: [partitions.fleetVersion, partitions.windowState, partitions.cordonState, partitions.pins],
          delete: [
            partitions.sources,
            ...receivers,
            partitions.discoveries,
            partitions.found,
            partitions.clusters,
            partitions.clusterValues,
            partitions.windows,
            partitions.fleet,
            partitions.sourceEntries,
            partitions.uses,
            partitions.repositories,
          ],
          indexes: ["due", "state"],
        }),
        // The waiting clusters are only in the planner's snapshots, and a Sync's objects only in its worker's inventory. The API
        // does not read renderings and artifacts itself: it hands out signed URLs.
        STARLING_BUCKET: blobsOf(blobs, {
          read: ["plans", "inventories", "renderings", "artifacts", "uploads"],
          write: ["uploads"],
        }),
        STARLING_QUEUE_RESOLVE: toResolve.send(),
        STARLING_QUEUE_DISCOVER: toDiscover.send(),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
        STARLING_QUEUE_APPLY: toApply.send(),
        ...(hasZones
          ? {
              // With the dead letters of both of their queues, for starling doctor.
              STARLING_ZONE_QUEUES: queuesAndLettersOfZones(toApplyOfZones, allLetters),
              STARLING_ZONE_NETWORKS: networksOfZones([
                ...zones.map(({ setting, network: { addresses } }) => ({ setting, addresses })),
                // The addresses of zones elsewhere are outputs of their own stacks.
                ...props.zonesElsewhere.map((setting) => ({ setting, addresses: [] })),
              ]),
            }
          : {}),
        ...servedByZones,
        STARLING_RESOLVE_ZONE: readFrom,
        STARLING_LOG_GROUPS: logsOf(logNames, logNamesOfZones),
        STARLING_INSTALLATION: plain(installationId),
        // For the state of the installation itself: starling doctor.
        STARLING_DEAD_QUEUE_RESOLVE: queueLengthOf(toResolve.deadLetters),
        STARLING_DEAD_QUEUE_ROLLOUT: queueLengthOf(toRollout.deadLetters),
        STARLING_DEAD_QUEUE_RENDER: queueLengthOf(toRender.deadLetters),
        STARLING_DEAD_QUEUE_APPLY: queueLengthOf(toApply.deadLetters),
        STARLING_DEAD_QUEUE_APPLY_SLOW: queueLengthOf(toApplySlow.deadLetters),
        STARLING_DEAD_QUEUE_REPORT: queueLengthOf(toReport.deadLetters),
        STARLING_DEAD_QUEUE_TICK: queueLengthOf(everyMinute.deadLetters),
        STARLING_WEBHOOK_SECRET: secretDescriptionOf(props.webhookSecretArn),
        STARLING_TICK_FUNCTION: plain(tick.lambda.functionName),
        STARLING_GUARD: guard,
        ...(props.sourceBuckets.length === 0 ? {} : { STARLING_SOURCE_BUCKETS: plain(props.sourceBuckets.join(",")) }),
        STARLING_PERSONAL_ROLES: plain(props.personalRoles.join(",")),
        STARLING_CLUSTERS: plain(String(clusters)),
        STARLING_CONCURRENCY: plain(String(quota)),
        STARLING_CONCURRENCY_DESIRED: accountQuota(String(quotaToAskFor)),
      },
      // The audit log outlives the stack.
      logGroup: props.audit,
      // An HTTP API waits 30 seconds.
      timeout: Duration.seconds(29),
      memoryMiB: 512,
    });

    const gitCa = props.gitCa === undefined ? undefined : new GitCaLayer(this, "GitCa", props.gitCa);
    const privateHosts = {
      STARLING_RESOLVE_ZONE: readFrom,
      ...(props.gitAllow.length === 0 ? {} : { STARLING_GIT_ALLOW: plain(props.gitAllow.join(",")) }),
      ...(gitCa === undefined ? {} : { STARLING_GIT_CA_FILE: plain(gitCa.file) }),
    };

    // git push -> webhook
    const webhook = new StarlingFunction(this, "Webhook", {
      folder: "webhook",
      env: webhookEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [partitions.repositories, partitions.sources, ...receivers, partitions.deliveries],
          put: [partitions.deliveries],
        }),
        STARLING_QUEUE_RESOLVE: toResolve.send(),
        STARLING_WEBHOOK_SECRET: secretOf(props.webhookSecretArn),
        STARLING_SECRET_PREFIX: plain(`${installation}/hooks/`),
        ...privateHosts,
      },
      namedByRows: [
        {
          action: "secretsmanager:GetSecretValue",
          arns: [`${secrets}/hooks/*`],
          reason: "Receivers name their own secrets, which are all below this prefix and hold nothing else.",
        },
      ],
      timeout: Duration.seconds(10),
      memoryMiB: 512,
      ...defined({ layer: gitCa?.layer }),
      ...reading,
    });
    new RepositoryEvents(this, "RepositoryEvents", webhook.lambda);
    const entry = new ApiEntry(this, "ApiEntry", {
      api: api.lambda,
      webhook: webhook.lambda,
      ...defined({ domain: props.domain }),
    });
    this.domainTarget = entry.domainTarget;
    this.apiUrl = entry.apiUrl;
    this.webhookUrl = entry.webhookUrl;
    this.policies = entry.policies;

    // -> discover: finds EKS clusters in accounts and regions
    const discover = new StarlingFunction(this, "Discover", {
      folder: "discover",
      env: discoverEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          // The owners, to notify those that select the found clusters.
          read: [
            partitions.discoveries,
            partitions.found,
            partitions.clusters,
            partitions.fleet,
            partitions.fleetVersion,
            partitions.ownerEntries,
            partitions.syncGroups,
            partitions.syncs,
          ],
          put: [partitions.discoveries, partitions.found, partitions.clusters, partitions.fleet],
          update: [partitions.discoveries, partitions.fleetVersion],
          // The ClusterDiscovery of a scan that unregisters a cluster.
          check: [partitions.discoveries],
          // Rows of clusters that no longer exist.
          delete: [partitions.found, partitions.clusters, partitions.fleet],
        }),
        STARLING_INSTALLATION: plain(installationId),
        STARLING_REGION: plain(Aws.REGION),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
        ...(zoneVpcs.length === 0 ? {} : { STARLING_ZONE_VPCS: plain(zoneVpcs.join(",")) }),
        ...servedByZones,
      },
      namedByRows: [assumeDiscoveryRoles(installation, props.clusterRoles)],
      trustedRole: defined({ arn: props.discoverRoleArn }),
      timeout: toDiscover.functionTimeout,
      memoryMiB: 1024,
    });
    discover.workOn(toDiscover, { batchSize: 1, maxConcurrency: discoverAtOnce });

    // -> resolve: a reference becomes a revision, and its artifact is stored
    const resolve = new StarlingFunction(this, "Resolve", {
      folder: "resolve",
      env: resolveEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [...ofNamespaces, partitions.uses, partitions.hostLimits, partitions.revisions, partitions.pins],
          put: [partitions.sources, partitions.revisions, partitions.hostLimits, partitions.pins],
          update: [partitions.pins],
          delete: [partitions.pins],
        }),
        STARLING_BUCKET: blobsOf(blobs, { read: ["artifacts", "uploads"], write: ["artifacts"] }),
        STARLING_QUEUE_RESOLVE: toResolve.send(),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
        STARLING_INSTALLATION: plain(installationId),
        STARLING_EVENT_BUS: props.eventBus === "none" ? plain("none") : eventsTo(props.eventBus),
        STARLING_SECRET_PREFIX: plain(`${installation}/git/`),
        ...(props.sourceBuckets.length === 0
          ? {}
          : {
              STARLING_SOURCE_BUCKETS: sourceBuckets(props.sourceBuckets, {
                account: Aws.ACCOUNT_ID,
                partition: Aws.PARTITION,
              }),
            }),
        ...(props.awsSources.length === 0 ? {} : { STARLING_AWS_SOURCES: plain(props.awsSources.join(",")) }),
        ...privateHosts,
      },
      namedByRows: [
        {
          action: "secretsmanager:GetSecretValue",
          arns: [`${secrets}/git/*`],
          reason: "Sources name their own credentials, which are all below this prefix and hold nothing else.",
        },
        ...awsSourceGrants(props.awsSources),
      ],
      ...defined({ layer: gitCa?.layer }),
      // LGPL: a module of its own, which whoever installs Starling can replace.
      beside: { name: "openpgp", files: ["package.json", "LICENSE", "dist/node/openpgp.mjs"] },
      timeout: toResolve.functionTimeout,
      memoryMiB: 2048,
      inMessageCircle: true,
      ...reading,
    });
    this.resolveRoleArn = resolve.roleArn;
    resolve.workOn(toResolve, { batchSize: 1, maxConcurrency: bounds.resolve });

    // -> rollout, the planner: targets and assignments
    const rollout = new StarlingFunction(this, "Rollout", {
      folder: "rollout",
      env: rolloutEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [
            ...ofNamespaces,
            partitions.clusters,
            partitions.clusterValues,
            partitions.fleet,
            partitions.fleetVersion,
            partitions.freezeState,
            partitions.windowState,
            partitions.cordonState,
            partitions.rollouts,
            partitions.renderings,
            partitions.pins,
            // Whether their workers run.
            ...ofZones,
          ],
          put: [
            partitions.syncGroups,
            partitions.syncs,
            partitions.clusters,
            partitions.rollouts,
            partitions.renderings,
          ],
          update: [partitions.clusters],
          delete: [
            partitions.syncGroups,
            partitions.syncs,
            partitions.clusters,
            partitions.rollouts,
            partitions.ownerEntries,
            partitions.uses,
          ],
          check: [partitions.syncGroups, partitions.syncs, partitions.clusters, partitions.fleet],
          indexes: ["state"],
        }),
        STARLING_BUCKET: blobsOf(blobs, {
          read: ["plans", "artifacts"],
          write: ["plans"],
          // The artifacts of its rollouts, without reading them.
          renew: ["artifacts"],
        }),
        STARLING_INSTALLATION: plain(installationId),
        STARLING_GUARD: guard,
        STARLING_QUEUE_ROLLOUT: toRollout.ownWork(),
        STARLING_QUEUE_RENDER: toRender.send(),
        STARLING_QUEUE_APPLY: toApply.send(),
        ...toZones,
        ...servedByZones,
        STARLING_QUEUE_REPORT: toReport.send(),
      },
      timeout: toRollout.functionTimeout,
      // This much memory gives a whole processor, because the snapshot of ten thousand clusters is taken in one step.
      memoryMiB: 1769,
      inMessageCircle: true,
    });
    rollout.workOn(toRollout, { batchSize: 10, maxConcurrency: bounds.rollout });

    // render -> build: renders an artifact, without any permission
    const build = new StarlingFunction(this, "Build", {
      folder: "build",
      env: buildEnv,
      access: {},
      // `render` waits for it.
      timeout: Duration.seconds(100),
      memoryMiB: 1769,
      layer: new KubectlV35Layer(this, "Kubectl"),
      // The layer has only x86-64 binaries, and does not declare it.
      architecture: Architecture.X86_64,
      confined: true,
    });

    // rollout <-> render: manages requests and stored renderings; it reads no content of a repository
    const render = new StarlingFunction(this, "Render", {
      folder: "render",
      env: renderEnv,
      access: {
        STARLING_TABLE: rowsOf(table, { read: [partitions.renderings], put: [partitions.renderings] }),
        STARLING_BUCKET: blobsOf(blobs, {
          // For signed URLs, with which `build` reads artifacts and writes incoming renderings.
          read: ["artifacts", "incoming", "renderings"],
          write: ["incoming", "renderings"],
          renew: ["artifacts"],
        }),
        // To fetch lost artifacts again.
        STARLING_QUEUE_RESOLVE: toResolve.send(),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
        STARLING_BUILD_FUNCTION: invocationOf(build.lambda),
        STARLING_RENDER_CONCURRENCY: plain(String(bounds.render)),
      },
      timeout: toRender.functionTimeout,
      memoryMiB: 512,
      inMessageCircle: true,
    });
    render.workOn(toRender, { batchSize: 1, maxConcurrency: bounds.render });

    // rollout -> apply: one cluster's worker, of which each zone has its own
    const ofEachZone = (zone: Pick<ZoneSetting, "name" | "clusterNames">) => ({
      ...{ zone: zone.name, installation, installationId, clusterRoles: props.clusterRoles },
      bounds: props.concurrency.boundsOfZone(zone.name),
      fleet: fleetAccess(zone, fleetParts),
    });
    const apply = new ZoneWorkers(this, {
      ...ofEachZone({ name: homeZone }),
      queues: ofHome,
      served: props.zones,
      others: props.zones.map(({ name }) => name),
      trustedRole: defined({ arn: props.applyRoleArn }),
    });
    const zoneWorkers = zones.map(({ setting, place, network: { network, addresses }, queues }) => {
      const worker = new ZoneWorkers(place, {
        ...ofEachZone(setting),
        logName: zoneParts(installation, setting.name).log,
        ...{ queues, network, addresses, trustedRole: defined({ arn: setting.role }), served: [setting] },
        ...defined({ securityGroups: setting.securityGroups }),
      });
      return { name: setting.name, queues, worker, addresses };
    });
    this.zones = [
      ...zoneWorkers.map(({ name, worker, addresses }) => ({
        ...{ name, outputs: zoneInOutputs(name), roleArn: worker.roleArn, addresses },
      })),
      ...remotes.map(({ zone, workerRoleArn }) => ({
        ...{ name: zone, outputs: zoneInOutputs(zone), roleArn: workerRoleArn, addresses: [] },
      })),
    ];
    // These put clusters into zones. Workers of `home` that do not know a zone yet would report it as unknown.
    for (const { lambda } of hasZones ? [api, discover] : [])
      lambda.node.addDependency(apply.lambda, ...zoneWorkers.map(({ worker }) => worker.lambda));
    this.discoverRoleArn = discover.roleArn;
    this.caller = { roleArn: apply.roleArn, externalId: externalIdOf(installationId, "<name of the Cluster>") };

    // apply, rollout -> report: events, metrics, and a message to the planner
    const report = new StarlingFunction(this, "Report", {
      folder: "report",
      env: reportEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [partitions.clusters, partitions.rollouts],
          append: [partitions.events],
        }),
        STARLING_INSTALLATION: plain(installationId),
        STARLING_QUEUE_ROLLOUT: toRollout.send(),
      },
      timeout: toReport.functionTimeout,
      memoryMiB: 512,
      inMessageCircle: true,
    });
    report.workOn(toReport, { batchSize: 100, maxConcurrency: bounds.report, batchWindow: Duration.seconds(1) });

    // CloudWatch dashboard -> dashboard: draws the rows, with rights of its own
    const dashboard = new StarlingFunction(this, "Dashboard", {
      folder: "dashboard",
      env: dashboardEnv,
      access: {
        STARLING_TABLE: rowsOf(table, {
          read: [
            ...ofNamespaces,
            ...receivers,
            partitions.deliveries,
            ...directories,
            partitions.clusters,
            partitions.clusterValues,
            partitions.windows,
            partitions.freezeState,
            partitions.windowState,
            partitions.cordonState,
            partitions.rollouts,
            partitions.renderings,
            partitions.events,
            partitions.revisions,
            partitions.pins,
            partitions.zones,
          ],
          indexes: ["state"],
        }),
        STARLING_BUCKET: blobsOf(blobs, { read: ["plans", "inventories"] }),
        STARLING_INSTALLATION: plain(installationId),
      },
      // The CloudWatch console waits no longer for a widget.
      timeout: Duration.seconds(20),
      memoryMiB: 1024,
    });
    this.policies.allowReading(dashboard.lambda);

    const queues = {
      Discover: toDiscover,
      Resolve: toResolve,
      Rollout: toRollout,
      Render: toRender,
      Apply: toApply,
      ApplySlow: toApplySlow,
      Report: toReport,
    };
    const first = { api: api.lambda, webhook: webhook.lambda, tick: tick.lambda };
    const functions = { api, webhook, tick, discover, resolve, rollout, render, build, apply, report, dashboard };
    const workersOfZones = Object.fromEntries(zoneWorkers.map(({ name, worker }) => [`apply-${name}`, worker]));
    const allFunctions = { ...functions, ...workersOfZones };
    const logGroups = Object.values(allFunctions).map(({ lambda }) => lambda.logGroup);
    new SavedQueries(this, "SavedQueries", { installation, logGroups });
    Object.assign(
      logNames,
      mapValues(functions, ({ logs }) => logs),
    );
    Object.assign(
      logNamesOfZones,
      mapValues(workersOfZones, ({ logs }) => logs),
    );
    for (const { lambda } of Object.values(allFunctions)) warnOfLargeEnvironment(lambda);
    new ZoneWatch(this, "ZoneWatch", {
      installationId,
      zones: zoneWorkers.map(({ name, worker, queues }) => ({ zone: name, worker: worker.lambda, queues })),
      elsewhere: remotes.map(({ zone }) => zone),
    });
    const { lag } = new TickWatch(this, "TickWatch", {
      installationId,
      tick: tick.lambda,
      deadLetters: everyMinute.deadLetters,
    });
    const fleet = new FleetWatch(this, "FleetWatch", {
      installationId,
      clusters: props.concurrency.clusters,
      hasZones,
      tableName: table.name,
      oldestRevisionDays: props.oldestRevisionDays,
    });
    const watch = new Watch(this, "Watch", {
      installationId,
      deadLetters: mapValues(queues, (queue) => queue.deadLetters),
      queues: mapValues(queues, (queue) => queue.queue),
      functions: mapValues(functions, (starlingFunction) => starlingFunction.lambda),
      first,
    });
    const fleetBoard = new FleetDashboard(this, "FleetDashboard", {
      installationId,
      dashboard: dashboard.lambda,
      targets: fleet.targets,
      ages: fleet.ages,
    });
    const operations = new OperationsDashboard(this, "OperationsDashboard", {
      installationId,
      deadLetters: { ...mapValues(queues, (queue) => queue.deadLetters), ...lettersOfZones },
      queues: mapValues({ ...queues, ...workOfZones }, (queue) => queue.queue),
      functions: mapValues(allFunctions, (starlingFunction) => starlingFunction.lambda),
      lag,
      newerRows: watch.newerRows,
      writeUnits: fleet.writeUnits,
      tableName: table.name,
    });
    this.dashboards = { fleet: fleetBoard.name, operations: operations.name };
  }
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
