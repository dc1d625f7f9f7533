/** The template of a zone for people who deploy it without the CDK, such as a StackSet: its values are parameters. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  App,
  Aws,
  CfnCondition,
  CfnOutput,
  CfnParameter,
  DefaultStackSynthesizer,
  Fn,
  type IStackSynthesizer,
  Stack,
  Validations,
} from "aws-cdk-lib";
import { CfnAlarm } from "aws-cdk-lib/aws-cloudwatch";
import { CfnFunction } from "aws-cdk-lib/aws-lambda";
import type { IConstruct } from "constructs";
import { RemoteZone } from "#infra/constructs/remote-zone.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

const name = "starling-zone";

export interface ZoneTemplate {
  readonly template: unknown;
  /** The files of the code of `apply`, by their paths. Empty without bundling. */
  readonly code: ReadonlyMap<string, Uint8Array>;
}

/** @param options - the folder for the CDK's files, and whether the code is made, which takes seconds. */
export function zoneTemplate({
  outdir,
  bundles,
}: {
  readonly outdir: string;
  readonly bundles: boolean;
}): ZoneTemplate {
  const app = new App({
    analyticsReporting: false,
    outdir,
    context: { "@aws-cdk/aws-iam:minimizePolicies": true, ...(bundles ? {} : { "aws:cdk:bundling-stacks": [] }) },
  });
  const stack = new Stack(app, name, {
    // Nothing of the account's bootstrap is used: the code is in a bucket of the parameters.
    synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }) as IStackSynthesizer,
    description: "Starling: the workers of a zone",
  });
  fill(stack);
  const { template } = app.synth().getStackByName(name);
  return { template, code: bundles ? filesOf(outdir) : new Map() };
}

function fill(stack: Stack): void {
  const text = (id: string, description: string, more: { default?: string; allowedPattern?: string } = {}) =>
    new CfnParameter(stack, id, { type: "String", description, ...more }).valueAsString;
  const list = (id: string, description: string, more: { default?: string; allowedPattern?: string } = {}) =>
    new CfnParameter(stack, id, { type: "CommaDelimitedList", description, ...more }).valueAsList;
  const count = (id: string, description: string) =>
    new CfnParameter(stack, id, { type: "Number", description, default: 2, minValue: 2, maxValue: 1000 }).valueAsNumber;

  const zone = text("ZoneName", "Name of the zone, as in setting zones of the installation", {
    allowedPattern: "^[a-z]([a-z0-9-]{0,16}[a-z0-9])?$",
  });
  const installation = text("Installation", "Name of the installation", {
    default: "starling",
    allowedPattern: "^[A-Za-z][A-Za-z0-9-]{0,39}$",
  });
  const home = {
    account: text("HomeAccount", "Account of the installation", { allowedPattern: "^[0-9]{12}$" }),
    region: text("HomeRegion", "Region of the installation", { allowedPattern: "^[a-z0-9-]+$" }),
    table: text("Table", "Output TableName of the state stack"),
    bucket: text("Bucket", "Output BlobsName of the state stack"),
  };
  // CloudFormation compares each value of a list with the pattern.
  const clusterNames = list("ClusterNames", "Patterns of the names of Clusters, as in setting zones", {
    allowedPattern: "^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$",
  });
  const codeIn = {
    bucket: text("CodeBucket", "Bucket with the code, in the region of this stack"),
    key: text("CodeKey", "Key of the zip with the code in this bucket"),
  };
  const subnetIds = list("SubnetIds", "Subnets of the workers; empty: outside of every VPC", {
    default: "",
    allowedPattern: "^(subnet-[0-9a-f]{8,17})?$",
  });
  const securityGroupIds = list("SecurityGroupIds", "Security groups of the workers in these subnets", {
    default: "",
    allowedPattern: "^(sg-[0-9a-f]{8,17})?$",
  });
  const bounds = {
    apply: count("ApplyConcurrency", "How many clusters are worked on at once"),
    applySlow: count("ApplySlowConcurrency", "How many slow clusters are worked on at once besides those"),
  };
  const roles = text("ClusterRoles", "Path and name of the roles of clusters; empty: <Installation>/clusters/*", {
    default: "",
  });
  const topic = text("AlarmTopicArn", "SNS topic of this region that gets the alarm; empty: none", { default: "" });
  const hasNetwork = given(stack, "HasNetwork", Fn.join("", subnetIds));
  const hasTopic = given(stack, "HasTopic", topic);
  const hasRoles = given(stack, "HasClusterRoles", roles);
  const usualRoles = Fn.join("/", [installation, "clusters", "*"]);

  const made = new RemoteZone(stack, "Zone", {
    ...{ zone, installation, home, bounds, codeIn },
    clusterNames: [Fn.join("+", clusterNames)],
    clusterRoles: { names: Fn.conditionIf(hasRoles, roles, usualRoles).toString(), accounts: [] },
    network: { subnetIds, securityGroupIds },
    securityGroups: [Fn.conditionIf(hasNetwork, Fn.join(",", securityGroupIds), Aws.NO_VALUE).toString()],
  });
  const only = <T extends IConstruct>(kind: new (...args: never[]) => T): T => {
    const found = stack.node.findAll().filter((each): each is T => each instanceof kind);
    const [one] = found;
    if (one === undefined || found.length > 1) throw new Error(`the template has ${found.length} of ${kind.name}`);
    return one;
  };
  const vpcConfig = { SubnetIds: subnetIds, SecurityGroupIds: securityGroupIds };
  only(CfnFunction).addPropertyOverride("VpcConfig", Fn.conditionIf(hasNetwork, vpcConfig, Aws.NO_VALUE));
  for (const actions of ["AlarmActions", "OKActions"])
    only(CfnAlarm).addPropertyOverride(actions, Fn.conditionIf(hasTopic, [topic], Aws.NO_VALUE));
  Validations.of(stack).acknowledge(
    ...["F3031", "E1150", "W1030"].map((id) => ({
      id: `CloudFormation-Validate::${id}`,
      reason: "The empty defaults stand for no subnets and no topic. Conditions leave the properties out then.",
    })),
  );
  const say = (id: string, value: string, description: string) => new CfnOutput(stack, id, { value, description });
  say("Role", made.roleArn, "Role that the roles of the zone's clusters must trust");
  say("Dashboard", made.dashboard, "CloudWatch dashboard of the zone");
  say("Version", starlingVersion, "Version of this template, and of the code that it fits");
}

function given(stack: Stack, id: string, value: string): string {
  return new CfnCondition(stack, id, { expression: Fn.conditionNot(Fn.conditionEquals(value, "")) }).logicalId;
}

/** The files of the only code that the assembly has. */
function filesOf(outdir: string): ReadonlyMap<string, Uint8Array> {
  const assets = readdirSync(outdir).filter((each) => /^asset\.[0-9a-f]+$/.test(each));
  const [asset] = assets;
  if (asset === undefined || assets.length > 1) throw new Error(`${outdir} has ${assets.length} assets; expected one`);
  const paths = readdirSync(join(outdir, asset), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name));
  const start = join(outdir, asset).length + 1;
  return new Map(paths.sort().map((path) => [path.slice(start), readFileSync(path)]));
}
