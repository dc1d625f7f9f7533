/** The setting `zones` gives each zone parts of its own in the templates, and a zone touches nothing of another one. */
import { readFileSync } from "node:fs";
import { App, Stack } from "aws-cdk-lib";
import { SecurityGroup, Vpc } from "aws-cdk-lib/aws-ec2";
import { describe, expect, test } from "vitest";
import { Starling } from "#infra/starling.ts";
import { besideQueue, zoneQueues } from "#shared/fleet/zone-parts.ts";
import { alarmState, type Sample } from "#test/support/alarm-state.ts";
import { mayDo, statementsOf } from "#test/support/policy-guard.ts";
import {
  functionNamed,
  listOf,
  ofType,
  type Resource,
  resourcesIn,
  synthesizeTemplates,
  textOf,
} from "#test/synth/synthesized.ts";
import { zonesOf } from "#test/synth/zones.ts";

const names = ["z1", "z2", "z3"] as const;
const workers = ["apply", ...names.map((name) => `apply-${name}`)] as const;
const { resources, control } = await synthesizeTemplates({ zones: zonesOf(3) });
const { resources: without } = await synthesizeTemplates();

/** The queues of a worker, as policies name them. */
function queuesOf(worker: string): readonly string[] {
  const [, zone] = worker.split("-");
  const place = zone === undefined ? "Wiring" : `WiringZone${zone}`;
  return ["ToApply", "ToApplySlow"].map((queue) => `<${place}${queue}Queue>`);
}

describe("the role of a zone's workers", () => {
  const actions = ["SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"];
  const pairs = workers.flatMap((worker) => workers.map((other) => [worker, other] as const));

  test.each(pairs)("%s may use the queues of %s only if they are its own", (worker, other) => {
    for (const resource of queuesOf(other))
      for (const action of actions)
        expect(
          mayDo({ action: `sqs:${action}`, resource }, statementsOf(resources, worker)),
          `${action} ${resource}`,
        ).toBe(worker === other);
  });

  test("besides queues and the interfaces of its network, a zone has the grants of home and no more", () => {
    const grants = (worker: string) =>
      statementsOf(resources, worker)
        .flatMap(({ Action, Resource, Condition }) =>
          listOf(Action).flatMap((action) =>
            listOf(Resource).map((on) => `${action} ${textOf(on)} ${JSON.stringify(Condition ?? {})}`),
          ),
        )
        .filter((grant) => !/^(ec2:|logs:)/.test(grant) && !queuesOf(worker).some((queue) => grant.includes(queue)))
        .sort();
    // The row of a zone is its own.
    const home = (name: string) => grants("apply").map((grant) => grant.replace("ZONE#home", `ZONE#${name}`));
    for (const name of names) expect(grants(`apply-${name}`)).toEqual(home(name).sort());
    for (const worker of workers)
      expect(
        statementsOf(resources, worker).some(({ Action }) => listOf(Action).includes("ec2:CreateNetworkInterface")),
      ).toBe(worker !== "apply");
  });

  test.each(["tick", "rollout", "api"])("%s may send to each zone's queue, and to no slow one", (sender) => {
    for (const worker of workers) {
      const [common = "", slow = ""] = queuesOf(worker);
      const sends = (resource: string) =>
        mayDo({ action: "sqs:SendMessage", resource }, statementsOf(resources, sender));
      expect([sends(common), sends(slow)]).toEqual([true, false]);
    }
  });

  test.each(["webhook", "discover", "resolve", "render", "build", "report", "dashboard"])(
    "%s may send to no queue of a zone",
    (sender) => {
      for (const resource of workers.flatMap(queuesOf))
        expect(mayDo({ action: "sqs:SendMessage", resource }, statementsOf(resources, sender))).toBe(false);
    },
  );

  test("without the setting, nothing of a zone is in the templates", () => {
    expect(without.filter(({ id }) => /Zone/.test(id))).toEqual([]);
    expect(JSON.stringify(without)).not.toMatch(/STARLING_ZONE_QUEUES|VpcConfig/);
  });
});

