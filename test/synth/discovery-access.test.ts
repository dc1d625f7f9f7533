/** The construct, the CloudFormation template and the Terraform module make the same role for discovery, with the settings given. */
import { readFileSync } from "node:fs";
import { App, Stack, Validations } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { AwsSolutionsChecks } from "cdk-nag";
import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import { discoveryFiles } from "#infra/cluster-access/discovery-files.ts";
import {
  StarlingDiscoveryAccess,
  type StarlingDiscoveryAccessProps,
} from "#infra/constructs/starling-discovery-access.ts";
import { arnOf, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";
import { commandsOf, pageBlocks } from "#test/support/page-commands.ts";
import { terraformModule } from "#test/support/terraform-module.ts";

const discoverRole = "arn:aws:iam::999988887777:role/starling-control-Discover";
const props: StarlingDiscoveryAccessProps = {
  discoverRole,
  installationId: "starling.999988887777.eu-west-1",
  discovery: "fleet",
};
const env = { account: "111122223333", region: "eu-west-2" };
const everything = { parameterPath: "/starling/clusters", organization: true } as const;

interface Statement {
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

/** The resources that each of the three makes. */
interface Made {
  readonly role: Readonly<Record<string, unknown>>;
  readonly policies: Readonly<Record<string, readonly Statement[]>>;
}

type Resources = Readonly<
  Record<
    string,
    { readonly Type: string; readonly Condition?: string; readonly Properties: Readonly<Record<string, unknown>> }
  >
>;

function stackWith(more: Partial<StarlingDiscoveryAccessProps>, app = new App({ analyticsReporting: false })): Stack {
  const stack = new Stack(app, "S", { env });
  new StarlingDiscoveryAccess(stack, "Access", { ...props, ...more });
  return stack;
}

function byConstruct(more: Partial<StarlingDiscoveryAccessProps>): Made {
  const resources = Template.fromStack(stackWith(more)).toJSON().Resources as Resources;
  return madeOf(resources, { "AWS::Partition": "aws" });
}

function madeOf(resources: Resources, given: Readonly<Record<string, string>>): Made {
  const all = Object.entries(resolved(resources, given) as Resources).map(([id, resource]) => ({ id, ...resource }));
  const [role, ...others] = all.filter(({ Type }) => Type === "AWS::IAM::Role");
  const policies = all.filter(({ Type }) => Type === "AWS::IAM::RolePolicy");
  expect([others.length, all.length]).toEqual([0, policies.length + 1]);
  for (const { Properties } of policies) expect(Properties.RoleName).toBe(`<${role?.id}>`);
  return {
    role: role?.Properties ?? {},
    policies: Object.fromEntries(
      policies.map(({ Properties: { PolicyName, PolicyDocument } }) => [PolicyName, statementsOf(PolicyDocument)]),
    ),
  };
}

function statementsOf(document: unknown): readonly Statement[] {
  return (document as { readonly Statement: readonly Statement[] }).Statement;
}

/** Replaces parameters by values, and joins texts. */
function resolved(value: unknown, given: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, given));
  if (typeof value !== "object" || value === null) return value;
  const { Ref, "Fn::Join": join } = value as { readonly Ref?: string; readonly "Fn::Join"?: [string, unknown[]] };
  if (Ref !== undefined) return given[Ref] ?? `<${Ref}>`;
  if (join !== undefined) return join[1].map((part) => resolved(part, given)).join(join[0]);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, given)]));
}

const listing = {
  Effect: "Allow",
  Action: ["eks:ListClusters", "eks:DescribeCluster", "tag:GetResources"],
  Resource: "*",
};
const reading = {
  Effect: "Allow",
  Action: "ssm:GetParametersByPath",
  Resource: [
    "arn:aws:ssm:*:111122223333:parameter/starling/clusters",
    "arn:aws:ssm:*:111122223333:parameter/starling/clusters/*",
  ],
};
const members = {
  Effect: "Allow",
  Action: ["organizations:ListAccountsForParent", "organizations:ListOrganizationalUnitsForParent"],
  Resource: "*",
};

