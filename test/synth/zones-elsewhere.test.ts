/** A zone in another account or region has a stack there. Its roles reach its own queues, rows and blobs, and no others. */
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { Starling } from "#infra/starling.ts";
import { StarlingZone } from "#infra/starling-zone.ts";
import type { Template as Json } from "#local/template/cloudformation.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { fitsClusterPattern } from "#shared/fleet/kinds/cluster-pattern.ts";
import { mayDo, statementsOf, type Wish } from "#test/support/policy-guard.ts";
import {
  functionNamed,
  listOf,
  ofType,
  type Resource,
  resourcesIn,
  type Statement,
  statementsByRole,
  textOf,
} from "#test/synth/synthesized.ts";
import { homeOfZones, mixedZonesOf } from "#test/synth/zones.ts";

const stacks = await synthesize(mixedZonesOf(3));
const resourcesOf = (name: string) => resourcesIn(Template.fromJSON(stacks[name] as object));
const [control, z2, z3] = [
  resourcesOf("starling-control"),
  resourcesOf("starling-zone-z2"),
  resourcesOf("starling-zone-z3"),
];

/** The place of z2, which is in another account, and of z3, which is in another region. */
const places = { z2: "us-east-1:444455556666", z3: "eu-west-1:111122223333" } as const;
type Zone = keyof typeof places;
const zones = ["z2", "z3"] as const;
const workersIn = { z2, z3 };

function named(resources: readonly Resource[], type: string, start: string): Resource {
  const [found, ...others] = ofType(resources, type).filter(({ id }) => id.startsWith(start));
  if (found === undefined || others.length > 0) throw new Error(`${others.length + 1} resources are ${type} ${start}`);
  return found;
}

const dataRole = (zone: Zone) => named(control, "AWS::IAM::Role", `WiringZone${zone}AccessDataRole`);
const dataRights = (zone: Zone) => statementsByRole(control).get(dataRole(zone).id) ?? [];
const worker = (zone: Zone) => {
  const [only] = ofType(workersIn[zone], "AWS::Lambda::Function");
  if (only === undefined) throw new Error(`zone ${zone} has no workers`);
  return only;
};
const workerRole = (zone: Zone) => named(workersIn[zone], "AWS::IAM::Role", "Zone");
const workerRights = (zone: Zone) => statementsByRole(workersIn[zone]).get(workerRole(zone).id) ?? [];

const table = "<starling-state-table-arn>";
const blobs = "<starling-state-blobs-arn>";
const onRow = (action: string, partition: string): Wish => ({
  action: `dynamodb:${action}`,
  resource: table,
  partition,
});

