/**
 * The properties of the resources that this machine creates. A property outside these schemas is an error, because the
 * deployed stack would differ from the tested one. Properties with `unseen` or `housekeeping` have no effect here.
 */
import * as z from "zod";

const tags = z.unknown().optional();

/** For encryption, backups, deletion protection, logs and other properties that a function cannot observe. */
const unseen = z.unknown().optional();

/** For lifetimes longer than any run of this machine, and for cleanup that the emulators do not do. */
const housekeeping = z.unknown().optional();

/** Reads `{"Ref": "X"}` as `X`. */
const refOf = z.strictObject({ Ref: z.string() }).transform(({ Ref }) => Ref);

/** Reads `{"Fn::GetAtt": ["X", "Arn"]}` as `X`. */
const arnOf = z
  .strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) })
  .transform((value) => value["Fn::GetAtt"][0]);

const keySchema = z.array(z.strictObject({ AttributeName: z.string(), KeyType: z.enum(["HASH", "RANGE"]) }));

export const tableProperties = z.strictObject({
  AttributeDefinitions: z.array(z.strictObject({ AttributeName: z.string(), AttributeType: z.enum(["S", "N", "B"]) })),
  KeySchema: keySchema,
  GlobalSecondaryIndexes: z
    .array(
      z.strictObject({
        IndexName: z.string(),
        KeySchema: keySchema,
        Projection: z.strictObject({
          ProjectionType: z.enum(["ALL", "KEYS_ONLY", "INCLUDE"]),
          NonKeyAttributes: z.array(z.string()).optional(),
        }),
      }),
    )
    .default([]),
  BillingMode: z.literal("PAY_PER_REQUEST"),
  /**
   * Exactly one region. With more regions a write appears later in the others, which this machine does not simulate.
   */
  Replicas: z.array(z.unknown()).length(1),
  SSESpecification: unseen,
  TimeToLiveSpecification: housekeeping,
  Tags: tags,
});

export const bucketProperties = z.strictObject({
  BucketEncryption: unseen,
  PublicAccessBlockConfiguration: unseen,
  VersioningConfiguration: unseen,
  LifecycleConfiguration: housekeeping,
  Tags: tags,
});

export const secretProperties = z.strictObject({ Name: z.string(), Description: z.string().optional(), Tags: tags });

export const queueProperties = z.strictObject({
  /** On this machine every resource has a name from its stack and logical id. URLs in other stacks have this name. */
  QueueName: z.string().optional().catch(undefined),
  FifoQueue: z.boolean().default(false),
  ContentBasedDeduplication: z.boolean().optional(),
  DeduplicationScope: z.enum(["queue", "messageGroup"]).optional(),
  FifoThroughputLimit: z.enum(["perQueue", "perMessageGroupId"]).optional(),
  // The defaults are those of SQS.
  VisibilityTimeout: z.int().default(30),
  MessageRetentionPeriod: z.int().default(345_600),
  DelaySeconds: z.int().default(0),
  RedrivePolicy: z.strictObject({ deadLetterTargetArn: arnOf, maxReceiveCount: z.int() }).optional(),
  /** This machine has no queues of other owners. */
  RedriveAllowPolicy: unseen,
  SqsManagedSseEnabled: unseen,
  Tags: tags,
});

export const functionProperties = z.strictObject({
  Timeout: z.int(),
  MemorySize: z.int(),
  Role: arnOf,
  /** No other functions take concurrency on this machine. */
  ReservedConcurrentExecutions: unseen,
  RecursiveLoop: z.enum(["Allow", "Terminate"]).default("Terminate"),
  Environment: z.strictObject({ Variables: z.record(z.string(), z.unknown()) }).default({ Variables: {} }),
  TenancyConfig: z.strictObject({ TenantIsolationMode: z.literal("PER_TENANT") }).optional(),
  /** The code runs in this process, from the folder in the metadata. */
  Code: unseen,
  Handler: z.literal("index.handler"),
  Runtime: z.literal("nodejs24.x"),
  Architectures: unseen,
  /** The programs of a layer must be installed on this machine. */
  Layers: unseen,
  LoggingConfig: unseen,
  /** All functions of this machine reach the loopback interface. */
  VpcConfig: unseen,
  Tags: tags,
});

/** This machine reads the names of roles by which other stacks know them, and who may assume them under such a name. */
export const roleProperties = z.object({
  RoleName: z.string().optional().catch(undefined),
  AssumeRolePolicyDocument: z.object({
    Statement: z.array(
      z.object({
        Condition: z.object({ ArnEquals: z.object({ "aws:PrincipalArn": z.unknown() }).optional() }).optional(),
      }),
    ),
  }),
});

/** This machine enforces only one permission of roles: the access to secrets. */
export const policyProperties = z.object({
  Roles: z.array(refOf),
  PolicyDocument: z.object({
    Statement: z.array(
      z.object({
        Effect: z.enum(["Allow", "Deny"]),
        /** A statement with `NotAction` has no `Action`. */
        Action: z.union([z.string(), z.array(z.string())]).default([]),
        /** One resource or a list of them. */
        Resource: z.unknown(),
      }),
    ),
  }),
});

export const eventSourceProperties = z.strictObject({
  EventSourceArn: arnOf,
  FunctionName: refOf,
  BatchSize: z.int().default(10),
  MaximumBatchingWindowInSeconds: z.int().default(0),
  // Without this setting, Lambda uses the account's concurrency.
  ScalingConfig: z.strictObject({ MaximumConcurrency: z.int() }),
  FunctionResponseTypes: z.array(z.literal("ReportBatchItemFailures")).default([]),
  Tags: tags,
});

export const routeProperties = z.strictObject({
  ApiId: unseen,
  RouteKey: z.string(),
  AuthorizationType: z.enum(["AWS_IAM", "NONE"]),
  /** Reads `integrations/<integration>`. */
  Target: z
    .strictObject({ "Fn::Join": z.tuple([z.literal(""), z.tuple([z.literal("integrations/"), refOf])]) })
    .transform((value) => value["Fn::Join"][1][1]),
});

export const integrationProperties = z.strictObject({
  ApiId: unseen,
  IntegrationType: z.literal("AWS_PROXY"),
  IntegrationUri: arnOf,
  PayloadFormatVersion: z.literal("2.0"),
});

/** The settings for asynchronous invocations of a function. */
export const eventInvokeProperties = z.strictObject({
  FunctionName: refOf,
  Qualifier: z.literal("$LATEST"),
  /** This machine does not repeat failed invocations. */
  MaximumRetryAttempts: z.literal(0),
  /** An invocation never waits for concurrency on this machine. */
  MaximumEventAgeInSeconds: unseen,
  DestinationConfig: z.strictObject({ OnFailure: z.strictObject({ Destination: arnOf }) }),
});

const unitSeconds = { minute: 60, hour: 3600, day: 86_400 } as const;

export const scheduleProperties = z.strictObject({
  ScheduleExpression: z.string().transform((expression, context) => {
    const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
    if (match === null) {
      context.addIssue(`${expression}: this machine keeps rate(...) only`);
      return z.NEVER;
    }
    return Number(match[1]) * unitSeconds[match[2] as keyof typeof unitSeconds];
  }),
  FlexibleTimeWindow: z.strictObject({ Mode: z.literal("OFF") }),
  Target: z.strictObject({
    Arn: arnOf,
    Input: z.string().optional(),
    RoleArn: unseen,
    /** For events that Lambda does not accept. This machine accepts all. */
    DeadLetterConfig: unseen,
    RetryPolicy: unseen,
  }),
});
