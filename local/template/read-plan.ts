import type * as z from "zod";
import { physicalName, type Stacks, type Template, type TemplateResource } from "#local/template/cloudformation.ts";
import {
  type FunctionPlan,
  type MachinePlan,
  namedOnlyTypes,
  type Places,
  type Planned,
  type QueuePlan,
} from "#local/template/machine-plan.ts";
import {
  bucketProperties,
  eventInvokeProperties,
  eventSourceProperties,
  functionProperties,
  integrationProperties,
  policyProperties,
  queueProperties,
  roleProperties,
  routeProperties,
  scheduleProperties,
  secretProperties,
  tableProperties,
} from "#local/template/resource-schemas.ts";
import { defined } from "#shared/base/defined.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** The metadata with which infra/constructs/starling-function.ts names the folder of a function's code. */
const folderKey = "starling:folder";

const readSecret = "secretsmanager:GetSecretValue";
const describeSecret = "secretsmanager:DescribeSecret";

const modelled = new Set([
  "AWS::DynamoDB::GlobalTable",
  "AWS::S3::Bucket",
  "AWS::SecretsManager::Secret",
  "AWS::SQS::Queue",
  "AWS::IAM::Role",
  "AWS::IAM::Policy",
  "AWS::Lambda::Function",
  "AWS::Lambda::EventInvokeConfig",
  "AWS::Lambda::EventSourceMapping",
  "AWS::ApiGatewayV2::Route",
  "AWS::ApiGatewayV2::Integration",
  "AWS::Scheduler::Schedule",
]);

/** The end of the names of nested stacks, as the CDK names their templates. */
const nestedSuffix = ".nested";

/** Types of resources that have no counterpart on one machine. */
const withoutEffect = new Set([
  "AWS::ApiGatewayV2::Api",
  "AWS::ApiGatewayV2::Stage",
  // The networks of zones are nested stacks: all functions of this machine reach the loopback interface.
  "AWS::CloudFormation::Stack",
  "AWS::CloudWatch::Alarm",
  "AWS::CloudWatch::CompositeAlarm",
  "AWS::CloudWatch::Dashboard",
  "AWS::EC2::EIP",
  // CodeCommit and ECR, whose events they pass on, are not on this machine.
  "AWS::Events::Rule",
  "AWS::IAM::ManagedPolicy",
  "AWS::Lambda::LayerVersion",
  "AWS::Lambda::Permission",
  "AWS::Logs::LogGroup",
  "AWS::Logs::QueryDefinition",
  "AWS::S3::BucketPolicy",
  "AWS::SQS::QueuePolicy",
]);

interface Found extends Planned {
  readonly resource: TemplateResource;
}

/**
 * Reads the resources of the stacks' templates. Intrinsic functions in environments and outputs stay for
 * resolve-value.ts, because they name resources that do not exist yet. @throws Error that names an unknown resource or
 * property, or a reference without a target.
 * @param places - of the stacks that are elsewhere.
 */