describe("the data role of a zone elsewhere", () => {
  const other = { z2: "z3", z3: "z2" } as const;
  const ownCluster = { z2: "z2-shop", z3: "z3-shop" } as const;
  const exact = { z2: "fra-2", z3: "fra-3" } as const;

  const allowed = (zone: Zone): readonly Wish[] => [
    ...[ownCluster[zone], exact[zone]].flatMap((cluster) => [
      ...["GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"].map((action) =>
        onRow(action, `CL#${cluster}`),
      ),
      ...["GetItem", "PutItem"].map((action) => onRow(action, `CHECK#${cluster}`)),
      ...["s3:GetObject", "s3:PutObject"].map((action) => ({
        action,
        resource: `${blobs}/inventories/${cluster}/00.json`,
      })),
      { action: "s3:ListBucket", resource: blobs, prefix: `inventories/${cluster}/00.json` },
    ]),
    onRow("UpdateItem", `ZONE#${zone}`),
    onRow("GetItem", "NS#shop#SyncGroup"),
    onRow("GetItem", "FREEZES"),
    { action: "s3:GetObject", resource: `${blobs}/renderings/00.json` },
  ];

  const refused = (zone: Zone): readonly Wish[] => [
    // Clusters of another zone, of no zone, and those whose name has the right one within.
    ...[ownCluster[other[zone]], exact[other[zone]], "prod-1", `x${zone}-shop`, `${exact[zone]}0`, zone].flatMap(
      (cluster) => [
        ...["GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"].flatMap(
          (action) => [onRow(action, `CL#${cluster}`), onRow(action, `CHECK#${cluster}`)],
        ),
        ...["s3:GetObject", "s3:PutObject"].map((action) => ({
          action,
          resource: `${blobs}/inventories/${cluster}/00.json`,
        })),
        { action: "s3:ListBucket", resource: blobs, prefix: `inventories/${cluster}/00.json` },
      ],
    ),
    onRow("DeleteItem", `CL#${ownCluster[zone]}`),
    ...["GetItem", "PutItem", "UpdateItem"].map((action) => onRow(action, `ZONE#${other[zone]}`)),
    ...["FLEET", "DISCOVERIES", "TICK", "NS#shop#Source", "ROLL#shop#SyncGroup#shop", "REV#shop#shop"].flatMap(
      (partition) => ["GetItem", "PutItem", "UpdateItem"].map((action) => onRow(action, partition)),
    ),
    onRow("PutItem", "NS#shop#SyncGroup"),
    onRow("UpdateItem", "NS#shop#Sync"),
    { action: "dynamodb:Scan", resource: table, partition: `CL#${ownCluster[zone]}` },
    ...["artifacts", "plans", "uploads", "incoming"].flatMap((folder) =>
      ["s3:GetObject", "s3:PutObject"].map((action) => ({ action, resource: `${blobs}/${folder}/00.json` })),
    ),
    { action: "s3:PutObject", resource: `${blobs}/renderings/00.json` },
    { action: "s3:ListBucket", resource: blobs, prefix: "inventories/" },
  ];

  test.each(zones)("the role of %s may use the rows and blobs of its clusters", (zone) => {
    for (const wish of allowed(zone)) expect(mayDo(wish, dataRights(zone)), JSON.stringify(wish)).toBe(true);
  });

  test.each(zones)("the role of %s may use no other rows and blobs", (zone) => {
    for (const wish of refused(zone)) expect(mayDo(wish, dataRights(zone)), JSON.stringify(wish)).toBe(false);
  });

  test.each(zones)(
    "the role of %s may send to the queues of render and report only, and count the messages of the second",
    (zone) => {
      const sqs = dataRights(zone).filter(({ Action }) => listOf(Action).some((action) => action.startsWith("sqs:")));
      const queues = sqs.flatMap(({ Action, Resource: on }) =>
        listOf(on).map((resource) => `${listOf(Action).join()} ${textOf(resource)}`),
      );
      expect(queues.map((grant) => grant.replace(/[0-9A-F]{8}\.Arn/, "")).sort()).toEqual([
        // The check of a zone asks for attributes.
        "sqs:GetQueueAttributes,sqs:SendMessage <WiringToReportQueue>",
        "sqs:SendMessage <WiringToRenderQueue>",
      ]);
    },
  );

  test.each([
    [
      "z2",
      "arn:<AWS::Partition>:iam::444455556666:role/starling-zone-z2",
      "arn:<AWS::Partition>:iam::444455556666:root",
    ],
    [
      "z3",
      "arn:<AWS::Partition>:iam::111122223333:role/starling-zone-z3",
      "arn:<AWS::Partition>:iam::111122223333:root",
    ],
  ] as const)("only the workers of %s may assume it, and no other principal of their account", (zone, by, root) => {
    const { AssumeRolePolicyDocument, RoleName } = dataRole(zone).Properties;
    const { Statement: statements } = AssumeRolePolicyDocument as {
      readonly Statement: readonly {
        readonly Effect: string;
        readonly Action: string;
        readonly Principal: { readonly AWS: unknown };
        readonly Condition: { readonly ArnEquals: Readonly<Record<string, unknown>> };
      }[];
    };
    const [statement, ...others] = statements;
    expect(others).toEqual([]);
    expect(statement).toMatchObject({ Effect: "Allow", Action: "sts:AssumeRole" });
    expect(Object.keys(statement?.Condition ?? {})).toEqual(["ArnEquals"]);
    expect(Object.keys(statement?.Condition.ArnEquals ?? {})).toEqual(["aws:PrincipalArn"]);
    expect(textOf(statement?.Condition.ArnEquals["aws:PrincipalArn"])).toBe(by);
    expect(textOf(statement?.Principal.AWS)).toBe(root);
    // The name of the workers' role is the one of their stack, in their account.
    expect(workerRole(zone).Properties.RoleName).toBe(by.split("/")[1]);
    expect(RoleName).toBe(`starling-data-${zone}`);
  });
});

