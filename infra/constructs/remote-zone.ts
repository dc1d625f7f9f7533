import { Aws, Duration } from "aws-cdk-lib";
import { Dashboard, GraphWidget } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import type { ClusterRoles } from "#infra/cluster-roles.ts";
import type { WorkerBounds } from "#infra/concurrency.ts";
import { plain } from "#infra/constructs/access.ts";
import type { Network } from "#infra/constructs/starling-function.ts";
import { alarmOfZone } from "#infra/constructs/zone-watch.ts";
import { ZoneQueues, ZoneWorkers } from "#infra/constructs/zone-workers.ts";
import type { HomeSetting } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { zoneParts } from "#shared/fleet/zone-parts.ts";

export interface RemoteZoneProps {
  readonly zone: string;
  readonly installation: string;
  readonly home: HomeSetting;
  readonly clusterRoles: ClusterRoles;
  readonly bounds: WorkerBounds;
  /** Patterns of the names of the clusters that it may serve. */
  readonly clusterNames: readonly string[];
  readonly network?: Network;
  readonly addresses?: readonly string[];
  /** The security groups of a network that existed before. */
  readonly securityGroups?: readonly string[];
  readonly codeIn?: { readonly bucket: string; readonly key: string };
}

const period = Duration.minutes(5);

/**
 * The parts of a zone in its own account and region: queues, workers, their role and log, an alarm and a dashboard. They know the
 * parts of the installation by name. Every text may be a parameter of a template.
 */
export class RemoteZone extends Construct {
  readonly roleArn: string;
  readonly dashboard: string;

  constructor(scope: Construct, id: string, props: RemoteZoneProps) {
    super(scope, id);
    const { zone, installation, home, clusterNames, network, addresses, securityGroups, codeIn } = props;
    const parts = zoneParts(installation, zone);
    const queues = new ZoneQueues(this, parts, { home: home.account });
    // The names that the control stack gives its queues.
    const queueOfHome = (queue: string) =>
      plain(`https://sqs.${home.region}.${Aws.URL_SUFFIX}/${home.account}/${installation}-control-${queue}`);
    const worker = new ZoneWorkers(this, {
      ...{ zone, installation, queues, bounds: props.bounds, clusterRoles: props.clusterRoles },
      installationId: `${installation}.${home.account}.${home.region}`,
      fleet: {
        STARLING_TABLE: plain(home.table),
        STARLING_BUCKET: plain(home.bucket),
        STARLING_QUEUE_RENDER: queueOfHome("ToRender"),
        STARLING_QUEUE_REPORT: queueOfHome("ToReport"),
      },
      dataRole: { arn: `arn:${Aws.PARTITION}:iam::${home.account}:role/${parts.dataRole}`, region: home.region },
      trustedRole: { name: parts.role },
      served: [{ name: zone, clusterNames: [...clusterNames] }],
      logName: parts.log,
      ...defined({ network, addresses, securityGroups, codeIn }),
    });
    alarmOfZone(this, "Down", { zone, worker: worker.lambda, queues });
    const { toApply, toApplySlow } = queues;
    const each = [toApply, toApplySlow];
    const board = new Dashboard(this, "Dashboard", { defaultInterval: Duration.hours(3) });
    board.addWidgets(
      new GraphWidget({
        title: `Zone ${zone}: oldest message, in seconds`,
        left: each.map(({ queue }) => queue.metricApproximateAgeOfOldestMessage({ period, statistic: "Maximum" })),
      }),
      new GraphWidget({
        title: "Dead letters",
        left: each.map(({ deadLetters }) =>
          deadLetters.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" }),
        ),
      }),
      new GraphWidget({
        title: "Workers: invocations, errors and throttles",
        left: [
          worker.lambda.metricInvocations({ period, statistic: "Sum" }),
          worker.lambda.metricErrors({ period, statistic: "Sum" }),
          worker.lambda.metricThrottles({ period, statistic: "Sum" }),
        ],
      }),
    );
    this.roleArn = worker.roleArn;
    this.dashboard = board.dashboardName;
  }
}