describe("StarlingDiscoveryAccess", () => {
  test("the construct makes a role that the discover role may assume for this ClusterDiscovery only, and that lists clusters", () => {
    const { role, policies } = byConstruct({});
    expect(role).toEqual({
      Path: "/starling/discovery/",
      RoleName: "scan",
      Description: "Assumed by Starling, to find the EKS clusters of this account",
      AssumeRolePolicyDocument: {
        Version: "2012-10-17",
        Statement: [
          {
            Effect: "Allow",
            Action: "sts:AssumeRole",
            Principal: { AWS: discoverRole },
            Condition: { StringEquals: { "sts:ExternalId": "starling.999988887777.eu-west-1/discovery/fleet" } },
          },
        ],
      },
    });
    expect(policies).toEqual({ "list-clusters": [listing] });
  });

  test("the role may read parameters below a path and list accounts when the properties say so", () => {
    const { policies } = byConstruct(everything);
    expect(policies).toEqual({
      "list-clusters": [listing],
      "read-parameters": [reading],
      "list-accounts": [members],
    });
  });

  test("the role allows exactly the calls of a scan", async () => {
    const world = await startDiscoveryWorld();
    const account = "500000000001";
    world.trust(account, "fleet");
    world.organize({
      account,
      units: new Map([["r-ab12", { units: [], accounts: [{ id: account, state: "ACTIVE" }] }]]),
    });
    world.add(arnOf("a", account));
    const organization = { account, ous: ["r-ab12"] };
    const values = { ssm: { path: "/starling/clusters/{{ eks.name }}" } };
    await world.apply(discoveryDocument("fleet", { organization }, { values }));
    await world.scan("fleet");
    expect(await world.fleet()).toHaveLength(1);
    const prefixes: Readonly<Record<string, string>> = { tagging: "tag" };
    const asked = world.operations().map((call) => {
      const [service = "", operation] = call.split(" ");
      return `${prefixes[service] ?? service}:${operation}`;
    });
    await world.stop();
    const allowed = Object.values(byConstruct(everything).policies).flatMap((each) =>
      each.flatMap(({ Action }) => Action),
    );
    expect([...new Set(asked)].filter((each) => each !== "sts:AssumeRole").toSorted()).toEqual(allowed.toSorted());
  });

  test("the construct passes cdk-nag itself", () => {
    const app = new App({ analyticsReporting: false });
    stackWith(everything, app);
    Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
    expect(() => app.synth()).not.toThrow();
  });

  test.each([
    [
      { rolePath: "starling/" },
      'rolePath of StarlingDiscoveryAccess is "starling/"; expected a path such as /starling/discovery/',
    ],
    [{ roleName: "l k" }, 'roleName of StarlingDiscoveryAccess is "l k"; expected at most 64 of'],
    [
      { parameterPath: "/starling/{{ eks.name }}" },
      'parameterPath of StarlingDiscoveryAccess is "/starling/{{ eks.name }}"; expected the beginning of the path',
    ],
  ])("refuses what IAM would, or nobody would ask for: %j", (more, message) => {
    expect(() => stackWith(more)).toThrow(message);
  });
});

const files = discoveryFiles();

test.each(Object.keys(files))("%s is what node infra/bin/cluster-access.ts writes", (path) => {
  expect(readFileSync(`examples/discovery-access/${path}`, "utf8")).toBe(files[path]);
});

const cases = [
  ["by default", {}, {}, {}],
  [
    "with every property, and names of one's own",
    { ...everything, rolePath: "/dev/discovery/", roleName: "see" },
    { ParameterPath: "/starling/clusters", Organization: "yes", RolePath: "/dev/discovery/", RoleName: "see" },
    {
      "var.parameter_path": "/starling/clusters",
      "var.organization": true,
      "var.role_path": "/dev/discovery/",
      "var.role_name": "see",
    },
  ],
] as const;

interface CloudFormation {
  readonly Parameters: Readonly<Record<string, { readonly Default?: string }>>;
  readonly Conditions: Readonly<Record<string, unknown>>;
  readonly Resources: Resources;
}

