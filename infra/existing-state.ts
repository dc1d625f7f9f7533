import { Aws, Token } from "aws-cdk-lib";
import type { Named } from "#infra/constructs/access.ts";
import type { Settings } from "#infra/settings.ts";
import { defined } from "#shared/base/defined.ts";

/** An existing table and bucket that are used instead of those of the state stack. */
export function existingState({ table, bucket }: Settings): { readonly table?: Named; readonly blobs?: Named } {
  return defined({
    table: table === undefined ? undefined : tableNamed(table),
    blobs: bucket === undefined ? undefined : { name: bucket, arn: `arn:${Aws.PARTITION}:s3:::${bucket}` },
  });
}

function tableNamed(nameOrArn: string): Named {
  const [, name] = Token.isUnresolved(nameOrArn) ? [] : nameOrArn.split(":table/");
  if (name !== undefined) return { name, arn: nameOrArn };
  const arn = `arn:${Aws.PARTITION}:dynamodb:${Aws.REGION}:${Aws.ACCOUNT_ID}:table/${nameOrArn}`;
  return { name: nameOrArn, arn };
}
