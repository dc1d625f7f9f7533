import { Aws, Lazy } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type * as z from "zod";
import type { ZoneSetting } from "#infra/zone-settings.ts";
import type { ZoneNetworkKind } from "#shared/fleet/api/zone-object.ts";
import { eventSource } from "#shared/fleet/outside-event.ts";
import { dueShards } from "#shared/fleet/rows/due.ts";
import { type Partition, stateIndex } from "#shared/fleet/rows/keys.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";

/** A permission together with the environment variable that names the resource, so that neither can be forgotten. */
export interface Access {
  /** Value of the environment variable. */
  readonly value: string;
  readonly statements: readonly PolicyStatement[];
  /** Reason for wildcards in these statements. Absent if there are none. */
  readonly wildcardReason?: string;
}

/** One access for every variable of a function's environment. A missing or unknown variable does not compile. */
export type AccessFor<Env extends z.ZodObject> = { readonly [Variable in keyof z.input<Env>]: Access };

/** A resource of the state stack. */
export interface Named {
  readonly name: string;
  readonly arn: string;
}

export interface RowAccess {
  /** GetItem, BatchGetItem and Query. */
  readonly read?: readonly Partition[];
  /** PutItem: creates or replaces a row. */
  readonly put?: readonly Partition[];
  /** BatchWriteItem: writes rows without a condition. */
  readonly append?: readonly Partition[];
  /** UpdateItem: single attributes. */
  readonly update?: readonly Partition[];
  readonly delete?: readonly Partition[];
  /** ConditionCheckItem: a transaction depends on the row without changing it. */
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

/** Access to these partitions of the table only. A Scan is never granted. */
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

/** Folders of the bucket; shared/fleet/blob-keys.ts defines them. Inventories have one for each cluster. */
export type Folder =
  | "artifacts"
  | "incoming"
  | "uploads"
  | "renderings"
  | "inventories"
  | `inventories/${string}`
  | "plans";

export interface BlobAccess {
  readonly read?: readonly Folder[];
  readonly write?: readonly Folder[];
  /** Folders whose existing blobs may be stored again, without any other write. */
  readonly renew?: readonly Folder[];
}

/**
 * Access to these folders of the bucket only. A reader of a folder may also list it. Without that right, S3 answers 403 instead of
 * 404 for a key that does not exist. S3 compares the key with `s3:prefix`.
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
    // One statement for each folder, so that a copy stays in its folder.
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
      "The names of blobs are digests of their content, or random, so a grant can name only their folder.",
  };
}

/**
 * Access to the buckets that Sources may read. A bucket that was deleted can be made again by anybody under its name, so that a
 * grant counts only in the account that the setting means.
 */
export function sourceBuckets(
  entries: readonly string[],
  own: { readonly account: string; readonly partition: string },
): Access {
  const buckets = parseAllowedBuckets(entries.join(","));
  const accounts = [...new Set(buckets.map(({ account = own.account }) => account))];
  const statements = accounts.flatMap((owner) => {
    const arns = buckets
      .filter(({ account = own.account }) => account === owner)
      .map(({ name }) => `arn:${own.partition}:s3:::${name}`);
    const conditions = { StringEquals: { "aws:ResourceAccount": owner } };
    return [
      new PolicyStatement({ actions: ["s3:ListBucket"], resources: [...new Set(arns)], conditions }),
      new PolicyStatement({
        actions: ["s3:GetObject"],
        resources: [...new Set(arns)].map((arn) => `${arn}/*`),
        conditions,
      }),
    ];
  });
  return {
    value: entries.join(","),
    statements,
    wildcardReason: "A Source reads the objects that its bucket has, whose keys nobody knows before.",
  };
}

/** Access to one secret by its ARN. */
export function secretOf(arn: string): Access {
  return {
    value: arn,
    statements: [new PolicyStatement({ actions: ["secretsmanager:GetSecretValue"], resources: [arn] })],
  };
}

/** The right to see whether a secret has a value, without reading it. */
export function secretDescriptionOf(arn: string): Access {
  return {
    value: arn,
    statements: [new PolicyStatement({ actions: ["secretsmanager:DescribeSecret"], resources: [arn] })],
  };
}

/** The queues of zones, as `zoneQueues` of shared/fleet/zone-parts.ts reads them, and the right to send to each. */
export function queuesOfZones(zones: readonly QueueOfZone[]): Access {
  return {
    value: zones.map(({ zone, queue, name }) => `${zone}=${name ?? queue.queueUrl}`).join(","),
    statements: [
      rightTo(
        "sqs:SendMessage",
        zones.map(({ queue }) => queue),
      ),
    ],
  };
}

interface QueueOfZone {
  readonly zone: string;
  readonly queue: IQueue;
  /** Its name, if it is beside the queue of `home`. */
  readonly name?: string;
}

/** The same, with the right to count the dead letters. */
export function queuesAndLettersOfZones(zones: readonly QueueOfZone[], letters: readonly IQueue[]): Access {
  const { value, statements } = queuesOfZones(zones);
  return { value, statements: [...statements, rightTo("sqs:GetQueueAttributes", letters)] };
}

/** The network of each zone, with the fixed addresses that are known, as `parseZoneNetworks` reads them. */
export function networksOfZones(
  zones: readonly { readonly setting: ZoneSetting; readonly addresses: readonly string[] }[],
): Access {
  return plain(
    zones
      .map(({ setting, addresses }) => `${setting.name}=${[networkKindOf(setting), ...addresses].join("+")}`)
      .join(","),
  );
}

function networkKindOf({ vpc, subnets }: ZoneSetting): ZoneNetworkKind {
  if (vpc !== undefined) return "vpc";
  return subnets === undefined ? "none" : "subnets";
}

/** The right to count the messages of a queue, without reading them. */
export function queueLengthOf(queue: IQueue): Access {
  const statement = new PolicyStatement({ actions: ["sqs:GetQueueAttributes"], resources: [queue.queueArn] });
  return { value: queue.queueUrl, statements: [statement] };
}

function rightTo(action: string, queues: readonly IQueue[]): PolicyStatement {
  return new PolicyStatement({ actions: [action], resources: queues.map(({ queueArn }) => queueArn) });
}

/** The right to read the account's quota of Lambda. */
export function accountQuota(value: string): Access {
  return {
    value,
    statements: [new PolicyStatement({ actions: ["lambda:GetAccountSettings"], resources: ["*"] })],
    wildcardReason: "The action has no resource: it returns the quotas of the account and nothing else.",
  };
}

/** The right to put Starling's events on a bus, given by its name or ARN, and no events that look like those of others. */
export function eventsTo(bus: string): Access {
  const own = `arn:${Aws.PARTITION}:events:${Aws.REGION}:${Aws.ACCOUNT_ID}:event-bus/${bus}`;
  const statement = new PolicyStatement({
    actions: ["events:PutEvents"],
    resources: [bus.startsWith("arn:") ? bus : own],
    conditions: { "ForAllValues:StringEquals": { "events:source": [eventSource] } },
  });
  return { value: bus, statements: [statement] };
}

/** The right to assume one role. */
export function assumptionOf(roleArn: string): Access {
  return { value: roleArn, statements: [new PolicyStatement({ actions: ["sts:AssumeRole"], resources: [roleArn] })] };
}

/** The right to invoke one function. */
export function invocationOf(lambda: IFunction): Access {
  const statement = new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [lambda.functionArn] });
  return { value: lambda.functionName, statements: [statement] };
}

/**
 * The right to search the log groups of functions. Groups may be added until the template is synthesized.
 * @param derived - groups whose names the function derives.
 */
export function logsOf(groups: Readonly<Record<string, Named>>, derived: Readonly<Record<string, Named>>): Access {
  const resources = Lazy.list({ produce: () => Object.values({ ...groups, ...derived }).map(({ arn }) => arn) });
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

/** A value that needs no permission. */
export function plain(value: string): Access {
  return { value, statements: [] };
}