test.each(cases)("the CloudFormation template makes what the construct does, %s", (_, more, parameters) => {
  const template = load(files["starling-discovery-access.template.yaml"] ?? "") as CloudFormation;
  const defaults = Object.entries(template.Parameters).flatMap(([name, { Default }]) =>
    Default === undefined ? [] : [[name, Default]],
  );
  const given: Record<string, string> = {
    ...Object.fromEntries(defaults),
    DiscoverRole: discoverRole,
    InstallationId: props.installationId,
    Discovery: props.discovery,
    "AWS::Partition": "aws",
    "AWS::AccountId": env.account,
    ...parameters,
  };
  expect(Object.keys(template.Parameters).toSorted()).toEqual(
    Object.keys(given)
      .filter((name) => !name.startsWith("AWS::"))
      .toSorted(),
  );
  const holds = (condition: unknown): boolean => {
    const { "Fn::Not": not, "Fn::Equals": equals } = condition as { "Fn::Not"?: [unknown]; "Fn::Equals"?: unknown[] };
    if (not !== undefined) return !holds(not[0]);
    const [left, right] = resolved(equals, given) as [string, string];
    return left === right;
  };
  const there = Object.entries(template.Resources).filter(
    ([, { Condition }]) => Condition === undefined || holds(template.Conditions[Condition]),
  );
  const made = madeOf(Object.fromEntries(there), given);
  expect(made).toEqual(byConstruct(more));
});

test("the commands of docs/tasks/discover-clusters.md give the template all parameters that it needs, and no unknown ones", () => {
  const path = "examples/discovery-access/starling-discovery-access.template.yaml";
  const template = load(files[path.split("/").at(-1) ?? ""] ?? "") as CloudFormation;
  const commands = pageBlocks("tasks/discover-clusters.md")
    .filter(({ info }) => info === "sh account")
    .flatMap(commandsOf);
  const deploying = commands.filter((command) => command.includes(path));
  expect(deploying).toHaveLength(2);
  for (const command of deploying) {
    const given = [...command.matchAll(/(?:ParameterKey=(\w+),ParameterValue| (?!ParameterKey)(\w+))=/g)]
      .map(([, key, override]) => key ?? override ?? "")
      .filter((name) => name !== "Enabled");
    const lacking = Object.entries(template.Parameters).filter(([name, { Default }]) => {
      return Default === undefined && !given.includes(name);
    });
    expect({ command, lacking }).toEqual({ command, lacking: [] });
    expect(Object.keys(template.Parameters)).toEqual(expect.arrayContaining(given));
  }
});

describe("the Terraform module", () => {
  const text = files["terraform/main.tf"] ?? "";

  test.each(cases)("makes what the construct does, %s", (_, more, __, variables) => {
    const { resources, outputs } = terraformModule(text, {
      "var.discover_role": discoverRole,
      "var.installation_id": props.installationId,
      "var.discovery": props.discovery,
      "data.aws_partition.current.partition": "aws",
      "data.aws_caller_identity.current.account_id": env.account,
      "aws_iam_role.starling.id": "Role",
      "aws_iam_role.starling.arn": "arn",
      ...variables,
    });
    const role = resources.get("aws_iam_role.starling");
    const policies = [...resources].filter(([key]) => key.startsWith("aws_iam_role_policy."));
    expect(resources.size).toBe(policies.length + 1);
    for (const [, policy] of policies) expect(policy.role).toBe("Role");
    const made: Made = {
      role: {
        Path: role?.path,
        RoleName: role?.name,
        Description: role?.description,
        AssumeRolePolicyDocument: role?.assume_role_policy,
      },
      policies: Object.fromEntries(policies.map(([, { name, policy }]) => [name, statementsOf(policy)])),
    };
    const desired = byConstruct(more);
    expect(made).toEqual(desired);
    const { Path, RoleName } = desired.role;
    expect(outputs.get("discovery_role_name")).toBe(`${String(Path).slice(1)}${String(RoleName)}`);
  });
});
