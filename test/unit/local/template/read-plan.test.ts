import { describe, expect, test } from "vitest";
import type { Stacks, TemplateResource } from "#local/template/cloudformation.ts";
import { readPlan } from "#local/template/read-plan.ts";

const arnOf = (id: string) => ({ "Fn::GetAtt": [id, "Arn"] });

const resources = {
  Dead: { Type: "AWS::SQS::Queue", Properties: { FifoQueue: true, MessageRetentionPeriod: 1_209_600 } },
  Work: {
    Type: "AWS::SQS::Queue",
    Properties: {
      FifoQueue: true,
      ContentBasedDeduplication: false,
      DeduplicationScope: "messageGroup",
      FifoThroughputLimit: "perMessageGroupId",
      VisibilityTimeout: 360,
      MessageRetentionPeriod: 86_400,
      DelaySeconds: 2,
      RedrivePolicy: { deadLetterTargetArn: arnOf("Dead"), maxReceiveCount: 5 },
    },
  },
  Role: { Type: "AWS::IAM::Role", Properties: { AssumeRolePolicyDocument: { Statement: [] } } },
  Other: { Type: "AWS::IAM::Role", Properties: { AssumeRolePolicyDocument: { Statement: [] } } },
  Policy: {
    Type: "AWS::IAM::Policy",
    Properties: {
      PolicyName: "own",
      Roles: [{ Ref: "Role" }],
      PolicyDocument: {
        Statement: [
          { Effect: "Allow", Action: ["secretsmanager:GetSecretValue"], Resource: "arn:own" },
          {
            Effect: "Allow",
            Action: "secretsmanager:GetSecretValue",
            Resource: [{ "Fn::GetStackOutput": { StackName: "other", OutputName: "Shared" } }],
          },
          { Effect: "Allow", Action: "s3:GetObject", Resource: "arn:blobs" },
        ],
      },
    },
  },
  Strange: {
    Type: "AWS::IAM::Policy",
    Properties: {
      Roles: [{ Ref: "Other" }],
      PolicyDocument: {
        Statement: [{ Effect: "Allow", Action: "secretsmanager:GetSecretValue", Resource: "arn:other" }],
      },
    },
  },
  Worker: {
    Type: "AWS::Lambda::Function",
    Metadata: { "starling:folder": "rollout" },
    Properties: {
      Timeout: 60,
      MemorySize: 1024,
      Role: arnOf("Role"),
      RecursiveLoop: "Allow",
      Environment: { Variables: { STARLING_QUEUE: { Ref: "Work" } } },
      Handler: "index.handler",
      Runtime: "nodejs24.x",
    },
  },
  Source: {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: arnOf("Work"),
      FunctionName: { Ref: "Worker" },
      BatchSize: 4,
      MaximumBatchingWindowInSeconds: 1,
      ScalingConfig: { MaximumConcurrency: 7 },
      FunctionResponseTypes: ["ReportBatchItemFailures"],
    },
  },
  Integration: {
    Type: "AWS::ApiGatewayV2::Integration",
    Properties: { IntegrationType: "AWS_PROXY", IntegrationUri: arnOf("Worker"), PayloadFormatVersion: "2.0" },
  },
  Route: {
    Type: "AWS::ApiGatewayV2::Route",
    Properties: {
      RouteKey: "ANY /v1/{proxy+}",
      AuthorizationType: "AWS_IAM",
      Target: { "Fn::Join": ["", ["integrations/", { Ref: "Integration" }]] },
    },
  },
  Schedule: {
    Type: "AWS::Scheduler::Schedule",
    Properties: {
      ScheduleExpression: "rate(5 minutes)",
      FlexibleTimeWindow: { Mode: "OFF" },
      Target: { Arn: arnOf("Worker"), Input: '{"why":"time"}' },
    },
  },
  Table: {
    Type: "AWS::DynamoDB::GlobalTable",
    Properties: {
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
      GlobalSecondaryIndexes: [
        {
          IndexName: "due",
          KeySchema: [{ AttributeName: "dueShard", KeyType: "HASH" }],
          Projection: { ProjectionType: "KEYS_ONLY" },
        },
      ],
      BillingMode: "PAY_PER_REQUEST",
      Replicas: [{}],
    },
  },
  Blobs: { Type: "AWS::S3::Bucket" },
  Secret: { Type: "AWS::SecretsManager::Secret", Properties: { Name: "starling/webhook" } },
  Alarm: { Type: "AWS::CloudWatch::Alarm" },
} as const satisfies Record<string, TemplateResource>;

const plan = readPlan({
  app: {
    Resources: resources,
    Outputs: { Name: { Value: { Ref: "Table" } }, Url: { Value: 1 } },
  },
});

/** The stack with one resource changed. */
function changed(id: keyof typeof resources, change: Record<string, unknown>): Stacks {
  const { Properties = {}, ...rest } = resources[id] as TemplateResource;
  return { app: { Resources: { ...resources, [id]: { ...rest, Properties: { ...Properties, ...change } } } } };
}

