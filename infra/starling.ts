import { type Environment, type StackProps, Tags } from "aws-cdk-lib";
import { Construct } from "constructs";
import { clusterRoles } from "#infra/cluster-roles.ts";
import { concurrency } from "#infra/concurrency.ts";
import { ControlStack } from "#infra/control-stack.ts";
import { readSettings } from "#infra/read-settings.ts";
import type { Settings, StarlingSettings } from "#infra/settings.ts";
import { ZoneStack } from "#infra/starling-zone.ts";
import { StateStack } from "#infra/state-stack.ts";
import { zonesElsewhere } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { zoneParts } from "#shared/fleet/zone-parts.ts";

/** The settings of docs/settings.md, and the environment of the stacks. */
export interface StarlingProps extends StarlingSettings {
  /** Account and region of the two stacks. Default: those of the command line's credentials. */
  readonly env?: Environment;
}

/** The two stacks of an installation, and one for each zone in another account or region. */
export interface StarlingStacks {
  readonly state: StateStack;
  readonly control: ControlStack;
  readonly zones: readonly ZoneStack[];
}

/**
 * An installation of Starling in another CDK app. It adds the same stacks to the app as Starling's own app has: `<installation>-state`,
 * `<installation>-control`, and `<installation>-zone-<name>` for each zone in another account or region.
 *
 * ```ts
 * const starling = new Starling(app, "Starling", { clusters: 30, alarmTopicArn: topic.topicArn });
 * starling.control.policies.viewer.attachToRole(everybody);
 * ```
 * @throws Error that names each invalid setting and the expected value.
 */
export class Starling extends Construct implements StarlingStacks {
  readonly state: StateStack;
  readonly control: ControlStack;
  readonly zones: readonly ZoneStack[];

  constructor(scope: Construct, id: string, { env, ...settings }: StarlingProps = {}) {
    super(scope, id);
    // The stacks are siblings of this construct, not children. A queue's path is in the logical id of its event source. A child
    // would have another id, and CloudFormation cannot create it while the first one exists.
    const { state, control, zones } = starlingStacks(scope, readSettings(settings), defined({ env }));
    this.state = state;
    this.control = control;
    this.zones = zones;
  }
}

/** Creates the stacks. Their names follow from the installation, not from the scope. */
export function starlingStacks(
  scope: Construct,
  settings: Settings,
  where: Pick<StackProps, "env"> = {},
): StarlingStacks {
  const { installation } = settings;
  const ofFunctions = concurrency(settings);
  const [stateName, controlName] = [`${installation}-state`, `${installation}-control`];
  const state = new StateStack(scope, stateName, {
    ...where,
    stackName: stateName,
    installation,
    artifactReaders: settings.artifactReaders,
    description: "Starling: the table, the blobs, the webhook's secret and the audit log",
    ...defined({ webhookSecretArn: settings.webhookSecret }),
  });
  const control = new ControlStack(scope, controlName, {
    ...where,
    stackName: controlName,
    settings,
    state,
    clusterRoles: clusterRoles(settings),
    concurrency: ofFunctions,
    description: "Starling: functions, queues, schedule and endpoints",
  });
  const { home } = settings;
  const zones = zonesElsewhere(settings).flatMap((zone) => {
    const stackName = zoneParts(installation, zone.name).stack;
    const env = { account: zone.account, region: zone.region };
    const description = `Starling: the workers of zone ${zone.name}`;
    const parts = { settings, zone, concurrency: ofFunctions };
    return home === undefined ? [] : [new ZoneStack(scope, stackName, { ...parts, home, stackName, env, description })];
  });
  for (const stack of [state, control, ...zones]) Tags.of(stack).add("starling:installation", installation);
  return { state, control, zones };
}
