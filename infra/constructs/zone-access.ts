import { Aws } from "aws-cdk-lib";
import { AccountPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { type IQueue, Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { acknowledgeWildcards } from "#infra/constructs/acknowledge-wildcards.ts";
import type { FleetAccess } from "#infra/constructs/zone-workers.ts";
import type { Place, ZoneSetting } from "#infra/zone-settings.ts";
import { deadLettersOf, zoneParts } from "#shared/fleet/zone-parts.ts";

export interface ZoneAccessProps {
  readonly installation: string;
  readonly zone: ZoneSetting & Place;
  readonly fleet: FleetAccess;
}

/**
 * The part of the installation's account in a zone of another account or region: a role that the zone's workers assume to reach rows,
 * blobs and queues of the installation, and the zone's queues, which are known by their names.
 */
export class ZoneAccess extends Construct {
  readonly zone: string;
  readonly workerRoleArn: string;
  readonly toApply: IQueue;
  /** The dead letters of its two queues. */
  readonly letters: { readonly common: IQueue; readonly slow: IQueue };

  constructor(scope: Construct, id: string, { installation, zone, fleet }: ZoneAccessProps) {
    super(scope, id);
    const { account, region, name } = zone;
    const parts = zoneParts(installation, name);
    const workers = `arn:${Aws.PARTITION}:iam::${account}:role/${parts.role}`;
    const role = new Role(this, "DataRole", {
      roleName: parts.dataRole,
      description: `Assumed by the workers of zone ${name}, which are in account ${account} and region ${region}`,
      // IAM refuses a principal that does not exist yet, so that the condition names the role of the workers.
      assumedBy: new AccountPrincipal(account).withConditions({ ArnEquals: { "aws:PrincipalArn": workers } }),
    });
    for (const { statements, wildcardReason } of Object.values(fleet)) {
      for (const statement of statements) {
        role.addToPrincipalPolicy(statement);
        if (wildcardReason !== undefined) acknowledgeWildcards(role, statement, wildcardReason);
      }
    }
    const queue = (of: string, queueName: string) =>
      Queue.fromQueueArn(this, of, `arn:${Aws.PARTITION}:sqs:${region}:${account}:${queueName}`);
    this.zone = name;
    this.workerRoleArn = workers;
    this.toApply = queue("ToApply", parts.apply);
    this.letters = {
      common: queue("DeadLetters", deadLettersOf(parts.apply)),
      slow: queue("SlowDeadLetters", deadLettersOf(parts.applySlow)),
    };
  }
}
