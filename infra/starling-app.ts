import { App, type AppProps, Tags, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { clusterRoles } from "#infra/cluster-roles.ts";
import { concurrency } from "#infra/concurrency.ts";
import { contextSettings } from "#infra/context-settings.ts";
import { ControlStack } from "#infra/control-stack.ts";
import { readSettings } from "#infra/settings.ts";
import { StateStack } from "#infra/state-stack.ts";
import { defined } from "#shared/base/defined.ts";

/**
 * The app with its two stacks, for no account and no region in particular.
 * @throws Error that names each setting in context that is wrong, and says what to write: see settings.ts.
 */
export function starlingApp(props?: AppProps): { app: App; state: StateStack; control: ControlStack } {
  const app = new App(props);
  const settings = readSettings(contextSettings(app));
  const { installation } = settings;
  const state = new StateStack(app, `${installation}-state`, {
    installation,
    description: "Starling: the table, the blobs, the webhook's secret and the audit log",
    ...defined({ webhookSecretArn: settings.webhookSecret }),
  });
  const control = new ControlStack(app, `${installation}-control`, {
    settings,
    state,
    clusterRoles: clusterRoles(settings),
    concurrency: concurrency(settings),
    description: "Starling: functions, queues, schedule and endpoints",
  });
  Tags.of(app).add("starling:installation", installation);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, state, control };
}
