import { App, type AppProps, Tags, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { clusterRoles } from "#infra/cluster-roles.ts";
import { concurrency } from "#infra/concurrency.ts";
import { ControlStack } from "#infra/control-stack.ts";
import { StateStack } from "#infra/state-stack.ts";

/**
 * The app with its two stacks, for no account and no region in particular. Context:
 * - `installation` (default `starling`): name of the stacks, and first part of the names of its secrets;
 * - `clusterRoles` (default `<installation>/clusters/*`): path and name of the IAM roles that Clusters may be reached by;
 * - `clusterAccounts`, `organization`: whose roles these may be, besides Starling's own account's: see cluster-roles.ts;
 * - `clusters` (default 100), `concurrency` (default 10): size of the fleet and of the account: see concurrency.ts;
 * - `gitAllow`, `gitCa`: see functions/resolve/env.ts.
 */
export function starlingApp(props?: AppProps): { app: App; state: StateStack; control: ControlStack } {
  const app = new App(props);
  const installation = contextText(app, "installation") ?? "starling";
  const roles = clusterRoles(installation, contextTexts(app, ["clusterRoles", "clusterAccounts", "organization"]));
  const state = new StateStack(app, `${installation}-state`, {
    installation,
    description: "Starling: the table, the blobs, the webhook's secret and the audit log",
    terminationProtection: true,
  });
  const control = new ControlStack(app, `${installation}-control`, {
    installation,
    state,
    clusterRoles: roles,
    concurrency: concurrency(contextTexts(app, ["clusters", "concurrency"])),
    description: "Starling: functions, queues, schedule and endpoints",
    ...contextTexts(app, ["gitAllow", "gitCa"]),
  });
  Tags.of(app).add("starling:installation", installation);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, state, control };
}

/** Those that are given. */
function contextTexts<Key extends string>(app: App, keys: readonly Key[]): { readonly [K in Key]?: string } {
  const given: { [K in Key]?: string } = {};
  for (const key of keys) {
    const text = contextText(app, key);
    if (text !== undefined) given[key] = text;
  }
  return given;
}

function contextText(app: App, key: string): string | undefined {
  const value: unknown = app.node.tryGetContext(key);
  if (value === undefined || (typeof value === "string" && value !== "")) return value;
  throw new Error(`context ${key} is ${JSON.stringify(value)}; give it a text, or leave it out`);
}