describe("the network of a zone", () => {
  test("each zone's worker runs in its network, and all other functions run outside of every VPC", () => {
    const inside = ofType(resources, "AWS::Lambda::Function").filter(
      ({ Properties }) => Properties.VpcConfig !== undefined,
    );
    expect(inside.map(({ id }) => id).sort()).toEqual(
      names.map((name) => functionNamed(resources, `apply-${name}`).id),
    );
    expect(functionNamed(resources, "apply-z2").Properties.VpcConfig).toEqual({
      SubnetIds: ["subnet-00000000000000002", "subnet-00000000000000003"],
      SecurityGroupIds: ["sg-00000000000000001"],
    });
  });

  test("all workers run the same code", () => {
    const codes = workers.map((worker) => JSON.stringify(functionNamed(resources, worker).Properties.Code));
    expect(new Set(codes).size).toBe(1);
  });

  test("the control stack has room for the most zones that the setting allows", async () => {
    const { control: largest } = await synthesizeTemplates({ zones: zonesOf(10) });
    expect(resourcesIn(largest).length).toBeLessThan(490);
    expect(JSON.stringify(largest.toJSON()).length).toBeLessThan(1_000_000);
  });

  test.each([
    ["that the context has", true],
    ["that the CDK has not looked up yet, so that the command line can do it", false],
  ])("a zone takes the subnets of Vpc.fromLookup %s", (_, isKnown) => {
    const env = { account: "111122223333", region: "eu-west-1" };
    const subnet = (index: number) => ({
      subnetId: `subnet-${String(index).padStart(17, "0")}`,
      cidr: `10.0.${index}.0/24`,
      availabilityZone: `eu-west-1${"ab"[index]}`,
      routeTableId: "rtb-00000000000000001",
    });
    const found = {
      vpcId: "vpc-00000000000000001",
      vpcCidrBlock: "10.0.0.0/16",
      ownerAccountId: env.account,
      availabilityZones: [],
      subnetGroups: [{ name: "Private", type: "Private", subnets: [subnet(0), subnet(1)] }],
    };
    const key =
      "vpc-provider:account=111122223333:filter.vpc-id=vpc-00000000000000001:region=eu-west-1:returnAsymmetricSubnets=true";
    const { context } = JSON.parse(readFileSync("cdk.json", "utf8")) as { context: Record<string, unknown> };
    const app = new App({
      context: {
        ...context,
        "aws:cdk:bundling-stacks": [],
        // It refuses the ids that the CDK itself puts in place of unknown ones.
        "@aws-cdk/core:validateAgainstDefaultRules": isKnown,
        ...(isKnown ? { [key]: found } : {}),
      },
    });
    const network = new Stack(app, "network", { env });
    const vpc = Vpc.fromLookup(network, "Vpc", { vpcId: found.vpcId });
    const group = new SecurityGroup(network, "Group", { vpc });
    const { subnetIds } = vpc.selectSubnets();
    new Starling(app, "Starling", {
      env,
      zones: [{ name: "spoke", subnets: [...subnetIds], securityGroups: [group.securityGroupId] }],
    });
    const assembly = app.synth();
    expect(assembly.manifest.missing ?? []).toHaveLength(isKnown ? 0 : 1);
    const template = assembly.getStackByName("starling-control").template as {
      Resources: Record<string, { Type: string; Properties?: { VpcConfig?: { SubnetIds: readonly string[] } } }>;
    };
    const inside = Object.values(template.Resources).flatMap(
      ({ Properties }) => Properties?.VpcConfig?.SubnetIds ?? [],
    );
    expect(inside).toEqual(isKnown ? [subnet(0).subnetId, subnet(1).subnetId] : ["p-12345", "p-67890"]);
  });
});

