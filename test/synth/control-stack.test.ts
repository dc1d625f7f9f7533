import { Match } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";
import { type Folder, folders, grantsIn, readActions, writeActions } from "#test/synth/grants.ts";
import {
  functionNamed,
  listOf,
  ofType,
  type Resource,
  resourcesIn,
  roleOf,
  type Statement,
  statementsByRole,
  synthesizeTemplates,
  textOf,
} from "#test/synth/synthesized.ts";

const { control, resources } = await synthesizeTemplates();

const controlResources = resourcesIn(control);
const functions = ofType(resources, "AWS::Lambda::Function");
const queues = ofType(resources, "AWS::SQS::Queue");
const mappings = ofType(resources, "AWS::Lambda::EventSourceMapping");
const byRole = statementsByRole(resources);
const { statementsOf, grantsOf, partitionsOf } = grantsIn(resources);

function functionOf(folder: Folder): Resource {
  return functionNamed(resources, folder);
}

function environmentOf(folder: Folder): Record<string, unknown> {
  return (functionOf(folder).Properties.Environment as { Variables: Record<string, unknown> }).Variables;
}

test.each([
  [{}, "AWSReservedSSO_*"],
  [{ personalRoles: "AWSReservedSSO_*, person-*" }, "AWSReservedSSO_*,person-*"],
])("with the settings %j, the API takes the sessions of %s for persons", async (context, patterns) => {
  const { resources: all } = await synthesizeTemplates(context);
  const { Variables } = functionNamed(all, "api").Properties.Environment as { Variables: Record<string, unknown> };
  expect(Variables.STARLING_PERSONAL_ROLES).toBe(patterns);
});

interface TrustStatement {
  readonly Principal: { readonly Service?: string };
  readonly Condition?: unknown;
}

