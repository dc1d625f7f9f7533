/**
 * Properties of the resources that this machine makes. A property that is in none of these schemas is refused: what is
 * deployed would not be what is tested. What is `unseen` or `housekeeping` has no effect here.
 */
import * as z from "zod";

const tags = z.unknown().optional();

/** Encryption, backups, protection from deletion, logs and the like change nothing that a function can see. */
const unseen = z.unknown().optional();

/** A lifetime longer than any run of this machine, or housekeeping that the emulators do not do. */
const housekeeping = z.unknown().optional();

/** `{"Ref": "X"}` as `X`. */
const refOf = z.strictObject({ Ref: z.string() }).transform(({ Ref }) => Ref);

/** `{"Fn::GetAtt": ["X", "Arn"]}` as `X`. */
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
  /** One region: with more, writes of one are seen in another later, which nothing here does. */
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
  /** On this machine every resource is named after its stack and logical id. */
  QueueName: unseen,
  FifoQueue: z.boolean().default(false),
  ContentBasedDeduplication: z.boolean().optional(),
  DeduplicationScope: z.enum(["queue", "messageGroup"]).optional(),
  FifoThroughputLimit: z.enum(["perQueue", "perMessageGroupId"]).optional(),
  // The defaults are SQS's own.
  VisibilityTimeout: z.int().default(30),
  MessageRetentionPeriod: z.int().default(345_600),
  DelaySeconds: z.int().default(0),
  RedrivePolicy: z.strictObject({ deadLetterTargetArn: arnOf, maxReceiveCount: z.int() }).optional(),
  /** No queue of this machine is somebody else's. */
  RedriveAllowPolicy: unseen,
  SqsManagedSseEnabled: unseen,
  Tags: tags,
});

export const functionProperties = z.strictObject({
  Timeout: z.int(),
  MemorySize: z.int(),
  Role: arnOf,
  /** Nobody else's functions take anything away here. */
  ReservedConcurrentExecutions: unseen,
  RecursiveLoop: z.enum(["Allow", "Terminate"]).default("Terminate"),
  Environment: z.strictObject({ Variables: z.record(z.string(), z.unknown()) }).default({ Variables: {} }),
  TenancyConfig: z.strictObject({ TenantIsolationMode: z.literal("PER_TENANT") }).optional(),
  /** Its code runs from the folder that the metadata names, in this Node. */
  Code: unseen,
  Handler: z.literal("index.handler"),
  Runtime: z.literal("nodejs24.x"),
  Architectures: unseen,
  /** The programs of a layer are looked for on this machine. */
  Layers: unseen,
  LoggingConfig: unseen,
  Tags: tags,
});

/** Of what roles may do, only what they may read of secrets is kept to here. */
export const policyProperties = z.object({
  Roles: z.array(refOf),
  PolicyDocument: z.object({
    Statement: z.array(
      z.object({
        Effect: z.enum(["Allow", "Deny"]),
        /** A statement about everything else takes it away. */
        Action: z.union([z.string(), z.array(z.string())]).default([]),
        /** One, or a list of them. */
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
  // Without one, Lambda goes up to the account's concurrency.
  ScalingConfig: z.strictObject({ MaximumConcurrency: z.int() }),
  FunctionResponseTypes: z.array(z.literal("ReportBatchItemFailures")).default([]),
  Tags: tags,
});

export const routeProperties = z.strictObject({
  ApiId: unseen,
  RouteKey: z.string(),
  AuthorizationType: z.enum(["AWS_IAM", "NONE"]),
  /** `integrations/<integration>` */
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

/** Of a function that is invoked by somebody who does not wait. */
export const eventInvokeProperties = z.strictObject({
  FunctionName: refOf,
  Qualifier: z.literal("$LATEST"),
  /** This machine tries nothing again that failed. */
  MaximumRetryAttempts: z.literal(0),
  /** Nothing waits for a place to run in here. */
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
    /** For events that Lambda does not take over; on this machine it takes over every one. */
    DeadLetterConfig: unseen,
    RetryPolicy: unseen,
  }),
});
