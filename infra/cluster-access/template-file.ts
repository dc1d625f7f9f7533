import { App, BootstraplessSynthesizer, CfnParameter, type IStackSynthesizer, Stack } from "aws-cdk-lib";
import { dump } from "js-yaml";

/** The note at the head of each file. */
export const written = 'Written by "node infra/bin/cluster-access.ts".';

export function yaml(value: unknown): string {
  return dump(value, { noRefs: true, lineWidth: 120 });
}

/** Adds a parameter of type String to the template. */
export type AddParameter = (
  id: string,
  description: string,
  more?: { default?: string; allowedPattern?: string; allowedValues?: string[] },
) => string;

/** A CloudFormation template for people who do not deploy with the CDK. It has parameters instead of props. */
export function templateOf(description: string, fill: (stack: Stack, parameter: AddParameter) => void): unknown {
  const app = new App({ analyticsReporting: false });
  const stack = new Stack(app, "Access", {
    // The type of its optional member includes undefined, which `exactOptionalPropertyTypes` refuses.
    synthesizer: new BootstraplessSynthesizer() as IStackSynthesizer,
    description,
  });
  fill(
    stack,
    (id, text, more = {}) => new CfnParameter(stack, id, { type: "String", description: text, ...more }).valueAsString,
  );
  return app.synth().getStackByName("Access").template;
}