describe("every policy", () => {
  const all = [...byRole.values()].flat();

  test("the stacks have more than thirty policies", () => expect(all.length).toBeGreaterThan(30));

  test("no policy allows a Scan, an export or a change of a table", () => {
    const allowed = new Set([...readActions, ...writeActions, "dynamodb:ConditionCheckItem"]);
    const actions = all.flatMap(({ Action }) => listOf(Action)).filter((action) => action.startsWith("dynamodb:"));
    expect(actions.filter((action) => !allowed.has(action))).toEqual([]);
  });

  test("no action has a wildcard", () => {
    expect(all.flatMap(({ Action }) => listOf(Action)).filter((action) => action.includes("*"))).toEqual([]);
  });

  test("a wildcard in a resource stands for a folder of the bucket, a kind of secret, or a way to reach clusters", () => {
    const quota = all.filter(({ Action }) => Action === "lambda:GetAccountSettings");
    // This action takes no resource. It reads the account's concurrency.
    expect(quota.map(({ Resource: on }) => on)).toEqual(["*"]);
    // CloudWatch tells of composite alarms only with a right for all alarms.
    const alarms = all.filter(({ Action }) => listOf(Action).every((action) => action.startsWith("cloudwatch:")));
    expect(
      alarms.flatMap(({ Action, Resource: on }) => listOf(Action).map((action) => `${action} ${textOf(on)}`)),
    ).toEqual(["cloudwatch:DescribeAlarmHistory *", "cloudwatch:DescribeAlarms *"]);
    const others = all.filter((statement) => !quota.includes(statement) && !alarms.includes(statement));
    const wild = others
      .flatMap(({ Resource: on }) => listOf(on).map(textOf))
      .filter((resource) => resource.includes("*"));
    for (const resource of wild) {
      expect(resource).toMatch(
        /^(<starling-state-blobs-arn>\/(artifacts|incoming|uploads|renderings|inventories|plans)\/\*|arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:starling\/(git|clusters|hooks)\/\*|arn:<AWS::Partition>:iam::<AWS::AccountId>:role\/starling\/(clusters|discovery)\/\*|arn:<AWS::Partition>:eks:\*:<AWS::AccountId>:cluster\/\*)$/,
      );
    }
  });

  test("access to the table names its partitions", () => {
    for (const { Action, Condition } of all) {
      if (!listOf(Action).some((action) => action.startsWith("dynamodb:"))) continue;
      const keys = listOf(Condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"] as string[]);
      expect(keys.length).toBeGreaterThan(0);
      expect(keys.filter((key) => key.startsWith("*"))).toEqual([]);
    }
  });

  test("a service assumes a role for this account only: Lambda for its functions, the scheduler for its own group", () => {
    const trusts = ofType(resources, "AWS::IAM::Role").flatMap(({ Properties }) =>
      (Properties.AssumeRolePolicyDocument as { Statement: TrustStatement[] }).Statement.map((statement) => ({
        service: statement.Principal.Service,
        condition: JSON.stringify(statement.Condition, (_key, value) =>
          typeof value === "object" && value !== null && Object.keys(value).some((key) => /^Fn::|^Ref$/.test(key))
            ? textOf(value)
            : value,
        ),
      })),
    );
    expect(trusts.filter(({ service }) => service === "lambda.amazonaws.com")).toHaveLength(folders.length);
    expect(trusts.filter(({ service }) => service !== "lambda.amazonaws.com")).toEqual([
      {
        service: "scheduler.amazonaws.com",
        condition: JSON.stringify({
          StringEquals: {
            "aws:SourceAccount": "<AWS::AccountId>",
            "aws:SourceArn": "arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:schedule-group/default",
          },
        }),
      },
    ]);
  });

  test("no role of Starling may be assumed by another role of Starling, whatever its name", () => {
    for (const { Properties } of ofType(resources, "AWS::IAM::Role")) {
      expect([Properties.Path, Properties.RoleName], "a name without a path").toEqual([undefined, undefined]);
    }
    const assumable = all
      .filter(({ Action }) => listOf(Action).some((action) => action.startsWith("sts:")))
      .flatMap(({ Resource: on }) => listOf(on).map(textOf));
    expect(assumable.length).toBeGreaterThan(0);
    for (const pattern of assumable) expect(pattern).toMatch(/:role\/[^/*]+\/[^*]*\*?$/);
  });

  test("no managed policy is attached to a role", () => {
    for (const role of ofType(resources, "AWS::IAM::Role")) expect(role.Properties.ManagedPolicyArns).toBeUndefined();
  });
});

describe("every function", () => {
  test("every function belongs to a folder", () => expect(functions).toHaveLength(folders.length));

  test("every function has a role of its own", () => {
    expect(new Set(functions.map(roleOf)).size).toBe(functions.length);
  });

  test("every function has a log group of its own, whose lines expire", () => {
    const groups = functions.map((lambda) =>
      textOf((lambda.Properties.LoggingConfig as { LogGroup: unknown }).LogGroup),
    );
    expect(new Set(groups).size).toBe(functions.length);
    for (const group of ofType(controlResources, "AWS::Logs::LogGroup")) {
      expect(group.Properties.RetentionInDays).toBe(30);
    }
  });

  test("no function reads logs, except api, which reads all of them", () => {
    const read = (folder: Folder) => grantsOf(folder, "logs").filter((grant) => !/^logs:(Create|Put)/.test(grant));
    for (const folder of folders) {
      expect(read(folder)).toHaveLength(folder === "api" ? folders.length : 0);
      for (const grant of read(folder)) expect(grant).toMatch(/^logs:FilterLogEvents /);
    }
  });

  test("every function writes into its own log group only; api's belongs to the state stack, which outlives it", () => {
    const written = (folder: Folder) =>
      statementsOf(folder)
        .filter(({ Action }) => listOf(Action).some((action) => /^logs:(Create|Put)/.test(action)))
        .map(({ Action, Resource: on }) => ({ actions: [...listOf(Action)].sort(), on: listOf(on).map(textOf) }));
    const actions = ["logs:CreateLogStream", "logs:PutLogEvents"];
    for (const folder of folders) {
      const group = textOf((functionOf(folder).Properties.LoggingConfig as { LogGroup: unknown }).LogGroup);
      const arn = folder === "api" ? "<starling-state-audit-arn>" : group.replace(">", ".Arn>");
      expect(written(folder)).toEqual([{ actions, on: [arn] }]);
      expect(group === "<starling-state-audit-name>").toBe(folder === "api");
    }
  });

  test.each(folders)("%s runs on Node 24, at most 5 minutes", (folder) => {
    const { Runtime, Timeout } = functionOf(folder).Properties;
    expect(Runtime).toBe("nodejs24.x");
    expect(Timeout).toBeLessThanOrEqual(300);
  });

  test.each(folders)("%s is on arm64, unless it has the kubectl layer, whose binaries are x86-64", (folder) => {
    const { Architectures, Layers } = functionOf(folder).Properties;
    expect(Architectures).toEqual([Layers === undefined ? "arm64" : "x86_64"]);
    expect(Layers === undefined).toBe(folder !== "build");
  });

  test.each(folders)("%s has names in its environment only of resources that its role may use", (folder) => {
    const environment = environmentOf(folder);
    const named = (variable: string) => Object.hasOwn(environment, variable);
    const may = (service: string) => grantsOf(folder, service).length > 0;
    expect({ table: named("STARLING_TABLE"), blobs: named("STARLING_BUCKET") }).toEqual({
      table: may("dynamodb"),
      blobs: may("s3"),
    });
    const sends = grantsOf(folder, "sqs")
      .filter((grant) => grant.startsWith("sqs:SendMessage "))
      // Lambda sends the event of a failed tick, in the name of the tick's role.
      .filter((grant) => folder !== "tick" || !/ <WiringEveryMinuteDeadLetters\w+\.Arn>$/.test(grant))
      .map((grant) =>
        /<WiringTo(\w+?)Queue/
          .exec(grant)?.[1]
          ?.replace(/\B(?=[A-Z])/g, "_")
          .toUpperCase(),
      );
    const variables = Object.keys(environment).filter((variable) => variable.startsWith("STARLING_QUEUE_"));
    expect(variables.map((variable) => variable.slice("STARLING_QUEUE_".length)).sort()).toEqual(sends.sort());
  });

  test("no function has a secret in its environment; it has names only", () => {
    for (const lambda of functions)
      expect(JSON.stringify(lambda.Properties.Environment)).not.toContain("resolve:secretsmanager");
  });
});

describe("the permissions of each function", () => {
  const secrets = "arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:starling";

  test.each<[Folder, readonly string[]]>([
    ["api", ["secretsmanager:DescribeSecret <starling-state-webhook-secret-arn>"]],
    [
      "webhook",
      [
        "secretsmanager:GetSecretValue <starling-state-webhook-secret-arn>",
        `secretsmanager:GetSecretValue ${secrets}/hooks/*`,
      ],
    ],
    ["tick", []],
    ["discover", []],
    ["resolve", [`secretsmanager:GetSecretValue ${secrets}/git/*`]],
    ["rollout", []],
    ["render", []],
    ["build", []],
    ["apply", [`secretsmanager:GetSecretValue ${secrets}/clusters/*`]],
    ["report", []],
    ["dashboard", []],
  ])("%s is told of these secrets", (folder, expected) => expect(grantsOf(folder, "secretsmanager")).toEqual(expected));

  test.each(folders)(
    "%s may not call STS and EKS, unless it is apply or discover, for roles of one path and addresses of clusters",
    (folder) => {
      const roles = "sts:AssumeRole arn:<AWS::Partition>:iam::<AWS::AccountId>:role/starling";
      const expected: Partial<Record<Folder, readonly string[]>> = {
        apply: ["eks:DescribeCluster arn:<AWS::Partition>:eks:*:<AWS::AccountId>:cluster/*", `${roles}/clusters/*`],
        discover: [`${roles}/discovery/*`],
      };
      expect([...grantsOf(folder, "eks"), ...grantsOf(folder, "sts")]).toEqual(expected[folder] ?? []);
    },
  );

  test.each<[Folder, readonly string[]]>([
    [
      "api",
      [
        ...["GetObject artifacts", "GetObject inventories", "GetObject plans", "GetObject renderings"],
        ...["GetObject uploads", "ListBucket plans inventories renderings artifacts uploads", "PutObject uploads"],
      ],
    ],
    ["webhook", []],
    ["tick", []],
    ["discover", []],
    ["resolve", ["GetObject artifacts", "GetObject uploads", "ListBucket artifacts uploads", "PutObject artifacts"]],
    [
      "rollout",
      [
        ...["GetObject artifacts", "GetObject plans", "ListBucket plans artifacts"],
        ...["PutObject artifacts from artifacts", "PutObject plans"],
      ],
    ],
    [
      "render",
      [
        ...[
          "GetObject artifacts",
          "GetObject incoming",
          "GetObject renderings",
          "ListBucket artifacts incoming renderings",
        ],
        ...["PutObject artifacts from artifacts", "PutObject incoming", "PutObject renderings"],
      ],
    ],
    ["build", []],
    [
      "apply",
      [
        ...["GetObject inventories", "GetObject renderings"],
        ...["ListBucket renderings inventories", "PutObject inventories", "PutObject renderings from renderings"],
      ],
    ],
    ["report", []],
    ["dashboard", ["GetObject inventories", "GetObject plans", "ListBucket plans inventories"]],
  ])("%s uses these folders of the bucket", (folder, expected) => {
    const [listed = []] = statementsOf(folder).flatMap(({ Condition }) =>
      [Condition?.StringLike?.["s3:prefix"] as string[] | undefined].filter((one) => one !== undefined),
    );
    const prefixes = listOf(listed).map((prefix) => prefix.replace(/\/\*$/, ""));
    const grants = grantsOf(folder, "s3")
      .map((grant) => grant.replace(/ from <starling-state-blobs-name>\/(\w+)\/\*$/, " from $1"))
      .map((grant) => grant.replace(/^s3:(\w+) [^ ]*>\/(\w+)\/\*/, "$1 $2"))
      .map((grant) => grant.replace(/^s3:(\w+) <starling-state-blobs-arn>$/, `$1 ${prefixes.join(" ")}`));
    expect(grants).toEqual(expected);
  });

  test.each<[Folder, readonly string[]]>([
    ["webhook", ["DELIVERIES#*"]],
    ["dashboard", []],
    ["render", ["REND#*"]],
    ["report", ["EVT#*"]],
    ["resolve", ["LIMIT#*", "NS#*#Source", "PIN#*", "REV#*"]],
    ["discover", ["CL#*", "DISCOVERIES", "FLEET", "FLEETVERSION", "FOUND"]],
    ["apply", ["CHECK#*", "CL#*", "ZONE#home"]],
  ])("%s writes these partitions and no others", (folder, expected) => {
    expect([...new Set(partitionsOf(folder, writeActions))]).toEqual(expected);
  });

  test.each<[Folder, readonly string[]]>([
    ["webhook", ["DELIVERIES#*", "NS#*#Receiver", "NS#*#Source", "RECEIVERS", "REPO#*"]],
    ["render", ["REND#*"]],
    ["discover", ["CL#*", "DISCOVERIES", "FLEET", "FLEETVERSION", "FOUND", "NS#*#Sync", "NS#*#SyncGroup", "OWNERS"]],
    ["apply", ["CHECK#*", "CL#*", "FREEZES", "NS#*#Sync", "NS#*#SyncGroup", "ZONE#home"]],
  ])("%s reads these partitions and no others", (folder, expected) => {
    expect([...new Set(partitionsOf(folder, readActions))]).toEqual(expected);
  });

  test("only api writes the documents of people, and it writes no rollouts and no events", () => {
    expect(partitionsOf("api", writeActions)).not.toContain("ROLL#*");
    expect(partitionsOf("api", writeActions)).not.toContain("EVT#*");
    for (const folder of folders) {
      const creates = partitionsOf(folder, ["dynamodb:PutItem", "dynamodb:BatchWriteItem"]);
      expect(creates.includes("OWNERS") || creates.includes("REPO#*")).toBe(folder === "api");
      expect(creates.includes("FLEET")).toBe(folder === "api" || folder === "discover");
    }
  });

  test("the dashboard may read what its views show, and nothing else", () => {
    const actions = new Set(statementsOf("dashboard").flatMap(({ Action }) => listOf(Action)));
    expect([...actions].sort()).toEqual([
      ...["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"],
      ...["logs:CreateLogStream", "logs:PutLogEvents", "s3:GetObject", "s3:ListBucket"],
    ]);
  });

  test("render may use only the table, the bucket, the planner's queue and build", () => {
    const services = new Set(
      statementsOf("render")
        .flatMap(({ Action }) => listOf(Action))
        .map((action) => action.split(":")[0]),
    );
    expect([...services].sort()).toEqual(["dynamodb", "lambda", "logs", "s3", "sqs"]);
    expect(grantsOf("render", "lambda")).toEqual([`lambda:InvokeFunction <${functionOf("build").id}.Arn>`]);
  });
});

describe("the function build, which reads every byte of a repository", () => {
  test("build may write its own log, and its role denies everything else, whatever another policy allows", () => {
    const actions = statementsOf("build").flatMap(({ Action }) => listOf(Action));
    expect([...actions].sort()).toEqual(["logs:CreateLogStream", "logs:PutLogEvents"]);
    const denied = ofType(resources, "AWS::IAM::Policy")
      .filter(({ Properties }) =>
        (Properties.Roles as { Ref: string }[]).some(({ Ref }) => Ref === roleOf(functionOf("build"))),
      )
      .flatMap(({ Properties }) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement)
      .filter(({ Effect }) => Effect === "Deny");
    expect(denied).toEqual([
      { Effect: "Deny", NotAction: ["logs:CreateLogStream", "logs:PutLogEvents", "kms:Decrypt"], Resource: "*" },
    ]);
  });

  test("build has no environment variable but NODE_OPTIONS, and no VPC", () => {
    expect(environmentOf("build")).toEqual({ NODE_OPTIONS: "--enable-source-maps" });
    expect(functionOf("build").Properties.VpcConfig).toBeUndefined();
  });

  test("build never runs two artifacts in one sandbox, and only render may invoke it", () => {
    expect(functionOf("build").Properties.TenancyConfig).toEqual({ TenantIsolationMode: "PER_TENANT" });
    const asked = folders.flatMap((folder) => grantsOf(folder, "lambda").map((grant) => `${folder} ${grant}`));
    const buildArn = `<${functionOf("build").id}.Arn>`;
    expect(asked).toEqual(["api lambda:GetAccountSettings *", `render lambda:InvokeFunction ${buildArn}`]);
    expect(
      mappings.filter(({ Properties }) => textOf(Properties.FunctionName) === `<${functionOf("build").id}>`),
    ).toEqual([]);
    for (const folder of folders.filter((each) => each !== "build")) {
      expect(functionOf(folder).Properties.TenancyConfig).toBeUndefined();
    }
  });

  test("build times out before render does", () => {
    expect(Number(functionOf("build").Properties.Timeout) + 10).toBeLessThan(
      Number(functionOf("render").Properties.Timeout),
    );
  });
});

describe("every queue", () => {
  const targets = new Set(
    queues.flatMap(({ Properties: { RedrivePolicy } }) =>
      RedrivePolicy === undefined
        ? []
        : [textOf((RedrivePolicy as { deadLetterTargetArn: unknown }).deadLetterTargetArn)],
    ),
  );
  const scheduleTarget = ofType(resources, "AWS::Scheduler::Schedule").map(({ Properties }) =>
    textOf((Properties.Target as { DeadLetterConfig: { Arn: unknown } }).DeadLetterConfig.Arn),
  );
  const deadLetters = new Set([...targets, ...scheduleTarget]);

  test("every queue moves a message to a dead-letter queue after five receives or more, or is a dead-letter queue", () => {
    expect(queues.length).toBe(15);
    for (const { id, Properties } of queues) {
      const redrive = Properties.RedrivePolicy as { maxReceiveCount: number } | undefined;
      if (deadLetters.has(`<${id}.Arn>`)) expect(redrive).toBeUndefined();
      else
        expect(redrive?.maxReceiveCount).toBe(
          id.startsWith("WiringToRollout") ? 12 : id.startsWith("WiringToApply") ? 7 : 5,
        );
    }
  });

  test("every dead-letter queue accepts the letters of its own queue only, and other queues accept none", () => {
    const own = new Map<string, unknown>(
      queues.flatMap(({ Properties: { QueueName, RedrivePolicy } }) =>
        RedrivePolicy === undefined
          ? []
          : [[textOf((RedrivePolicy as { deadLetterTargetArn: unknown }).deadLetterTargetArn), QueueName]],
      ),
    );
    expect(own.size).toBe(7);
    for (const { id, Properties } of queues) {
      const source = own.get(`<${id}.Arn>`);
      const { redrivePermission, sourceQueueArns } = Properties.RedriveAllowPolicy as {
        redrivePermission: string;
        sourceQueueArns?: unknown[];
      };
      expect({ redrivePermission, sources: (sourceQueueArns ?? []).map(textOf) }).toEqual(
        source === undefined
          ? { redrivePermission: "denyAll", sources: [] }
          : {
              redrivePermission: "byQueue",
              sources: [`arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:${String(source)}`],
            },
      );
    }
  });

  test("every queue is encrypted", () => {
    for (const { Properties } of queues) expect(Properties.SqsManagedSseEnabled).toBe(true);
  });

  test("every queue refuses requests without TLS", () => {
    const guarded = ofType(resources, "AWS::SQS::QueuePolicy").flatMap(({ Properties }) => {
      const { Statement: statements } = Properties.PolicyDocument as { Statement: Statement[] };
      const denies = statements.some(
        ({ Effect, Condition }) => Effect === "Deny" && Condition?.Bool?.["aws:SecureTransport"] === "false",
      );
      return denies ? (Properties.Queues as { Ref: string }[]).map(({ Ref }) => Ref) : [];
    });
    expect(guarded.sort()).toEqual(queues.map(({ id }) => id).sort());
  });

  test("every queue hides a message for six timeouts of its function; those of apply and rollout hide it for seconds more than one", () => {
    expect(mappings).toHaveLength(7);
    for (const { Properties } of mappings) {
      const lambda = functions.find(({ id }) => textOf(Properties.FunctionName) === `<${id}>`);
      const queue = queues.find(({ id }) => textOf(Properties.EventSourceArn) === `<${id}.Arn>`);
      const timeoutSeconds = Number(lambda?.Properties.Timeout);
      const hiddenSeconds = Number(queue?.Properties.VisibilityTimeout);
      // A lease ends with its invocation; the version of the rollout state refuses one of two planners.
      const [kept] = Object.entries({ ToApply: 30, ToRollout: 10 }).filter(([id]) =>
        queue?.id.startsWith(`Wiring${id}`),
      );
      expect(hiddenSeconds).toBe(kept === undefined ? 6 * timeoutSeconds : timeoutSeconds + kept[1]);
    }
  });

  const alarms = ofType(resources, "AWS::CloudWatch::Alarm");

  test("every dead-letter queue has an alarm on its messages", () => {
    const alarmed = alarms
      .filter(({ Properties }) => Properties.MetricName === "ApproximateNumberOfMessagesVisible")
      .map(({ Properties }) =>
        textOf((Properties.Dimensions as { Value: unknown }[])[0]?.Value).replace(".QueueName", ".Arn"),
      );
    expect(alarmed.sort()).toEqual([...deadLetters].sort());
  });

  test("every queue with a function has an alarm on messages that wait", () => {
    const alarmed = alarms.filter(({ Properties }) => Properties.MetricName === "ApproximateAgeOfOldestMessage");
    const queueOf = ({ Dimensions }: Record<string, unknown>) => textOf((Dimensions as { Value: unknown }[])[0]?.Value);
    const fed = ofType(resources, "AWS::Lambda::EventSourceMapping").map(({ Properties }) =>
      textOf(Properties.EventSourceArn),
    );
    expect(alarmed.map(({ Properties }) => queueOf(Properties).replace(".QueueName", ".Arn")).sort()).toEqual(
      fed.sort(),
    );
    for (const { Properties } of alarmed) expect(Properties).toMatchObject({ Statistic: "Maximum", Threshold: 1800 });
  });

  test("an alarm rings for rows that only a newer version can read, but not during a deployment", () => {
    const alarm = alarms.find(({ Properties }) => Properties.MetricName === "NewerRows");
    expect(alarm?.Properties).toMatchObject({
      // The name in the embedded metrics of the tick.
      MetricName: "NewerRows",
      Dimensions: expect.arrayContaining([{ Name: "service", Value: "tick" }]),
      Statistic: "Sum",
      Period: 60,
      Threshold: 0,
      ComparisonOperator: "GreaterThanThreshold",
      EvaluationPeriods: 10,
      DatapointsToAlarm: 6,
      TreatMissingData: "notBreaching",
      AlarmDescription: expect.stringContaining("docs/runbook.md"),
    });
  });

  test.each<[string, { BatchSize: number; MaximumBatchingWindowInSeconds?: number }, string?]>([
    ["Resolve", { BatchSize: 1 }],
    ["Rollout", { BatchSize: 10 }],
    ["Render", { BatchSize: 1 }],
    ["Apply", { BatchSize: 1 }],
    ["ApplySlow", { BatchSize: 1 }, "Apply"],
    ["Report", { BatchSize: 100, MaximumBatchingWindowInSeconds: 1 }],
  ])(
    "the queue to %s feeds its function, up to a bound, in batches whose messages fail one by one",
    (name, expected, worker = name) => {
      control.hasResourceProperties("AWS::Lambda::EventSourceMapping", {
        ...expected,
        EventSourceArn: { "Fn::GetAtt": [Match.stringLikeRegexp(`^WiringTo${name}Queue`), "Arn"] },
        FunctionName: { Ref: Match.stringLikeRegexp(`^Wiring${worker}Function`) },
        FunctionResponseTypes: ["ReportBatchItemFailures"],
        ScalingConfig: { MaximumConcurrency: Match.anyValue() },
      });
    },
  );

  test("the queue to the planner is first in, first out for each owner, at high throughput", () => {
    control.hasResourceProperties("AWS::SQS::Queue", {
      FifoQueue: true,
      DeduplicationScope: "messageGroup",
      FifoThroughputLimit: "perMessageGroupId",
    });
    expect(queues.filter(({ Properties }) => Properties.FifoQueue === true)).toHaveLength(2);
  });
});

describe("circles of messages", () => {
  /** The functions that a function's messages reach, from the policies and the event sources. */
  const next = new Map(
    folders.map((folder) => [
      folder,
      folders.filter((other) =>
        mappings.some(
          ({ Properties }) =>
            textOf(Properties.FunctionName) === `<${functionOf(other).id}>` &&
            grantsOf(folder, "sqs").includes(`sqs:SendMessage ${textOf(Properties.EventSourceArn)}`),
        ),
      ),
    ]),
  );

  function reaches(from: Folder, to: Folder, seen = new Set<Folder>()): boolean {
    return (next.get(from) ?? []).some((step) => {
      if (step === to) return true;
      if (seen.has(step)) return false;
      return reaches(step, to, seen.add(step));
    });
  }

  test.each(folders)("%s is allowed to loop exactly if its own messages come back to it", (folder) => {
    expect(functionOf(folder).Properties.RecursiveLoop).toBe(reaches(folder, folder) ? "Allow" : "Terminate");
  });

  test("tick, api and webhook are in no circle of messages", () => {
    expect(folders.filter((folder) => reaches(folder, folder)).sort()).toEqual([
      "apply",
      "render",
      "report",
      "resolve",
      "rollout",
    ]);
  });
});

/** The variables in "Customize HTTP API access logs" of the developer guide, without headers and those of other authorizers. */
const httpApiVariables = new Set([
  ...["accountId", "apiId", "dataProcessed", "domainName", "domainPrefix", "extendedRequestId", "httpMethod", "path"],
  ...["error.message", "error.messageString", "error.responseType", "authorizer.error", "awsEndpointRequestId"],
  ...["identity.accountId", "identity.caller", "identity.principalOrgId", "identity.sourceIp", "identity.user"],
  ...["identity.userArn", "integration.error", "integration.integrationStatus", "integration.latency"],
  ...["integration.requestId", "integration.status", "integrationErrorMessage", "integrationLatency"],
  ...["integrationStatus", "protocol", "requestId", "requestTime", "requestTimeEpoch", "responseLatency"],
  ...["responseLength", "routeKey", "stage", "status"],
]);

describe("the API, the webhook and the schedule", () => {
  test("each route of the API has its own method and path and an IAM signature, and no route takes all others", () => {
    const signed = ofType(resources, "AWS::ApiGatewayV2::Route").filter(
      ({ Properties }) => Properties.AuthorizationType === "AWS_IAM",
    );
    const written = signed.map(({ Properties }) => String(Properties.RouteKey));
    expect(written.toSorted()).toEqual([...gatewayRouteKeys()].sort());
    expect(written.filter((key) => /^ANY |\+\}|\$default|:/.test(key))).toEqual([]);
    for (const key of ["POST /v1/apply", "DELETE /v1/namespaces/{namespace}/sources/{name}"]) {
      expect(written).toContain(key);
    }
    // An API has at most 300 routes, unless its account requests more.
    expect(written.length).toBeLessThan(200);
  });

  test("one statement lets the gateway invoke api, because the policy of a function is limited to 20 KB", () => {
    const permitted = ofType(resources, "AWS::Lambda::Permission").filter(
      ({ Properties }) => textOf(Properties.FunctionName) === `<${functionOf("api").id}.Arn>`,
    );
    expect(permitted).toHaveLength(1);
  });

  test("only the webhook has routes without an IAM signature, each with a throttle of its own [receiver.throttle]", () => {
    const open = ofType(resources, "AWS::ApiGatewayV2::Route").filter(
      ({ Properties }) => Properties.AuthorizationType !== "AWS_IAM",
    );
    expect(open.map(({ Properties }) => Properties.RouteKey)).toEqual(["POST /hook/{host}", "POST /hook/r/{receiver}"]);
    control.hasResourceProperties("AWS::ApiGatewayV2::Stage", {
      DefaultRouteSettings: { ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 },
      RouteSettings: {
        "POST /hook/{host}": { ThrottlingRateLimit: 10, ThrottlingBurstLimit: 40 },
        "POST /hook/r/{receiver}": { ThrottlingRateLimit: 10, ThrottlingBurstLimit: 40 },
      },
    });
  });

  test("events of CodeCommit and ECR reach the webhook alone, each by a rule that may invoke it, and nothing else does", () => {
    const rules = ofType(resources, "AWS::Events::Rule");
    const webhook = `<${functionOf("webhook").id}.Arn>`;
    expect(rules.map(({ Properties }) => Properties.EventPattern)).toEqual([
      { source: ["aws.codecommit"], "detail-type": ["CodeCommit Repository State Change"] },
      {
        source: ["aws.ecr"],
        "detail-type": ["ECR Image Action"],
        detail: { result: ["SUCCESS"], "action-type": ["PUSH", "DELETE"] },
      },
    ]);
    for (const { Properties } of rules)
      expect((Properties.Targets as { Arn: unknown }[]).map(({ Arn }) => textOf(Arn))).toEqual([webhook]);
    const byEvents = ofType(resources, "AWS::Lambda::Permission").filter(
      ({ Properties }) => Properties.Principal === "events.amazonaws.com",
    );
    expect(
      byEvents.map(({ Properties }) => [textOf(Properties.FunctionName), textOf(Properties.SourceArn)]).toSorted(),
    ).toEqual(rules.map(({ id }) => [webhook, `<${id}.Arn>`]).toSorted());
  });

  test("the access log names variables that an HTTP API has, and neither headers nor bodies", () => {
    const stages = ofType(resources, "AWS::ApiGatewayV2::Stage");
    expect(stages).toHaveLength(1);
    for (const { Properties } of stages) {
      const { Format } = Properties.AccessLogSettings as { Format: string };
      const variables = [...Format.matchAll(/\$context\.([\w.]+)/g)].map(([, name = ""]) => name);
      expect(variables).toEqual(
        expect.arrayContaining(["requestId", "routeKey", "path", "status", "identity.userArn"]),
      );
      expect(variables.filter((name) => !httpApiVariables.has(name))).toEqual([]);
      expect(() => JSON.parse(Format)).not.toThrow();
    }
  });

  test("the access log needs no statement in the account's resource policy of CloudWatch Logs", () => {
    const destinations = ofType(resources, "AWS::ApiGatewayV2::Stage").map(({ Properties }) => {
      const { DestinationArn } = Properties.AccessLogSettings as { DestinationArn: { "Fn::GetAtt": [string, string] } };
      return resources.find(({ id }) => id === DestinationArn["Fn::GetAtt"][0])?.Properties.LogGroupName;
    });
    expect(destinations).toEqual(["/aws/vendedlogs/apis/starling-control/access"]);
  });

  test("no function has a URL", () => control.resourceCountIs("AWS::Lambda::Url", 0));

  test("the schedule's role may only invoke tick and send failed invocations to the dead-letter queue", () => {
    const [schedule] = ofType(resources, "AWS::Scheduler::Schedule");
    expect(schedule?.Properties.ScheduleExpression).toBe("rate(1 minute)");
    const target = schedule?.Properties.Target as { Arn: unknown; RoleArn: { "Fn::GetAtt": [string, string] } };
    expect(textOf(target.Arn)).toBe(`<${functionOf("tick").id}.Arn>`);
    const statements = byRole.get(target.RoleArn["Fn::GetAtt"][0]) ?? [];
    expect(statements.map(({ Action }) => Action).sort()).toEqual(["lambda:InvokeFunction", "sqs:SendMessage"]);
  });
});

