import { Stack, Validations } from "aws-cdk-lib";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IConstruct } from "constructs";

/**
 * Gives cdk-nag the reason for each wildcard resource of one statement, with the exact id of its finding. Any other wildcard
 * still fails the synthesis.
 */
export function acknowledgeWildcards(scope: IConstruct, statement: PolicyStatement, reason: string): void {
  for (const resource of statement.resources) {
    const name = flatten(Stack.of(scope).resolve(resource));
    if (name.includes("*")) Validations.of(scope).acknowledge({ id: `AwsSolutions-IAM5[Resource::${name}]`, reason });
  }
}

/** A CloudFormation value in the form that cdk-nag uses in the id of a finding. */
function flatten(value: unknown): string {
  if (typeof value === "string") return value;
  const [[intrinsic, argument] = []] = Object.entries(value as Record<string, unknown>);
  if (intrinsic === "Fn::Join") {
    const [delimiter, parts] = argument as [string, unknown[]];
    return parts.map(flatten).join(delimiter);
  }
  if (intrinsic === "Fn::GetStackOutput" || intrinsic === "Fn::If") return JSON.stringify(value);
  if (intrinsic === "Ref") return `<${String(argument)}>`;
  if (intrinsic === "Fn::GetAtt") return `<${(argument as string[]).join(".")}>`;
  throw new Error(`a policy resource uses ${String(intrinsic)}, which acknowledgements cannot name yet`);
}
