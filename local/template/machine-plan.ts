/** The resources of the templates in the terms of this machine. References are physical names. */
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
  /** Roles that only the role of another stack may assume. */
  readonly assumedRoles: readonly AssumedRolePlan[];
  /** The account and the region of stacks that are elsewhere than this machine's. */
  readonly places: Places;
  /** Resources that outputs may name and that this machine does not create. */
  readonly namedOnly: readonly NamedOnly[];
}

export interface Planned {
  readonly stack: string;
  readonly logicalId: string;
  /** The physical name. A logical id is unique in one stack only. */
  readonly name: string;
}

export interface KeyPart {
  readonly AttributeName: string;
  readonly KeyType: "HASH" | "RANGE";
}

/** An account and a region of stacks. */
export interface Place {
  readonly account: string;
  readonly region: string;
}

/** By stack. */
export type Places = ReadonlyMap<string, Place>;

export interface AssumedRolePlan extends Planned {
  readonly roleName: string;
  /** The ARN of the role that may assume it, as in the template. */
  readonly principalArn: unknown;
}

/** Fields have the names of the template, which CreateTable uses, too. */
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
  /** The name in the template, where other stacks know the queue by it. */
  readonly queueName?: string;
  /** The same, where functions find its dead letters by its name. */
  readonly derivedName?: string;
  /** The place of its stack, if that is elsewhere. */
  readonly place?: Place;
  /** The dead-letter queue for messages that were received too often. */
  readonly redrive?: { readonly queue: string; readonly maxReceiveCount: number };
}

export interface FunctionPlan extends Planned {
  /** The folder below functions/. */
  readonly folder: string;
  /** The name of the function on this machine: its folder, and its zone if that is not `home`. */
  readonly functionName: string;
  /** The zone besides `home` whose clusters the function works on. */
  readonly zone?: string;
  readonly timeoutSeconds: number;
  readonly memoryMiB: number;
  /** Whether Lambda stops the function after 16 invocations in one chain of messages. */
  readonly recursiveLoop: "terminate" | "allow";
  /** Whether a sandbox serves all requests, or one tenant only. */
  readonly tenancy: "shared" | "per tenant";
  /** The place of its stack, if that is elsewhere. */
  readonly place?: Place;
  /** The name of its role. */
  readonly role: string;
  /** Patterns of the ARNs of secrets that its role may read, as in the template. */
  readonly readableSecrets: readonly unknown[];
  /** Patterns of the ARNs of secrets that its role may describe but not read. */
  readonly describableSecrets: readonly unknown[];
  /** As in the template; values may contain intrinsic functions. */
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
  /**
   * The queue that receives a record of each failed invocation. An asynchronous invocation has no caller that waits.
   */
  readonly failures?: string;
  readonly everySeconds: number;
  /** The event; `{}` when the target has no input. */
  readonly input: unknown;
}

export interface OutputPlan {
  readonly stack: string;
  readonly name: string;
  /** As in the template; the value may contain intrinsic functions. */
  readonly value: unknown;
}

export interface NamedOnly extends Planned {
  readonly type: (typeof namedOnlyTypes)[number];
}

/** The types of resources that outputs may name and that this machine does not create. */
export const namedOnlyTypes = [
  "AWS::ApiGatewayV2::Api",
  "AWS::CloudWatch::Dashboard",
  "AWS::EC2::EIP",
  "AWS::IAM::ManagedPolicy",
  "AWS::IAM::Role",
  "AWS::Logs::LogGroup",
  "AWS::SNS::Topic",
] as const;