describe("the workers of a zone elsewhere", () => {
  test.each(zones)(
    "the role of %s may use its own queues, and nothing of the installation but its data role",
    (zone) => {
      const grants = workerRights(zone).flatMap(({ Action, Resource: on }) =>
        listOf(on).flatMap((resource) => listOf(Action).map((action) => `${action} ${textOf(resource)}`)),
      );
      const of = (service: string) => grants.filter((grant) => grant.startsWith(`${service}:`));
      expect([...of("dynamodb"), ...of("s3")]).toEqual([]);
      for (const grant of of("sqs"))
        expect(grant).toMatch(
          /^sqs:\w+ <ZoneToApply(Slow)?Queue\w+\.Arn>$|^sqs:\w+ <ZoneZoneToApply(Slow)?Queue\w+\.Arn>$/,
        );
      expect(of("sts").sort()).toEqual([
        `sts:AssumeRole arn:<AWS::Partition>:iam::111122223333:role/starling-data-${zone}`,
        "sts:AssumeRole arn:<AWS::Partition>:iam::<AWS::AccountId>:role/starling/clusters/*",
      ]);
      expect(of("secretsmanager")).toEqual([
        "secretsmanager:GetSecretValue arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:starling/clusters/*",
      ]);
      const services = new Set(grants.map((grant) => grant.split(":")[0]));
      expect([...services].sort()).toEqual([
        ...(zone === "z3" ? ["ec2"] : []),
        ...["eks", "logs", "secretsmanager", "sqs", "sts"],
      ]);
    },
  );

  test.each(zones)("the workers of %s find the installation by the names of its stacks", (zone) => {
    const { Variables } = worker(zone).Properties.Environment as { readonly Variables: Record<string, unknown> };
    const texts = Object.fromEntries(Object.entries(Variables).map(([name, value]) => [name, textOf(value)]));
    const queue = (name: string) => `https://sqs.eu-central-1.<AWS::URLSuffix>/111122223333/${name}`;
    expect(texts).toMatchObject({
      STARLING_TABLE: homeOfZones.table,
      STARLING_BUCKET: homeOfZones.bucket,
      STARLING_INSTALLATION: "starling.111122223333.eu-central-1",
      STARLING_QUEUE_RENDER: queue("starling-control-ToRender"),
      STARLING_QUEUE_REPORT: queue("starling-control-ToReport"),
      STARLING_ZONE: zone,
      STARLING_DATA_ROLE: `arn:<AWS::Partition>:iam::111122223333:role/starling-data-${zone}`,
      STARLING_HOME_REGION: "eu-central-1",
    });
    const names = ofType(control, "AWS::SQS::Queue").map(({ Properties }) => Properties.QueueName);
    for (const text of [texts.STARLING_QUEUE_RENDER, texts.STARLING_QUEUE_REPORT])
      expect(names).toContain(text?.split("/").at(-1));
    // Workers elsewhere run the code of home.
    expect(worker(zone).Properties.Handler).toBe(functionNamed(control, "apply").Properties.Handler);
    expect((worker(zone).Properties.Code as { readonly S3Key: string }).S3Key).toBe(
      (functionNamed(control, "apply").Properties.Code as { readonly S3Key: string }).S3Key,
    );
  });

  test("the installation sends to the queue of each zone by its name, and counts its dead letters", () => {
    const queues = zones.flatMap((zone) =>
      ofType(workersIn[zone], "AWS::SQS::Queue").map(
        ({ Properties }) => `arn:<AWS::Partition>:sqs:${places[zone]}:${String(Properties.QueueName)}`,
      ),
    );
    const may = (folder: string, action: string) =>
      queues.filter((resource) => mayDo({ action: `sqs:${action}`, resource }, statementsOf(control, folder)));
    const commons = queues.filter((queue) => queue.endsWith("-apply"));
    expect(commons).toHaveLength(2);
    for (const sender of ["tick", "rollout", "api"]) expect(may(sender, "SendMessage")).toEqual(commons);
    for (const none of ["webhook", "discover", "resolve", "render", "report", "dashboard", "apply", "apply-z1"])
      expect(may(none, "SendMessage"), none).toEqual([]);
    expect(may("api", "GetQueueAttributes")).toEqual(queues.filter((queue) => queue.endsWith("-dead")));
    for (const zone of zones) {
      const { Variables } = functionNamed(control, "rollout").Properties.Environment as {
        readonly Variables: Record<string, unknown>;
      };
      const [region, account] = places[zone].split(":");
      expect(textOf(Variables.STARLING_ZONE_QUEUES)).toContain(
        `${zone}=https://sqs.${region}.<AWS::URLSuffix>/${account}/starling-zone-${zone}-apply`,
      );
    }
  });

  test.each(zones)("the queues of %s let in the account of the installation, and no other account", (zone) => {
    const policies = ofType(workersIn[zone], "AWS::SQS::QueuePolicy");
    expect(policies).toHaveLength(4);
    for (const { id, Properties } of policies) {
      const { Statement: statements } = Properties.PolicyDocument as {
        readonly Statement: readonly (Statement & { readonly Principal: unknown })[];
      };
      const allowed = statements.filter(({ Effect }) => Effect === "Allow");
      expect(allowed.map(({ Principal }) => textOf((Principal as { AWS: unknown }).AWS))).toEqual([
        "arn:aws:iam::111122223333:root",
      ]);
      expect(listOf(allowed[0]?.Action ?? [])).toEqual(
        id.includes("DeadLetters") ? ["sqs:GetQueueAttributes"] : ["sqs:GetQueueAttributes", "sqs:SendMessage"],
      );
    }
  });

  test.each(zones)(
    "the stack of %s has the alarm, the log and the dashboard of the zone, and home has an alarm on its clusters only",
    (zone) => {
      const count = (type: string) => ofType(workersIn[zone], type).length;
      expect([
        count("AWS::CloudWatch::Alarm"),
        count("AWS::Logs::LogGroup"),
        count("AWS::CloudWatch::Dashboard"),
        count("AWS::SQS::Queue"),
      ]).toEqual([1, 1, 1, 4]);
      expect(
        control
          .filter(({ id }) => id.startsWith(`WiringZone${zone}`))
          .map(({ Type }) => Type)
          .sort(),
      ).toEqual(["AWS::IAM::Policy", "AWS::IAM::Role"]);
      const alarms = control.filter(({ id }) => id.startsWith(`WiringZoneWatch${zone}`));
      expect(alarms.map(({ Properties }) => Properties.MetricName)).toEqual(["SilentZones"]);
    },
  );

  test.each(zones)(
    "the alarm in the stack of %s names what it measures there, and not what the control stack measures",
    (zone) => {
      const [alarm] = ofType(workersIn[zone], "AWS::CloudWatch::Alarm");
      const says = textOf(alarm?.Properties.AlarmDescription);
      expect(says).toContain(`Zone ${zone} is down: its workers fail, or its messages wait or are dead letters. `);
      expect(JSON.stringify(alarm?.Properties.Metrics)).not.toContain("SilentZones");
    },
  );

  test("a zone elsewhere needs no network, and has one where the setting says so", () => {
    expect(worker("z2").Properties.VpcConfig).toBeUndefined();
    expect(worker("z3").Properties.VpcConfig).toBeDefined();
  });
});

