import { App, type AppProps, Tags, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { ControlStack } from "#infra/control-stack.ts";
import { StateStack } from "#infra/state-stack.ts";

/**
 * The app with its two stacks, for no account and no region in particular. Context:
 * - `installation` (default `starling`): name of the stacks, and first part of the names of its secrets;
 * - `clusterRoles` (default `<installation>-*`): names of the IAM roles that Clusters may be reached by;
 * - `gitAllow`, `gitCa`: see functions/resolve/env.ts.
 */
export function starlingApp(props?: AppProps): { app: App; state: StateStack; control: ControlStack } {
  const app = new App(props);
  const installation = contextText(app, "installation") ?? "starling";
  const clusterRoles = contextText(app, "clusterRoles");
  const gitAllow = contextText(app, "gitAllow");
  const gitCa = contextText(app, "gitCa");
  const state = new StateStack(app, `${installation}-state`, {
    installation,
    description: "Starling: the table, the blobs, the webhook's secret and the audit log",
    terminationProtection: true,
  });
  const control = new ControlStack(app, `${installation}-control`, {
    installation,
    state,
    description: "Starling: functions, queues, schedule and endpoints",
    ...(clusterRoles === undefined ? {} : { clusterRoles }),
    ...(gitAllow === undefined ? {} : { gitAllow }),
    ...(gitCa === undefined ? {} : { gitCa }),
  });
  Tags.of(app).add("starling:installation", installation);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, state, control };
}

function contextText(app: App, key: string): string | undefined {
  const value: unknown = app.node.tryGetContext(key);
  if (value === undefined || (typeof value === "string" && value !== "")) return value;
  throw new Error(`context ${key} is ${JSON.stringify(value)}; give it a text, or leave it out`);
}
