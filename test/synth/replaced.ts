/** Finds resources with state that an update of a stack would replace or delete, by comparing its templates. */
import { isDeepStrictEqual } from "node:util";

export interface StatefulResource {
  readonly Type: string;
  readonly DeletionPolicy?: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
}

export interface StackTemplate {
  readonly Resources: Readonly<Record<string, StatefulResource>>;
  readonly Outputs?: Readonly<
    Record<string, { readonly Value: unknown; readonly Export?: { readonly Name: unknown } }>
  >;
}

export type StackTemplates = Readonly<Record<string, StackTemplate>>;

/** The properties with "Update requires: Replacement" in the template reference of CloudFormation. */
export const replacing: Readonly<Record<string, readonly string[]>> = {
  "AWS::DynamoDB::GlobalTable": ["TableName", "KeySchema", "LocalSecondaryIndexes"],
  "AWS::S3::Bucket": ["BucketName"],
  "AWS::SecretsManager::Secret": ["Name"],
  "AWS::SQS::Queue": ["QueueName", "FifoQueue"],
  "AWS::IAM::Role": ["RoleName", "Path"],
  "AWS::Logs::LogGroup": ["LogGroupName"],
  "AWS::ApiGatewayV2::Api": ["ProtocolType"],
};

const keptPolicies = ["Retain", "RetainExceptOnCreate"];

/** @returns a line for each resource that `after` replaces, deletes or no longer retains, and for each changed export. */
export function replacedOrDeleted(before: StackTemplates, after: StackTemplates): readonly string[] {
  return Object.entries(before).flatMap(([stack, { Resources, Outputs = {} }]) => {
    const now = after[stack];
    if (now === undefined) return [`${stack} is no stack any more`];
    const resources = Object.entries(Resources).flatMap(([id, was]) =>
      changesOf(was, now.Resources[id]).map((change) => `${id} of ${stack} (${was.Type}) ${change}`),
    );
    const exports = Object.entries(Outputs).flatMap(([id, was]) =>
      isDeepStrictEqual(was, now.Outputs?.[id])
        ? []
        : [`${stack} exports ${String(was.Export?.Name)} otherwise, or no more`],
    );
    return [...resources, ...exports];
  });
}

function changesOf(was: StatefulResource, is: StatefulResource | undefined): readonly string[] {
  if (is === undefined) return ["is gone: its logical id has changed, or it was taken out"];
  if (is.Type !== was.Type) return [`is a ${is.Type} now`];
  const properties = (replacing[was.Type] ?? []).filter(
    (name) => !isDeepStrictEqual(was.Properties?.[name], is.Properties?.[name]),
  );
  const indexes = indexesOf(was).filter((index) => !indexesOf(is).some((other) => isDeepStrictEqual(index, other)));
  const kept = was.DeletionPolicy === undefined || keptPolicies.includes(is.DeletionPolicy ?? "");
  return [
    ...properties.map((name) => `is replaced, for another ${name}`),
    ...indexes.map((index) => `has no index ${JSON.stringify(index)}`),
    ...(kept ? [] : [`was kept when its stack is deleted, and is not: ${is.DeletionPolicy}`]),
  ];
}

function indexesOf({ Properties }: StatefulResource): readonly unknown[] {
  return (Properties?.GlobalSecondaryIndexes ?? []) as readonly unknown[];
}
