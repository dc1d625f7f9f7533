import { type Environment, type StackProps, Tags } from "aws-cdk-lib";
import { Construct } from "constructs";
import { clusterRoles } from "#infra/cluster-roles.ts";
import { concurrency } from "#infra/concurrency.ts";
import { ControlStack } from "#infra/control-stack.ts";
import { readSettings, type Settings, type StarlingSettings } from "#infra/settings.ts";
import { StateStack } from "#infra/state-stack.ts";
import { defined } from "#shared/base/defined.ts";

/** The settings of docs/settings.md, and the environment of the stacks. */
export interface StarlingProps extends StarlingSettings {
  /** Account and region of both stacks. Default: those of the command line's credentials. */
  readonly env?: Environment;
}

/** The two stacks of an installation. */
export interface StarlingStacks {
  readonly state: StateStack;
  readonly control: ControlStack;
}

/**
 * An installation of Starling in another CDK app. It adds two stacks to the app, `<installation>-state` and
 * `<installation>-control`, the same as in Starling's own app.
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

  constructor(scope: Construct, id: string, { env, ...settings }: StarlingProps = {}) {
    super(scope, id);
    // The stacks are siblings of this construct, not children. A queue's path is in the logical id of its event source. A child
    // would have another id, and CloudFormation cannot create it while the first one exists.
    const { state, control } = starlingStacks(scope, readSettings(settings), defined({ env }));
    this.state = state;
    this.control = control;
  }
}

/** Creates both stacks. Their names follow from the installation, not from the scope. */
export function starlingStacks(
  scope: Construct,
  settings: Settings,
  where: Pick<StackProps, "env"> = {},
): StarlingStacks {
  const { installation } = settings;
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
    concurrency: concurrency(settings),
    description: "Starling: functions, queues, schedule and endpoints",
  });
  for (const stack of [state, control]) Tags.of(stack).add("starling:installation", installation);
  return { state, control };
}
