import { Annotations, Stack } from "aws-cdk-lib";
import { CfnFunction, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";

/** Lambda's limit for the variables of a function, with their names. */
const mostBytes = 4096;

/** The lengths of values that only a deployment knows: usual ones, and for names of resources those that CloudFormation makes. */
const usual: Readonly<Record<string, number>> = { "AWS::AccountId": 12, "AWS::Region": 12, "AWS::URLSuffix": 13 };
const urlStart = "https://sqs.eu-central-1.amazonaws.com/111122223333/".length;
const longestAddress = "255.255.255.255".length;
const randomEnd = "-1A2B3C4D5E6F".length;

/** Warns at each synthesis of variables that Lambda would refuse in the middle of a deployment. */
export function warnOfLargeEnvironment(lambda: LambdaFunction): void {
  const { defaultChild } = lambda.node;
  if (!(defaultChild instanceof CfnFunction)) return;
  const stack = Stack.of(lambda);
  const { variables = {} } = stack.resolve(defaultChild.environment) as { readonly variables?: object };
  const sizes = Object.entries(variables).map(([name, value]) => ({
    name,
    bytes: name.length + lengthOf(value, stack.stackName),
  }));
  const bytes = sizes.reduce((sum, each) => sum + each.bytes, 0);
  if (bytes <= mostBytes) return;
  const [first, second] = sizes.toSorted((a, b) => b.bytes - a.bytes).map((each) => `${each.name} (${each.bytes})`);
  Annotations.of(lambda).addWarningV2(
    "starling:environment",
    `the variables of function ${lambda.node.path} have about ${bytes} bytes, but Lambda takes ${mostBytes}; the longest are ${first} and ${second}: shorten the settings that they come from, such as the lists clusterNames and vpcs of setting zones`,
  );
}

function lengthOf(value: unknown, stackName: string): number {
  if (typeof value === "string") return value.length;
  const [[intrinsic, argument] = []] = Object.entries((value ?? {}) as Record<string, unknown>);
  if (intrinsic === "Fn::Join") {
    const [between, parts] = argument as [string, readonly unknown[]];
    return parts.reduce<number>((sum, part) => sum + lengthOf(part, stackName), between.length * (parts.length - 1));
  }
  const id = String(argument);
  if (intrinsic === "Ref" && id in usual) return usual[id] ?? 0;
  if (intrinsic === "Ref" && /Address\d?[0-9A-F]{8}$/.test(id)) return longestAddress;
  const name = stackName.length + 1 + id.length + randomEnd;
  return intrinsic === "Ref" && /Queue|DeadLetters/.test(id) ? urlStart + Math.min(80, name) : name;
}
