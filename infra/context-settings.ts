import type { App } from "aws-cdk-lib";

/** What the CDK's own command line keeps in cdk.json and cdk.context.json beside what people write there. */
const commandLines = new Set(["cli-telemetry", "acknowledged-issue-numbers"]);

/**
 * What an operator has put into context, by `-c` or in cdk.json. All else that is there belongs to the CDK: its flags and
 * memories have names with a namespace, `@aws-cdk/core:...` or `aws:cdk:...`.
 */
export function contextSettings(app: App): Readonly<Record<string, unknown>> {
  const context: Readonly<Record<string, unknown>> = app.node.getAllContext();
  return Object.fromEntries(Object.entries(context).filter(([name]) => !/[@:/]/.test(name) && !commandLines.has(name)));
}