export function readPlan(stacks: Stacks, places: Places = new Map()): MachinePlan {
  const whole = Object.fromEntries(Object.entries(stacks).filter(([stack]) => !stack.endsWith(nestedSuffix)));
  const found = Object.entries(whole).flatMap(([stack, template]) => resourcesOf(stack, template));
  const ofType = (type: string) => found.filter(({ resource }) => resource.Type === type);
  const target = (from: Found, type: string) => referenceFrom(from, ofType(type));
  const integrated = new Map(
    ofType("AWS::ApiGatewayV2::Integration").map((integration) => {
      const { IntegrationUri } = propertiesOf(integration, integrationProperties);
      return [integration.name, target(integration, "AWS::Lambda::Function")(IntegrationUri)];
    }),
  );
  const failures = new Map(
    ofType("AWS::Lambda::EventInvokeConfig").map((config) => {
      const { FunctionName, DestinationConfig } = propertiesOf(config, eventInvokeProperties);
      const queue = target(config, "AWS::SQS::Queue")(DestinationConfig.OnFailure.Destination);
      return [target(config, "AWS::Lambda::Function")(FunctionName), queue];
    }),
  );

  return {
    tables: ofType("AWS::DynamoDB::GlobalTable").map((table) => {
      const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes } = propertiesOf(table, tableProperties);
      return { ...identity(table), AttributeDefinitions, KeySchema, GlobalSecondaryIndexes };
    }),
    buckets: ofType("AWS::S3::Bucket").map((bucket) => {
      propertiesOf(bucket, bucketProperties);
      return { ...identity(bucket), name: bucket.name.toLowerCase() };
    }),
    secrets: ofType("AWS::SecretsManager::Secret").map((secret) => ({
      ...identity(secret),
      secretName: propertiesOf(secret, secretProperties).Name,
    })),
    queues: withDerivedNames(
      ofType("AWS::SQS::Queue").map((queue) => ({
        ...queuePlan(queue, target(queue, "AWS::SQS::Queue")),
        ...defined({ place: places.get(queue.stack) }),
      })),
    ),
    functions: ofType("AWS::Lambda::Function").map((each) => ({
      ...functionPlan(each, roleNameOf(each, ofType("AWS::IAM::Role"))),
      ...defined({ place: places.get(each.stack) }),
      readableSecrets: grantedSecrets(each, readSecret, ofType("AWS::IAM::Policy")),
      describableSecrets: grantedSecrets(each, describeSecret, ofType("AWS::IAM::Policy")),
    })),
    eventSources: ofType("AWS::Lambda::EventSourceMapping").map((source) => {
      const properties = propertiesOf(source, eventSourceProperties);
      return {
        queue: target(source, "AWS::SQS::Queue")(properties.EventSourceArn),
        function: target(source, "AWS::Lambda::Function")(properties.FunctionName),
        batchSize: properties.BatchSize,
        batchingWindowSeconds: properties.MaximumBatchingWindowInSeconds,
        maximumConcurrency: properties.ScalingConfig.MaximumConcurrency,
        reportBatchItemFailures: properties.FunctionResponseTypes.length > 0,
      };
    }),
    routes: ofType("AWS::ApiGatewayV2::Route").map((route) => {
      const { RouteKey, AuthorizationType, Target } = propertiesOf(route, routeProperties);
      const integration = target(route, "AWS::ApiGatewayV2::Integration")(Target);
      return {
        routeKey: RouteKey,
        function: integrated.get(integration) ?? "",
        authorization: AuthorizationType === "NONE" ? "none" : "iam",
      };
    }),
    schedules: ofType("AWS::Scheduler::Schedule").map((schedule) => {
      const { ScheduleExpression, Target } = propertiesOf(schedule, scheduleProperties);
      const invoked = target(schedule, "AWS::Lambda::Function")(Target.Arn);
      return {
        ...identity(schedule),
        function: invoked,
        ...defined({ failures: failures.get(invoked) }),
        everySeconds: ScheduleExpression,
        input: JSON.parse(Target.Input ?? "{}") as unknown,
      };
    }),
    outputs: Object.entries(whole).flatMap(([stack, { Outputs = {} }]) =>
      Object.entries(Outputs).map(([name, { Value }]) => ({ stack, name, value: Value })),
    ),
    assumedRoles: ofType("AWS::IAM::Role").flatMap((role) => {
      const { RoleName, AssumeRolePolicyDocument } = propertiesOf(role, roleProperties);
      const [condition] = AssumeRolePolicyDocument.Statement.flatMap(({ Condition }) => Condition?.ArnEquals ?? []);
      if (RoleName === undefined || condition === undefined) return [];
      return [{ ...identity(role), roleName: RoleName, principalArn: condition["aws:PrincipalArn"] }];
    }),
    places,
    namedOnly: namedOnlyTypes.flatMap((type) => ofType(type).map((each) => ({ ...identity(each), type }))),
  };
}

/** Names of queues matter on this machine where dead letters have a name, too: functions find them by the queue's. */
function withDerivedNames(queues: readonly QueuePlan[]): readonly QueuePlan[] {
  const nameOf = new Map(queues.map(({ name, queueName }) => [name, queueName]));
  return queues.map((queue) => {
    const { name, redrive, queueName } = queue;
    const isFound = nameOf.get(redrive === undefined ? name : redrive.queue) !== undefined;
    return isFound ? { ...queue, ...defined({ derivedName: queueName }) } : queue;
  });
}