describe("the plan of a template", () => {
  test("the plan has the queues with their settings", () => {
    expect(plan.queues).toEqual([
      expect.objectContaining({
        name: "app-Dead",
        fifo: true,
        visibilityTimeoutSeconds: 30,
        retentionSeconds: 1_209_600,
        delaySeconds: 0,
      }),
      {
        stack: "app",
        logicalId: "Work",
        name: "app-Work",
        fifo: true,
        contentBasedDeduplication: false,
        deduplicationScope: "messageGroup",
        throughputLimit: "perMessageGroupId",
        visibilityTimeoutSeconds: 360,
        retentionSeconds: 86_400,
        delaySeconds: 2,
        redrive: { queue: "app-Dead", maxReceiveCount: 5 },
      },
    ]);
  });

  test("the plan has the functions with their settings, roles and secrets", () => {
    expect(plan.functions).toEqual([
      {
        stack: "app",
        logicalId: "Worker",
        name: "app-Worker",
        folder: "rollout",
        functionName: "rollout",
        timeoutSeconds: 60,
        memoryMiB: 1024,
        recursiveLoop: "allow",
        tenancy: "shared",
        role: "app-Role",
        environment: { STARLING_QUEUE: { Ref: "Work" } },
        readableSecrets: ["arn:own", { "Fn::GetStackOutput": { StackName: "other", OutputName: "Shared" } }],
        describableSecrets: [],
      },
    ]);
    expect(readPlan(changed("Worker", { RecursiveLoop: "Terminate" })).functions[0]?.recursiveLoop).toBe("terminate");
    const tenants = changed("Worker", { TenancyConfig: { TenantIsolationMode: "PER_TENANT" } });
    expect(readPlan(tenants).functions[0]?.tenancy).toBe("per tenant");
  });

  test("the plan has the event sources of functions", () => {
    const source = {
      queue: "app-Work",
      function: "app-Worker",
      batchSize: 4,
      batchingWindowSeconds: 1,
      maximumConcurrency: 7,
      reportBatchItemFailures: true,
    };
    expect(plan.eventSources).toEqual([source]);
    const silent = readPlan(changed("Source", { FunctionResponseTypes: [], MaximumBatchingWindowInSeconds: 0 }));
    expect(silent.eventSources).toEqual([{ ...source, batchingWindowSeconds: 0, reportBatchItemFailures: false }]);
  });

  test("the plan has the routes, and how their callers are authorized", () => {
    expect(plan.routes).toEqual([{ routeKey: "ANY /v1/{proxy+}", function: "app-Worker", authorization: "iam" }]);
    expect(readPlan(changed("Route", { AuthorizationType: "NONE" })).routes[0]?.authorization).toBe("none");
  });

  test("the plan has the schedules of functions", () => {
    expect(plan.schedules).toEqual([
      expect.objectContaining({ function: "app-Worker", everySeconds: 300, input: { why: "time" } }),
    ]);
  });

  test("the plan has the tables, the buckets, the secrets and the outputs", () => {
    const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes } = resources.Table.Properties;
    expect(plan.tables).toEqual([
      { stack: "app", logicalId: "Table", name: "app-Table", AttributeDefinitions, KeySchema, GlobalSecondaryIndexes },
    ]);
    expect(plan.buckets).toEqual([{ stack: "app", logicalId: "Blobs", name: "app-blobs" }]);
    expect(plan.secrets).toEqual([expect.objectContaining({ name: "app-Secret", secretName: "starling/webhook" })]);
    expect(plan.outputs).toEqual([
      { stack: "app", name: "Name", value: { Ref: "Table" } },
      { stack: "app", name: "Url", value: 1 },
    ]);
  });
});

test.each<[string, Stacks, RegExp]>([
  [
    "a type of resource that is not modelled",
    { app: { Resources: { Topic: { Type: "AWS::SNS::Topic" } } } },
    /Topic in app has the type AWS::SNS::Topic, which this machine does not support; model it in local\/template\/read-plan\.ts/,
  ],
  [
    "a property that would have an effect",
    changed("Source", { FilterCriteria: {} }),
    /Source in app .*EventSourceMapping.*FilterCriteria.*local\/template\/resource-schemas\.ts/,
  ],
  ["a second region", changed("Table", { Replicas: [{}, {}] }), /Table in app.*Properties\.Replicas/],
  ["a cron expression", changed("Schedule", { ScheduleExpression: "cron(0 * * * ? *)" }), /keeps rate\(\.\.\.\) only/],
  [
    "a function with a role that is no role",
    changed("Worker", { Role: arnOf("Work") }),
    /Worker in app refers to Work, which is not a resource of the expected type/,
  ],
  [
    "a function without a folder",
    { app: { Resources: { ...resources, Worker: { ...resources.Worker, Metadata: {} } } } },
    /the Metadata of app-Worker has no starling:folder, which names the folder of its code/,
  ],
])("a template with %s is refused", (_, stacks, message) => {
  expect(() => readPlan(stacks)).toThrow(message);
});