describe("the dashboards, logs and dead letters of a zone", () => {
  const bodyOf = (type: string) => JSON.stringify(ofType(resources, type));

  test("the dashboard of operations has the queues, the dead letters and the function of each zone", () => {
    const [operations] = ofType(resources, "AWS::CloudWatch::Dashboard").filter(({ id }) => id.includes("Operations"));
    const body = textOf(operations?.Properties.DashboardBody);
    const ofZones = resources.filter(
      ({ id, Type }) => id.startsWith("WiringZonez") && /SQS::Queue$|Lambda::Function/.test(Type),
    );
    expect(ofZones).toHaveLength(3 * 5);
    for (const { id } of ofZones) expect(body, id).toContain(id);
  });

  test("the saved queries and the log search of the api read the log of each zone's workers", () => {
    const { Variables } = functionNamed(resources, "api").Properties.Environment as {
      Variables: Record<string, unknown>;
    };
    const searched = statementsOf(resources, "api").find(({ Action }) =>
      listOf(Action).includes("logs:FilterLogEvents"),
    );
    const queues = zoneQueues(textOf(Variables.STARLING_ZONE_QUEUES), "https://sqs.us-east-1.amazonaws.com/1/home");
    for (const name of names) {
      const { LogGroup } = functionNamed(resources, `apply-${name}`).Properties.LoggingConfig as {
        LogGroup: { Ref: string };
      };
      const [own] = ofType(resources, "AWS::Logs::LogGroup").filter(({ id }) => id === LogGroup.Ref);
      expect(own?.Properties.LogGroupName).toBe(besideQueue(queues.get(name) ?? "").log);
      expect(bodyOf("AWS::Logs::QueryDefinition")).toContain(LogGroup.Ref);
      expect(JSON.stringify(searched)).toContain(LogGroup.Ref);
    }
  });

  test("starling doctor may count the dead letters of each zone, and knows them by the zone", () => {
    const { Variables } = functionNamed(resources, "api").Properties.Environment as {
      Variables: Record<string, unknown>;
    };
    const queues = zoneQueues(textOf(Variables.STARLING_ZONE_QUEUES), "https://sqs.us-east-1.amazonaws.com/1/home");
    const dead = names.flatMap((name) => {
      const { deadLetters, slowDeadLetters } = besideQueue(queues.get(name) ?? "");
      return [deadLetters, slowDeadLetters].map((url) => url.slice(url.lastIndexOf("/") + 1));
    });
    const counting = ofType(resources, "AWS::SQS::Queue").filter(({ Properties }) =>
      dead.includes(String(Properties.QueueName)),
    );
    expect(counting).toHaveLength(dead.length);
    const counted = JSON.stringify(
      statementsOf(resources, "api").filter(({ Action }) => listOf(Action).includes("sqs:GetQueueAttributes")),
    );
    for (const { id } of counting) expect(counted).toContain(id);
  });
});

