import { Lazy } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type * as z from "zod";
import { dueShards } from "#shared/fleet/rows/due.ts";
import { type Partition, stateIndex } from "#shared/fleet/rows/keys.ts";

/** A permission and the name by which the function finds what it may use: one cannot be had without the other. */
export interface Access {
  /** What the environment variable holds. */
  readonly value: string;
  readonly statements: readonly PolicyStatement[];
  /** Why a resource of these statements ends in a wildcard; absent when none does. */
  readonly wildcardReason?: string;
}

/** One access for every variable of a function's environment: a missing or unknown one does not compile. */
export type AccessFor<Env extends z.ZodObject> = { readonly [Variable in keyof z.input<Env>]: Access };

/** A resource of the state stack. */
export interface Named {
  readonly name: string;
  readonly arn: string;
}

export interface RowAccess {
  /** GetItem, BatchGetItem and Query. */
  readonly read?: readonly Partition[];
  /** PutItem: creates a row or replaces the one that was read. */
  readonly put?: readonly Partition[];
  /** BatchWriteItem: rows that stand by themselves. */
  readonly append?: readonly Partition[];
  /** UpdateItem: single attributes. */
  readonly update?: readonly Partition[];
  readonly delete?: readonly Partition[];
  /** ConditionCheckItem: a transaction depends on the row and leaves it. */
  readonly check?: readonly Partition[];
  /** Query of a keys-only index. */
  readonly indexes?: readonly ("due" | "state")[];
}

const rowActions = {
  read: ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"],
  put: ["dynamodb:PutItem"],
  append: ["dynamodb:BatchWriteItem"],
  update: ["dynamodb:UpdateItem"],
  delete: ["dynamodb:DeleteItem"],
  check: ["dynamodb:ConditionCheckItem"],
} as const;

const indexPartitions = { due: dueShards, state: stateIndex.partition } as const;

/** The table, and only these partitions of it. There is no way to ask for a Scan. */
export function rowsOf(table: Named, access: RowAccess): Access {
  const statements: PolicyStatement[] = [];
  for (const verb of ["read", "put", "append", "update", "delete", "check"] as const) {
    const partitions = access[verb];
    if (partitions === undefined) continue;
    statements.push(leadingKeys(table.arn, { actions: rowActions[verb], partitions }));
  }
  for (const index of access.indexes ?? []) {
    const partitions = [indexPartitions[index]];
    statements.push(leadingKeys(`${table.arn}/index/${index}`, { actions: ["dynamodb:Query"], partitions }));
  }
  return { value: table.name, statements };
}

function leadingKeys(
  resource: string,
  grant: { readonly actions: readonly string[]; readonly partitions: readonly string[] },
): PolicyStatement {
  return new PolicyStatement({
    actions: [...grant.actions],
    resources: [resource],
    conditions: { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [...grant.partitions] } },
  });
}

/** Folders of the bucket, as shared/fleet/blob-keys.ts names them. */
export type Folder = "artifacts" | "incoming" | "renderings" | "inventories" | "plans";

export interface BlobAccess {
  readonly read?: readonly Folder[];
  readonly write?: readonly Folder[];
  /** Of those that are read: what is there may be stored once more, and nothing else may. */
  readonly renew?: readonly Folder[];
}

/**
 * The bucket, and only these folders of it. Who reads a folder may list it, because S3 answers a key that does not exist
 * with 404 only to those who may, and with 403 to all others; it holds the key that is read against `s3:prefix`.
 */
export function blobsOf(bucket: Named, access: BlobAccess): Access {
  const { read = [], write = [], renew = [] } = access;
  const keysIn = (folders: readonly Folder[]) => folders.map((folder) => `${bucket.arn}/${folder}/*`);
  const grants = [
    { action: "s3:GetObject", folders: read },
    { action: "s3:PutObject", folders: write },
  ];
  const objects = [
    ...grants
      .filter(({ folders }) => folders.length > 0)
      .map(({ action, folders }) => new PolicyStatement({ actions: [action], resources: keysIn(folders) })),
    // One for each: what is copied is of the same folder.
    ...renew.map(
      (folder) =>
        new PolicyStatement({
          actions: ["s3:PutObject"],
          resources: keysIn([folder]),
          conditions: { StringLike: { "s3:x-amz-copy-source": `${bucket.name}/${folder}/*` } },
        }),
    ),
  ];
  const listing = new PolicyStatement({
    actions: ["s3:ListBucket"],
    resources: [bucket.arn],
    conditions: { StringLike: { "s3:prefix": read.map((folder) => `${folder}/*`) } },
  });
  return {
    value: bucket.name,
    statements: read.length === 0 ? objects : [...objects, listing],
    wildcardReason:
      "Blobs are named by the digest of their content, or by chance, so a grant can name their folder only.",
  };
}

/** One secret, known by its ARN. */
export function secretOf(arn: string): Access {
  return {
    value: arn,
    statements: [new PolicyStatement({ actions: ["secretsmanager:GetSecretValue"], resources: [arn] })],
  };
}

/** Whether one secret has a value, and never which. */
export function secretDescriptionOf(arn: string): Access {
  return {
    value: arn,
    statements: [new PolicyStatement({ actions: ["secretsmanager:DescribeSecret"], resources: [arn] })],
  };
}

/** How many messages a queue has, and none of them. */
export function queueLengthOf(queue: IQueue): Access {
  const statement = new PolicyStatement({ actions: ["sqs:GetQueueAttributes"], resources: [queue.queueArn] });
  return { value: queue.queueUrl, statements: [statement] };
}

/** What Lambda says of the account as a whole: its quota. */
export function accountQuota(value: string): Access {
  return {
    value,
    statements: [new PolicyStatement({ actions: ["lambda:GetAccountSettings"], resources: ["*"] })],
    wildcardReason: "The action takes no resource: it is about the account, and says its quotas and nothing else.",
  };
}

/** One function, invoked and waited for. */
export function invocationOf(lambda: IFunction): Access {
  const statement = new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [lambda.functionArn] });
  return { value: lambda.functionName, statements: [statement] };
}

/** Log groups by function, to be looked through; they may be added until the template is made. */
export function logsOf(groups: Readonly<Record<string, Named>>): Access {
  const resources = Lazy.list({ produce: () => Object.values(groups).map(({ arn }) => arn) });
  return {
    value: Lazy.string({
      produce: () =>
        Object.entries(groups)
          .map(([name, group]) => `${name}=${group.name}`)
          .join(","),
    }),
    statements: [new PolicyStatement({ actions: ["logs:FilterLogEvents"], resources })],
  };
}

/** A value that names nothing to be permitted. */
export function plain(value: string): Access {
  return { value, statements: [] };
}
