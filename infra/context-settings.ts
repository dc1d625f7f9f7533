import type { App } from "aws-cdk-lib";

/** Names that the CDK's command line itself writes into cdk.json and cdk.context.json. */
const commandLines = new Set(["cli-telemetry", "acknowledged-issue-numbers"]);

/**
 * The settings that an operator put into context, with `-c` or in cdk.json. Everything else belongs to the CDK: the names of its
 * flags have a namespace, `@aws-cdk/core:...` or `aws:cdk:...`.
 */
export function contextSettings(app: App): Readonly<Record<string, unknown>> {
  const context: Readonly<Record<string, unknown>> = app.node.getAllContext();
  return Object.fromEntries(Object.entries(context).filter(([name]) => !/[@:/]/.test(name) && !commandLines.has(name)));
}
