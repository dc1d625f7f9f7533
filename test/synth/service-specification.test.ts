/** The templates have no unknown property, no wrong value and no broken reference, which otherwise only a deployment finds. */
import { readFileSync } from "node:fs";
import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import type { Stacks, Template } from "#local/template/cloudformation.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { templateFaults } from "#test/support/template-faults.ts";
import { mixedZonesOf, zonesOf } from "#test/synth/zones.ts";

describe("AWS accepts every property of the templates, and every reference has a target", () => {
  test.each<[string, Record<string, string>]>([
    ["the settings of cdk.json", {}],
    ["a large fleet in an organization", { clusters: "10000", concurrency: "10000", organization: "o-a1b2c3d4e5" }],
    [
      "alarms by mail, and roles in other accounts",
      { alarmEmail: "on-call@example.com", clusterAccounts: "111122223333" },
    ],
    // One, three and as many zones as the setting allows.
    ...[1, 3, 10].map((count): [string, Record<string, string>] => [`${count} zones`, { zones: zonesOf(count) }]),
    ...[1, 3, 10].map((count): [string, Record<string, string>] => [
      `${count} zones, of which some are in other accounts and regions`,
      mixedZonesOf(count),
    ]),
  ])("with %s", async (_, context) => {
    expect(templateFaults(await synthesize(context))).toEqual([]);
  });

  test.each(["cluster-access/starling-cluster-access", "discovery-access/starling-discovery-access"])(
    "in the template %s, which people deploy by hand",
    (name) => {
      const template = load(readFileSync(`examples/${name}.template.yaml`, "utf8")) as Template;
      expect(templateFaults({ [name]: template })).toEqual([]);
    },
  );
});

describe("the check of the templates finds each kind of fault", () => {
  const queue = (Properties: Record<string, unknown>, more = {}): Stacks => ({
    app: { Resources: { Queue: { Type: "AWS::SQS::Queue", Properties, ...more } } },
  });
  const mapping = (Properties: Record<string, unknown>): Stacks => ({
    app: { Resources: { Map: { Type: "AWS::Lambda::EventSourceMapping", Properties } } },
  });

  const schedule = {
    FlexibleTimeWindow: { Mode: "OFF" },
    ScheduleExpression: "rate(1 minute)",
    Target: { Arn: "a", RoleArn: "b" },
  };

  test.each<[string, Stacks, string]>([
    [
      "a type that does not exist",
      { app: { Resources: { Q: { Type: "AWS::SQS::Qeue" } } } },
      "app Q: there is no resource type AWS::SQS::Qeue",
    ],
    [
      "a property that does not exist",
      queue({ VisibilityTimeOut: 3 }),
      "app Queue.VisibilityTimeOut: there is no such property",
    ],
    [
      "a value of another type",
      queue({ VisibilityTimeout: "soon" }),
      'app Queue.VisibilityTimeout: "soon" is no whole number',
    ],
    ["a list that is none", queue({ Tags: { a: "b" } }), 'app Queue.Tags: {"a":"b"} is no list'],
    ["a tag without a value", queue({ Tags: [{ Key: "a" }] }), 'app Queue.Tags[0]: {"Key":"a"} is no tag'],
    ["a required property that is missing", mapping({}), "app Map.FunctionName: the property is required"],
    [
      "a property inside of another one that does not exist",
      mapping({ FunctionName: "f", ScalingConfig: { Maximum: 2 } }),
      "app Map.ScalingConfig.Maximum: there is no such property",
    ],
    [
      "a word that is not among the allowed ones",
      { app: { Resources: { At: { Type: "AWS::Scheduler::Schedule", Properties: { ...schedule, State: "ON" } } } } },
      'app At.State: "ON" is none of ENABLED, DISABLED',
    ],
    [
      "a reference to nothing",
      queue({ QueueName: { Ref: "Name" } }),
      "app Queue refers to Name: there is no such resource or parameter",
    ],
    [
      "an attribute that does not exist",
      queue({ QueueName: { "Fn::GetAtt": ["Queue", "ARN"] } }),
      "app Queue refers to Queue.ARN: AWS::SQS::Queue has no such attribute",
    ],
    [
      "a name in a text that does not exist",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation fills these in.
      queue({ QueueName: { "Fn::Sub": "a-${Name}-${!kept}-${AWS::Region}" } }),
      "app Queue refers to Name: there is no such resource or parameter",
    ],
    [
      "an output that another stack does not have",
      queue({ QueueName: { "Fn::GetStackOutput": { StackName: "state", OutputName: "Name" } } }),
      "app Queue refers to the output Name of state: there is no such output",
    ],
    [
      "an output that no nested stack has",
      {
        app: {
          Resources: {
            Network: { Type: "AWS::CloudFormation::Stack", Properties: { TemplateURL: "https://network.example" } },
            Queue: {
              Type: "AWS::SQS::Queue",
              Properties: { QueueName: { "Fn::GetAtt": ["Network", "Outputs.Name"] } },
            },
          },
        },
      },
      "app Queue refers to Network.Outputs.Name: no nested stack has that output",
    ],
    [
      "a dependence on nothing",
      queue({}, { DependsOn: ["Topic"] }),
      "app Queue depends on Topic: there is no such resource",
    ],
    [
      "a condition that does not exist",
      queue({}, { Condition: "Prod" }),
      "app Queue refers to the condition Prod: there is no such condition",
    ],
  ])("%s", (_, stacks, fault) => {
    expect(templateFaults(stacks)).toEqual([expect.stringContaining(fault)]);
  });
});
