/** The template of a zone for StackSets makes what the CDK makes, and needs no bootstrap. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, test } from "vitest";
import { openPromise } from "yauzl";
import { zipOf } from "#infra/zone-template/zip.ts";
import { zoneTemplate } from "#infra/zone-template/zone-template.ts";
import type { Template } from "#local/template/cloudformation.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { commandsOf, pageBlocks } from "#test/support/page-commands.ts";
import { templateFaults } from "#test/support/template-faults.ts";
import { homeOfZones, mixedZonesOf } from "#test/synth/zones.ts";

const outdir = mkdtempSync(join(tmpdir(), "starling-zone-template-"));
afterAll(() => rmSync(outdir, { recursive: true, force: true }));
const template = zoneTemplate({ outdir, bundles: false }).template as Template;

const parameters = {
  ZoneName: "z2",
  Installation: "starling",
  HomeAccount: homeOfZones.account,
  HomeRegion: homeOfZones.region,
  Table: homeOfZones.table,
  Bucket: homeOfZones.bucket,
  ClusterNames: ["z2-*", "fra-2"],
  CodeBucket: "code",
  CodeKey: "starling-zone.zip",
  SubnetIds: [""],
  SecurityGroupIds: [""],
  ApplyConcurrency: 2,
  ApplySlowConcurrency: 2,
  ClusterRoles: "",
  AlarmTopicArn: "",
  "AWS::AccountId": "444455556666",
  "AWS::Region": "us-east-1",
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
  "AWS::NoValue": undefined,
} satisfies Readonly<Record<string, unknown>>;

type Given = Readonly<Record<string, unknown>>;

/** Replaces parameters and conditions by values, and joins texts. */
function resolved(value: unknown, given: Given, conditions: Given): unknown {
  const inner = (each: unknown): unknown => resolved(each, given, conditions);
  if (Array.isArray(value)) return value.map(inner);
  if (typeof value !== "object" || value === null) return value;
  const [[intrinsic, argument] = []] = Object.entries(value);
  if (intrinsic === "Ref") return String(argument) in given ? given[String(argument)] : { Ref: argument };
  if (intrinsic === "Fn::Join") {
    const [between, parts] = argument as [string, unknown];
    const all = inner(parts) as readonly unknown[];
    return all.map((part) => (typeof part === "object" ? JSON.stringify(part) : part)).join(between);
  }
  if (intrinsic === "Fn::If") {
    const [condition, yes, no] = argument as [string, unknown, unknown];
    return inner(inner(conditions[condition]) === true ? yes : no);
  }
  if (intrinsic === "Fn::Not") return (inner(argument) as unknown[])[0] !== true;
  if (intrinsic === "Fn::Equals") {
    const [one, other] = inner(argument) as unknown[];
    return one === other;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => {
      const made = inner(each);
      return made === undefined ? [] : [[key, made]];
    }),
  );
}

/** The resources with their values, without the digests in logical ids, without tags and code. */
function resourcesOf({ Resources, Conditions = {} }: Template & { readonly Conditions?: Given }, given: Given) {
  const text = JSON.stringify(resolved(Resources, given, Conditions));
  const plain = text.replaceAll(
    /(?<=Zone[A-Za-z]*?(?:starlingzone(?:z2)?Zone\w*?Queue)?[0-9A-F]{0,8})[0-9A-F]{8}(?=[".\\])/g,
    "",
  );
  return Object.entries(JSON.parse(plain.replaceAll("starlingzonez2", "starlingzone")) as Template["Resources"])
    .filter(([, { Type }]) => Type !== "AWS::CDK::Metadata")
    .map(([, { Type, Properties = {} }]) => {
      const { Tags: _tags, Code: _code, PolicyName: _name, ...others } = Properties;
      return JSON.stringify({ Type, ...others }).replaceAll(/[0-9A-F]{8}/g, "");
    })
    .sort();
}

test.each([
  [["--help"], "--help"],
  [["a", "b"], "b"],
])("npm run zone-template with %j writes nothing", (given, wrong) => {
  const ran = spawnSync(process.execPath, [resolve("infra/bin/zone-template.ts"), ...given], {
    encoding: "utf8",
    cwd: outdir,
  });
  expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining(`error: "${wrong}" is no folder`) });
  expect(readdirSync(outdir)).not.toContain(given[0]);
});

