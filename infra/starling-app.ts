import { App, type AppProps, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { contextSettings } from "#infra/context-settings.ts";
import { readSettings } from "#infra/read-settings.ts";
import { type StarlingStacks, starlingStacks } from "#infra/starling.ts";

/**
 * The app with its two stacks, without an account and a region, and with the stacks of zones in other accounts and regions.
 * @throws Error that names each invalid setting and the expected value: see settings.ts.
 */
export function starlingApp(props?: AppProps): StarlingStacks & { readonly app: App } {
  const app = new App(props);
  const stacks = starlingStacks(app, readSettings(contextSettings(app)));
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, ...stacks };
}