describe("the alarms of a zone", () => {
  const own = ofType(resources, "AWS::CloudWatch::Alarm").filter(({ id }) => id.startsWith("WiringZone"));
  const now = 1_795_000_000;
  const down = (name: string) => {
    const found = own.find(({ id }) => id.startsWith(`WiringZoneWatch${name}Down`));
    if (found === undefined) throw new Error(`zone ${name} has no alarm`);
    return found;
  };
  const idOf = (start: string) => resources.find(({ id }) => id.startsWith(start) && !id.includes("Policy"))?.id ?? "";
  const during = (periods: number, of: Omit<Sample, "atSeconds">): readonly Sample[] =>
    Array.from({ length: periods }, (_, index) => ({ ...of, atSeconds: now - index * 300 - 1 }));
  const sqs = (id: string, name: string, value: number) => ({
    namespace: "AWS/SQS",
    name,
    dimensions: { QueueName: `<${id}.QueueName>` },
    value,
  });
  const errors = (zone: string) => ({
    namespace: "AWS/Lambda",
    name: "Errors",
    dimensions: { FunctionName: `<${functionNamed(resources, `apply-${zone}`).id}>` },
    value: 1,
  });
  const age = (zone: string, queue: string, seconds: number) =>
    sqs(idOf(`WiringZone${zone}${queue}Queue`), "ApproximateAgeOfOldestMessage", seconds);
  const letters = (zone: string, queue: string) =>
    sqs(idOf(`WiringZone${zone}${queue}DeadLetters`), "ApproximateNumberOfMessagesVisible", 1);
  const calls = (zone: string) => ({ ...errors(zone), name: "Invocations" });
  const starling = (name: string, dimensions: Readonly<Record<string, string>>, value: number) => {
    const installation = "starling.<AWS::AccountId>.<AWS::Region>";
    return { namespace: "Starling", name, dimensions: { service: "tick", installation, ...dimensions }, value };
  };
  const silent = (zone: string) => starling("SilentZones", { zone }, 1);
  const state = (samples: readonly Sample[]) => alarmState(down("z1"), samples, { nowSeconds: now });

  test("a zone has one alarm, and no alarm of home reads its metrics", () => {
    expect(own.map(({ id }) => id.slice(0, -8)).sort()).toEqual(names.map((name) => `WiringZoneWatch${name}Down`));
    const others = ofType(resources, "AWS::CloudWatch::Alarm").filter((alarm) => !own.includes(alarm));
    expect(JSON.stringify(others)).not.toContain("WiringZonez");
  });

  test.each([
    ["its workers fail", errors("z1")],
    ["a message waits for more than half an hour", age("z1", "ToApply", 1801)],
    ["a message for a slow cluster waits for more than half an hour", age("z1", "ToApplySlow", 1801)],
    ["a message is a dead letter", letters("z1", "ToApply")],
    ["a message for a slow cluster is a dead letter", letters("z1", "ToApplySlow")],
    ["its queue takes no messages, or its workers run and reach none of its clusters", silent("z1")],
    ["a message waits for more than five minutes, and no worker is called", age("z1", "ToApply", 301)],
  ])("the alarm rings when for a quarter of an hour %s", (_, sample) => {
    expect(state(during(3, sample))).toBe("ALARM");
    expect(state(during(2, sample))).toBe("OK");
  });

  test("all of it at once is one alarm, and one cause after another too", () => {
    const [first, second, third] = [errors("z1"), letters("z1", "ToApply"), age("z1", "ToApply", 5000)].map((sample) =>
      during(3, sample),
    );
    expect(state([...(first ?? []).slice(2), ...(second ?? []).slice(1, 2), ...(third ?? []).slice(0, 1)])).toBe(
      "ALARM",
    );
  });

  test.each([
    ["nothing was measured", []],
    [
      "messages wait for half an hour, and workers are called",
      [...during(3, age("z1", "ToApply", 1800)), ...during(3, calls("z1"))],
    ],
    ["messages wait for five minutes, and no worker is called", during(3, age("z1", "ToApply", 300))],
    [
      "another zone is down",
      [...during(3, errors("z2")), ...during(3, letters("z3", "ToApply")), ...during(3, silent("z2"))],
    ],
  ])("the alarm is silent when %s", (_, samples) => expect(state(samples)).toBe("OK"));

  const fleet = () => {
    const [found] = ofType(resources, "AWS::CloudWatch::Alarm").filter(({ id }) => /FleetWatchUnreachable/.test(id));
    if (found === undefined) throw new Error("there is no such alarm");
    return found;
  };

  test.each<[string, () => Resource, Omit<Sample, "atSeconds">]>([
    ["a zone", () => down("z1"), silent("z1")],
    ["unreachable clusters", fleet, starling("Targets", { state: "unreachable" }, 1)],
  ])("the alarm of %s does not end while surveys are a minute late", (_, alarm, sample) => {
    const minutes = Array.from({ length: 12 }, (_each, survey) => 6 * survey);
    const samples = minutes.map((minute) => ({ ...sample, atSeconds: now + 60 * minute }));
    // CloudWatch evaluates each minute.
    for (let minute = 20; minute <= 60; minute++)
      expect(alarmState(alarm(), samples, { nowSeconds: now + 60 * minute }), `minute ${minute}`).toBe("ALARM");
  });

  test("the alarm on unreachable clusters leaves out those of zones that are down, and rings for the others", () => {
    const rings = (unreachable: number, inZones: number) =>
      alarmState(
        fleet(),
        [
          starling("Targets", { state: "ready" }, 100 - unreachable),
          starling("Targets", { state: "unreachable" }, unreachable),
          starling("UnreachableInZones", {}, inZones),
        ].flatMap((sample) => during(3, sample)),
        { nowSeconds: now },
      );
    expect(rings(40, 40)).toBe("OK");
    expect(rings(40, 30)).toBe("OK");
    expect(rings(40, 29)).toBe("ALARM");
  });

  test("its description names the zone, all that it measures and the section of the runbook", () => {
    expect(textOf(down("z2").Properties.AlarmDescription)).toMatch(
      /^Zone z2 is down: its workers fail, they reach none of its clusters, its queue takes no messages, or its messages wait or are dead letters\. .* docs\/runbook\.md#zone-down$/,
    );
  });
});