test("clusterNames narrows the role of a zone of the installation's own account, too", () => {
  const rights = statementsOf(control, "apply-z1");
  const may = (cluster: string) => [
    ...["GetItem", "PutItem", "UpdateItem"].map((action) => mayDo(onRow(action, `CL#${cluster}`), rights)),
    mayDo({ action: "s3:GetObject", resource: `${blobs}/inventories/${cluster}/00.json` }, rights),
  ];
  expect(may("z1-shop")).toEqual([true, true, true, true]);
  expect(may("fra-1")).toEqual([true, true, true, true]);
  expect(may("z2-shop")).toEqual([false, false, false, false]);
  const { Variables } = functionNamed(control, "api").Properties.Environment as {
    readonly Variables: Record<string, unknown>;
  };
  expect(Variables.STARLING_ZONE_CLUSTERS).toBe("z1=z1-*+fra-1,z2=z2-*+fra-2,z3=z3-*+fra-3");
});

test("the api knows the kind of each zone's network, and the addresses of those in its own account and region", () => {
  const { Variables } = functionNamed(control, "api").Properties.Environment as {
    readonly Variables: Record<string, unknown>;
  };
  expect(textOf(Variables.STARLING_ZONE_NETWORKS)).toMatch(/^z1=vpc\+<WiringZonez1\w+>,z2=none,z3=vpc$/);
});