test("the outputs have the addresses and roles that people, the git host and clusters need", () => {
  const outputs = control.findOutputs("*") as Record<string, { Value: unknown }>;
  const said = Object.fromEntries(Object.entries(outputs).map(([name, { Value }]) => [name, textOf(Value)]));
  const names = [
    ...["ApiUrl", "WebhookUrl", "WebhookSecretArn", "ApplyRole", "ExternalId", "DiscoverRole", "Version"],
    ...["FleetDashboard", "OperationsDashboard"],
    ...["ViewerPolicy", "ReaderPolicy", "OperatorPolicy", "ApproverPolicy", "RobotPolicy", "AdministratorPolicy"],
  ];
  expect(Object.keys(said).sort()).toEqual(names.toSorted());
  const [webhookRoute] = ofType(controlResources, "AWS::ApiGatewayV2::Route").flatMap(({ Properties }) =>
    Properties.AuthorizationType === "NONE" ? [String(Properties.RouteKey)] : [],
  );
  expect(`POST ${said.WebhookUrl}`).toBe(
    webhookRoute?.replace("POST ", `POST ${said.ApiUrl}`).replace("{host}", "github"),
  );
  expect(said.WebhookSecretArn).toBe(String(textOf(environmentOf("webhook").STARLING_WEBHOOK_SECRET)));
  const boards = ofType(controlResources, "AWS::CloudWatch::Dashboard").map(({ id }) => `<${id}>`);
  expect([said.FleetDashboard, said.OperationsDashboard].toSorted()).toEqual(boards.toSorted());
  expect(said.Version).toBe(starlingVersion);
});