test("the outputs name the role of each zone, and the addresses of new networks", () => {
  const { Outputs } = control.toJSON() as { Outputs: Record<string, unknown> };
  expect(
    Object.keys(Outputs)
      .filter((name) => name.startsWith("Zone"))
      .sort(),
  ).toEqual(["ZoneZ1Addresses", "ZoneZ1Role", "ZoneZ2Role", "ZoneZ3Addresses", "ZoneZ3Role"]);
});

test("no deployed worker may reach addresses of its own machine", () => {
  const environments = ofType(resources, "AWS::Lambda::Function").map(({ Properties }) => Properties.Environment);
  expect(environments.length).toBeGreaterThan(3);
  expect(JSON.stringify(environments)).not.toContain("STARLING_CLUSTER_ALLOW");
});

const tenZones = Array.from({ length: 10 }, (_, index) => ({
  name: `zone-of-18-chars-${String.fromCharCode(97 + index)}`,
  vpc: { cidr: `10.${index}.0.0/24`, natGateways: 2 },
}));
const manyNames = Array.from({ length: 10 }, (_, index) => `production-of-europe-central-${index}-*`);

/** The form of an id of a VPC, with a number. */
const vpcId = (number: number) => `vpc-${String(number).padStart(17, "0")}`;

test.each([
  ["ten zones with the longest names", () => ({}), []],
  [
    "ten long patterns of clusters in each of ten zones",
    () => ({ clusterNames: manyNames }),
    ["Tick", "Api", "Rollout", "Apply"],
  ],
  [
    "five VPCs and six long patterns of clusters in each of ten zones",
    (zone: number) => ({
      clusterNames: manyNames.slice(0, 6),
      vpcs: Array.from({ length: 5 }, (_, index) => vpcId(5 * zone + index)),
    }),
    ["Api", "Discover"],
  ],
])("with %s, the synthesis warns of each function whose variables Lambda would refuse", (_, fields, functions) => {
  const app = new App({ context: { "aws:cdk:bundling-stacks": [] } });
  const zones = tenZones.map((zone, index) => ({ ...zone, ...fields(index) }));
  const { control: stack } = new Starling(app, "Starling", { zones });
  const warnings = stack.node
    .findAll()
    .flatMap(({ node }) => node.metadata)
    .filter(({ type, data }) => type === "aws:cdk:warning" && String(data).includes("the variables of function"));
  expect(warnings.map(({ data }) => String(data))).toEqual(
    functions.map((name) =>
      expect.stringMatching(
        new RegExp(
          `^the variables of function \\S+/${name}/Function have about \\d{4} bytes, but Lambda takes 4096; the longest are STARLING_ZONE_CLUSTERS \\(\\d{4}\\) and STARLING_\\w+ \\(\\d{3,4}\\): shorten the settings that they come from, such as the lists clusterNames and vpcs of setting zones`,
        ),
      ),
    ),
  );
});

test("a deployment updates the workers before the functions that put clusters into zones", () => {
  const { Resources } = control.toJSON() as { Resources: Record<string, { readonly DependsOn?: readonly string[] }> };
  for (const name of ["api", "discover"])
    for (const worker of workers) {
      const { id } = functionNamed(resources, name);
      expect(Resources[id]?.DependsOn, `${name} after ${worker}`).toContain(functionNamed(resources, worker).id);
    }
});