test.each([
  ["eu-*", "eu-1", true],
  ["eu-*", "xeu-1", false],
  ["*-eu", "prod-eu", true],
  ["prod-*-1", "prod-eu-1", true],
  ["prod-*-1", "prod-1", false],
  ["prod", "prod-1", false],
  ["*", "anything", true],
])("the pattern %s fits %s: %s", (pattern, name, fits) => expect(fitsClusterPattern(name, pattern)).toBe(fits));

describe("StarlingZone in an app of its own", () => {
  const settings = {
    home: homeOfZones,
    zones: [{ name: "spoke", account: "444455556666", region: "eu-west-1", clusterNames: ["eu-*"] }],
  };
  const made = (env: { account: string; region: string }, zone = "spoke") => {
    const stack = new Stack(new App({ context: { "aws:cdk:bundling-stacks": [] } }), "own", { env });
    return { stack, zone: new StarlingZone(stack, "Zone", { ...settings, zone }) };
  };

  test("it makes the same roles and queues as Starling's own app", async () => {
    const { stack } = made({ account: "444455556666", region: "eu-west-1" });
    const own = (await synthesize({ zones: JSON.stringify(settings.zones), home: JSON.stringify(homeOfZones) }))[
      "starling-zone-spoke"
    ] as Json;
    const names = (resources: Json["Resources"]) =>
      Object.values(resources)
        .map(({ Type, Properties = {} }) => `${Type} ${String(Properties.RoleName ?? Properties.QueueName ?? "")}`)
        .sort();
    expect(names(Template.fromStack(stack).toJSON().Resources as Json["Resources"])).toEqual(names(own.Resources));
  });

  test("an installation in another place than setting home says is refused", () => {
    const app = new App({ context: { "aws:cdk:bundling-stacks": [] } });
    const env = { account: homeOfZones.account, region: "eu-west-2" };
    expect(() => new Starling(app, "Starling", { ...settings, env })).toThrow(
      `stack starling-control has region eu-west-2; expected ${homeOfZones.region}, as setting home says`,
    );
  });

  test.each([
    [
      "another account",
      { account: "999999999999", region: "eu-west-1" },
      "spoke",
      "the stack of zone spoke has account 999999999999; expected 444455556666, as setting zones says",
    ],
    [
      "another region",
      { account: "444455556666", region: "eu-west-2" },
      "spoke",
      "the stack of zone spoke has region eu-west-2; expected eu-west-1, as setting zones says",
    ],
    [
      "a zone that the settings do not have",
      { account: "444455556666", region: "eu-west-1" },
      "other",
      "zone of StarlingZone is other; expected a zone of setting zones with account or region (spoke)",
    ],
  ])("it refuses %s", (_, env, zone, message) => expect(() => made(env, zone)).toThrow(message));
});
