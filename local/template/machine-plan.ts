/** What the templates say is to be made, in units of this machine; references are physical names. */
export interface MachinePlan {
  readonly tables: readonly TablePlan[];
  readonly buckets: readonly Planned[];
  readonly secrets: readonly SecretPlan[];
  readonly queues: readonly QueuePlan[];
  readonly functions: readonly FunctionPlan[];
  readonly eventSources: readonly EventSourcePlan[];
  readonly routes: readonly RoutePlan[];
  readonly schedules: readonly SchedulePlan[];
  readonly outputs: readonly OutputPlan[];
  /** What outputs may name, and nothing here is made of. */
  readonly namedOnly: readonly NamedOnly[];
}

export interface Planned {
  readonly stack: string;
  readonly logicalId: string;
  /** Physical; unlike the logical id, of one stack only. */
  readonly name: string;
}

export interface KeyPart {
  readonly AttributeName: string;
  readonly KeyType: "HASH" | "RANGE";
}

/** Spelled as in the template, which is how CreateTable wants it. */
export interface TablePlan extends Planned {
  readonly AttributeDefinitions: readonly { readonly AttributeName: string; readonly AttributeType: "S" | "N" | "B" }[];
  readonly KeySchema: readonly KeyPart[];
  readonly GlobalSecondaryIndexes: readonly {
    readonly IndexName: string;
    readonly KeySchema: readonly KeyPart[];
    readonly Projection: {
      readonly ProjectionType: "ALL" | "KEYS_ONLY" | "INCLUDE";
      readonly NonKeyAttributes?: readonly string[] | undefined;
    };
  }[];
}

export interface SecretPlan extends Planned {
  readonly secretName: string;
}

export interface QueuePlan extends Planned {
  readonly fifo: boolean;
  readonly visibilityTimeoutSeconds: number;
  readonly retentionSeconds: number;
  readonly delaySeconds: number;
  readonly contentBasedDeduplication?: boolean;
  readonly deduplicationScope?: "queue" | "messageGroup";
  readonly throughputLimit?: "perQueue" | "perMessageGroupId";
  /** Where messages go that were received too often. */
  readonly redrive?: { readonly queue: string; readonly maxReceiveCount: number };
}

export interface FunctionPlan extends Planned {
  /** Below functions/; what this machine calls the function by. */
  readonly folder: string;
  readonly timeoutSeconds: number;
  readonly memoryMiB: number;
  /** Stopped after its 16th invocation in one chain of messages, or by design not. */
  readonly recursiveLoop: "terminate" | "allow";
  /** Whether a sandbox serves whoever comes, or one tenant. */
  readonly tenancy: "shared" | "per tenant";
  /** Physical name of its role. */
  readonly role: string;
  /** Patterns of the ARNs of secrets that its role may read, as in the template. */
  readonly readableSecrets: readonly unknown[];
  /** Of those that it may look at, but for their values. */
  readonly describableSecrets: readonly unknown[];
  /** As in the template: values may hold intrinsics. */
  readonly environment: Readonly<Record<string, unknown>>;
}

export interface EventSourcePlan {
  readonly queue: string;
  readonly function: string;
  readonly batchSize: number;
  readonly batchingWindowSeconds: number;
  readonly maximumConcurrency: number;
  readonly reportBatchItemFailures: boolean;
}

export interface RoutePlan {
  readonly routeKey: string;
  readonly function: string;
  readonly authorization: "iam" | "none";
}

export interface SchedulePlan extends Planned {
  readonly function: string;
  /** The queue that is told of what the function did not get done: nobody waits for its answer. */
  readonly failures?: string;
  readonly everySeconds: number;
  /** The event; `{}` when the target has no input. */
  readonly input: unknown;
}

export interface OutputPlan {
  readonly stack: string;
  readonly name: string;
  /** As in the template: it may hold intrinsics. */
  readonly value: unknown;
}

export interface NamedOnly extends Planned {
  readonly type: (typeof namedOnlyTypes)[number];
}

/** Of resources that outputs may name, and nothing here is made of. */
export const namedOnlyTypes = [
  "AWS::ApiGatewayV2::Api",
  "AWS::CloudWatch::Dashboard",
  "AWS::IAM::ManagedPolicy",
  "AWS::IAM::Role",
  "AWS::Logs::LogGroup",
  "AWS::SNS::Topic",
] as const;
