import { App, type AppProps, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { contextSettings } from "#infra/context-settings.ts";
import { readSettings } from "#infra/settings.ts";
import { type StarlingStacks, starlingStacks } from "#infra/starling.ts";

/**
 * The app with its two stacks, for no account and no region in particular.
 * @throws Error that names each setting in context that is wrong, and says what to write: see settings.ts.
 */
export function starlingApp(props?: AppProps): StarlingStacks & { readonly app: App } {
  const app = new App(props);
  const stacks = starlingStacks(app, readSettings(contextSettings(app)));
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, ...stacks };
}