describe("the template of a zone", () => {
  test("AWS accepts every property of the template, and every reference has a target", () => {
    expect(templateFaults({ "starling-zone": template })).toEqual([]);
  });

  test("the template uses nothing of the CDK's bootstrap: the code is in a bucket of its parameters", () => {
    expect(JSON.stringify(template)).not.toMatch(/cdk-hnb659fds|BootstrapVersion|AssetParameters/);
    const code = Object.values(template.Resources).flatMap(({ Properties = {} }) => Properties.Code ?? []);
    expect(code).toEqual([{ S3Bucket: { Ref: "CodeBucket" }, S3Key: { Ref: "CodeKey" } }]);
  });

  test.each([
    ["ClusterNames", ["eu-*", "*", "none", "prod-eu-1"], ["EU-*", "eu_1", "-eu", "eu.1", ""]],
    ["SubnetIds", ["subnet-0a1b2c3d4e5f60718", ""], ["vpc-0a1b2c3d4e5f60718", "subnet-1", "spoke"]],
    ["SecurityGroupIds", ["sg-0a1b2c3d4e5f60718", ""], ["subnet-0a1b2c3d4e5f60718", "sg-1"]],
  ])("each value of parameter %s is as in the settings", (name, right, wrong) => {
    const { Parameters = {} } = template as {
      readonly Parameters?: Record<string, { readonly AllowedPattern?: string }>;
    };
    const { AllowedPattern = "" } = Parameters[name] ?? {};
    const taken = [...right, ...wrong].filter((value) => new RegExp(AllowedPattern).test(value));
    expect(taken).toEqual(right);
  });

  test("with the values of a zone, the template makes what the CDK makes for the zone", async () => {
    const made = (await synthesize(mixedZonesOf(3)))["starling-zone-z2"];
    if (made === undefined) throw new Error("zone z2 has no stack");
    const own = resourcesOf(template, parameters);
    const ofCdk = resourcesOf(made, parameters);
    // A zone without subnets may manage interfaces by the template only, which does not know whether it gets subnets.
    const withoutInterfaces = own.map((each) => each.replace(/,\{"Action":\["ec2:[^}]*\}/, ""));
    expect(withoutInterfaces).toEqual(ofCdk);
  });

  test.each([
    ["", "prod/clusters/*"],
    ["teams/starling-*", "teams/starling-*"],
  ])("with the installation prod and the roles %j, the workers may assume roles %s", (ClusterRoles, names) => {
    const made = resourcesOf(template, { ...parameters, Installation: "prod", ClusterRoles }).join("\n");
    expect(made).toContain(`:role/${names}"`);
    expect(made).not.toContain("role/starling/clusters");
  });

  test("with subnets and a topic, the workers are in the subnets, and the alarm goes to the topic", () => {
    const given = { ...parameters, SubnetIds: ["subnet-1"], SecurityGroupIds: ["sg-1"], AlarmTopicArn: "topic" };
    const made = resourcesOf(template, given).join("\n");
    expect(made).toContain('"VpcConfig":{"SubnetIds":["subnet-1"],"SecurityGroupIds":["sg-1"]}');
    expect(made).toContain('"STARLING_ZONE_SECURITY_GROUPS":"sg-1"');
    expect(made).toContain('"AlarmActions":["topic"]');
    expect(made).toContain('"OKActions":["topic"]');
  });
});

describe("docs/tasks/zones-in-other-accounts.md", () => {
  const blocks = pageBlocks("tasks/zones-in-other-accounts.md");
  const commands = blocks.filter(({ info }) => info === "sh account").flatMap(commandsOf);

  test("the settings of the page make the stack that its commands deploy", async () => {
    const { context } = JSON.parse(blocks.find(({ info }) => info === "json")?.text ?? "") as {
      readonly context: Readonly<Record<string, unknown>>;
    };
    const stacks = await synthesize(
      Object.fromEntries(Object.entries(context).map(([name, value]) => [name, JSON.stringify(value)])),
    );
    const deployed = commands.flatMap((command) => /^npx cdk deploy (\S+)/.exec(command)?.[1] ?? []);
    expect(deployed).toEqual(["starling-control", "starling-zone-spoke-eu"]);
    for (const stack of deployed) expect(Object.keys(stacks)).toContain(stack);
    expect(Object.keys(stacks["starling-control"]?.Outputs ?? {})).toContain("ZoneSpokeEuRole");
    expect(Object.keys(stacks["starling-zone-spoke-eu"]?.Outputs ?? {}).sort()).toEqual([
      "Dashboard",
      "Role",
      "Version",
    ]);
  });

  test("the commands of the page give the template each parameter that has no default, and none that it lacks", () => {
    const { Parameters } = template as unknown as {
      readonly Parameters: Record<string, { readonly Default?: unknown }>;
    };
    const required = Object.keys(Parameters).filter((name) => Parameters[name]?.Default === undefined);
    const given = (start: string, name: RegExp) => {
      const command = commands.find((each) => each.startsWith(start)) ?? "";
      return [...command.matchAll(name)].map(([, parameter = ""]) => parameter);
    };
    const deployed = given("aws cloudformation deploy", / "?([A-Z]\w+)=/g);
    const inSet = given("aws cloudformation create-stack-set", /ParameterKey=(\w+)/g);
    const ofInstance = given("aws cloudformation create-stack-instances", /ParameterKey=(\w+)/g);
    for (const names of [deployed, inSet]) {
      expect(names).toEqual(expect.arrayContaining(required));
      expect(Object.keys(Parameters)).toEqual(expect.arrayContaining(names));
    }
    expect(inSet).toEqual(expect.arrayContaining(ofInstance));
  });
});

test("a zip has its files with their contents, which other readers find", async () => {
  const files = new Map([
    ["index.mjs", Buffer.from("export const handler = 1;\n".repeat(1000))],
    ["folder/empty", Buffer.alloc(0)],
  ]);
  const path = join(outdir, "code.zip");
  writeFileSync(path, zipOf(files));
  const zip = await openPromise(path);
  const read = new Map<string, string>();
  for await (const entry of zip.eachEntry()) {
    read.set(entry.fileName, await text(await zip.openReadStreamPromise(entry)));
  }
  zip.close();
  expect(Object.fromEntries(read)).toEqual({
    "index.mjs": "export const handler = 1;\n".repeat(1000),
    "folder/empty": "",
  });
});