function queuePlan(queue: Found, dead: (logicalId: string) => string): QueuePlan {
  const properties = propertiesOf(queue, queueProperties);
  const { ContentBasedDeduplication, DeduplicationScope, FifoThroughputLimit, RedrivePolicy } = properties;
  return {
    ...identity(queue),
    fifo: properties.FifoQueue,
    visibilityTimeoutSeconds: properties.VisibilityTimeout,
    retentionSeconds: properties.MessageRetentionPeriod,
    delaySeconds: properties.DelaySeconds,
    ...defined({
      contentBasedDeduplication: ContentBasedDeduplication,
      deduplicationScope: DeduplicationScope,
      throughputLimit: FifoThroughputLimit,
      queueName: properties.QueueName,
    }),
    ...(RedrivePolicy === undefined
      ? {}
      : {
          redrive: {
            queue: dead(RedrivePolicy.deadLetterTargetArn),
            maxReceiveCount: RedrivePolicy.maxReceiveCount,
          },
        }),
  };
}

/** The secrets for which the policies of a function's role grant an action. */
function grantedSecrets(found: Found, action: string, policies: readonly Found[]): readonly unknown[] {
  const role = propertiesOf(found, functionProperties).Role;
  return policies
    .filter(({ stack }) => stack === found.stack)
    .map((policy) => propertiesOf(policy, policyProperties))
    .filter(({ Roles }) => Roles.includes(role))
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
    .filter(({ Effect, Action }) => Effect === "Allow" && [Action].flat().includes(action))
    .flatMap(({ Resource }) => Resource as readonly unknown[] | object);
}

/** The name of a function's role: the one that the template gives it, or the one that this machine gives it. */
function roleNameOf(found: Found, roles: readonly Found[]): (logicalId: string) => string {
  return (logicalId) => {
    const name = referenceFrom(found, roles)(logicalId);
    const role = roles.find((each) => each.name === name);
    return (role && propertiesOf(role, roleProperties).RoleName) ?? name;
  };
}

function functionPlan(
  found: Found,
  role: (logicalId: string) => string,
): Omit<FunctionPlan, "readableSecrets" | "describableSecrets"> {
  const properties = propertiesOf(found, functionProperties);
  const folder = found.resource.Metadata?.[folderKey];
  if (typeof folder !== "string") {
    throw new Error(
      `the Metadata of ${found.name} has no ${folderKey}, which names the folder of its code; create it with StarlingFunction`,
    );
  }
  const { STARLING_ZONE: zone = homeZone } = properties.Environment.Variables;
  return {
    ...identity(found),
    folder,
    functionName: folder,
    ...(zone === homeZone ? {} : { functionName: `${folder}-${String(zone)}`, zone: String(zone) }),
    timeoutSeconds: properties.Timeout,
    memoryMiB: properties.MemorySize,
    recursiveLoop: properties.RecursiveLoop === "Allow" ? "allow" : "terminate",
    tenancy: properties.TenancyConfig === undefined ? "shared" : "per tenant",
    role: role(properties.Role),
    environment: properties.Environment.Variables,
  };
}

function resourcesOf(stack: string, template: Template): readonly Found[] {
  return Object.entries(template.Resources).map(([logicalId, resource]) => {
    if (!modelled.has(resource.Type) && !withoutEffect.has(resource.Type)) {
      throw new Error(
        `${logicalId} in ${stack} has the type ${resource.Type}, which this machine does not support; model it in ` +
          "local/template/read-plan.ts, or add it there to the types without effect",
      );
    }
    return { stack, logicalId, name: physicalName(stack, logicalId), resource };
  });
}

function identity({ stack, logicalId, name }: Found): Planned {
  return { stack, logicalId, name };
}

function propertiesOf<T>({ logicalId, stack, resource }: Found, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(resource.Properties ?? {});
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${["Properties", ...path].join(".")}: ${message}`);
  throw new Error(
    `${logicalId} in ${stack} (${resource.Type}) has properties that this machine does not support: ${problems.join("; ")}; ` +
      "add them to local/template/resource-schemas.ts",
  );
}

/** Resolves logical ids in a resource to physical names. */
function referenceFrom(from: Found, candidates: readonly Found[]): (logicalId: string) => string {
  return (logicalId) => {
    const found = candidates.find((candidate) => candidate.stack === from.stack && candidate.logicalId === logicalId);
    if (found !== undefined) return found.name;
    throw new Error(
      `${from.logicalId} in ${from.stack} refers to ${logicalId}, which is not a resource of the expected type`,
    );
  };
}
