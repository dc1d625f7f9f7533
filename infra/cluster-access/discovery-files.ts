/** The files of examples/discovery-access: the role for discovery. They are generated from the construct. */
import { CfnCondition, CfnOutput, type CfnResource, Fn } from "aws-cdk-lib";
import {
  expression,
  type HclBlock,
  type HclExpression,
  type HclValue,
  jsonEncoded,
  printBlock,
  ref,
  variable,
} from "#infra/cluster-access/hcl.ts";
import { templateOf, written, yaml } from "#infra/cluster-access/template-file.ts";
import { StarlingDiscoveryAccess } from "#infra/constructs/starling-discovery-access.ts";
import {
  defaultDiscoveryPath,
  defaultDiscoveryRole,
  discoveryPolicies,
  discoveryTrustPolicy,
} from "#shared/fleet/access/discovery-role-policy.ts";

const header = `# Lets one ClusterDiscovery of Starling list the EKS clusters of this account, in all regions: one role.\n# ${written}\n`;

/** The texts by path below examples/discovery-access. */
export function discoveryFiles(): Readonly<Record<string, string>> {
  return {
    "starling-discovery-access.template.yaml": header + yaml(cloudFormationTemplate()),
    "terraform/main.tf": `${[header.trimEnd(), ...module.map(printBlock)].join("\n\n")}\n`,
  };
}

const texts = {
  discoverRole: "Output DiscoverRole of Starling's control stack",
  installationId: "Output ExternalId up to its slash: starling.<account>.<region>",
  discovery: "metadata.name of the ClusterDiscovery",
  rolePath: "Path of the roles that Starling may assume",
  roleName: "Name of the role, the same in each account",
  parameterPath: "Beginning of spec.values.ssm.path, such as /starling/clusters; empty: the role may read no parameter",
  organization: "Whether this is the account of spec.eks.organization, where the role may also list accounts and units",
} as const;

const logicalIds = {
  Role: "Role",
  Clusters: "ListClusters",
  Parameters: "ReadParameters",
  Organization: "ListAccounts",
} as const;

/** The construct with parameters for its settings. Optional rights have a condition. */
function cloudFormationTemplate(): unknown {
  return templateOf("Starling: finds the EKS clusters of an account", (stack, parameter) => {
    const parameterPath = parameter("ParameterPath", texts.parameterPath, {
      default: "",
      allowedPattern: "(/[A-Za-z0-9_.-]+)*",
    });
    const organization = parameter("Organization", texts.organization, { default: "no", allowedValues: ["no", "yes"] });
    const access = new StarlingDiscoveryAccess(stack, "Access", {
      discoverRole: parameter("DiscoverRole", texts.discoverRole, { allowedPattern: "arn:.+:iam::.+:role/.+" }),
      installationId: parameter("InstallationId", texts.installationId),
      discovery: parameter("Discovery", texts.discovery),
      rolePath: parameter("RolePath", texts.rolePath, { default: defaultDiscoveryPath }),
      roleName: parameter("RoleName", texts.roleName, { default: defaultDiscoveryRole }),
      parameterPath,
      organization: true,
    });
    const resource = (id: string) => access.node.findChild(id) as CfnResource;
    for (const [id, name] of Object.entries(logicalIds)) resource(id).overrideLogicalId(name);
    resource("Parameters").cfnOptions.condition = new CfnCondition(stack, "ReadsParameters", {
      expression: Fn.conditionNot(Fn.conditionEquals(parameterPath, "")),
    });
    resource("Organization").cfnOptions.condition = new CfnCondition(stack, "ListsAccounts", {
      expression: Fn.conditionEquals(organization, "yes"),
    });
    new CfnOutput(stack, "RoleArn", {
      value: access.roleArn,
      description: "Role that Starling assumes in this account",
    });
  });
}

const module: readonly HclBlock[] = [
  {
    head: "terraform",
    attributes: { required_version: ">= 1.3" },
    blocks: [{ head: "required_providers", attributes: { aws: { source: "hashicorp/aws", version: ">= 5.33" } } }],
  },
  variable("discover_role", { description: `${texts.discoverRole}.` }),
  variable("installation_id", { description: `${texts.installationId}.` }),
  variable("discovery", { description: `${texts.discovery}.` }),
  variable("role_path", { description: `${texts.rolePath}.`, default: textValue(defaultDiscoveryPath) }),
  variable("role_name", { description: `${texts.roleName}.`, default: textValue(defaultDiscoveryRole) }),
  variable("parameter_path", { description: `${texts.parameterPath}.`, default: textValue("") }),
  {
    head: 'variable "organization"',
    attributes: { description: `${texts.organization}.`, type: expression("bool"), default: false },
  },
  { head: 'data "aws_partition" "current"' },
  { head: 'data "aws_caller_identity" "current"' },
  {
    head: 'resource "aws_iam_role" "starling"',
    attributes: {
      path: expression("var.role_path"),
      name: expression("var.role_name"),
      description: "Assumed by Starling, to find the EKS clusters of this account",
      assume_role_policy: jsonEncoded(
        discoveryTrustPolicy({
          discoverRole: ref("var.discover_role"),
          installationId: ref("var.installation_id"),
          discovery: ref("var.discovery"),
        }),
      ),
    },
  },
  policy("clusters", discoveryPolicies.clusters.name, discoveryPolicies.clusters.document()),
  policy(
    "parameters",
    discoveryPolicies.parameters.name,
    discoveryPolicies.parameters.document({
      partition: ref("data.aws_partition.current.partition"),
      account: ref("data.aws_caller_identity.current.account_id"),
      path: ref("var.parameter_path"),
    }),
    'var.parameter_path == "" ? 0 : 1',
  ),
  policy(
    "organization",
    discoveryPolicies.organization.name,
    discoveryPolicies.organization.document(),
    "var.organization ? 1 : 0",
  ),
  {
    head: 'output "role_arn"',
    attributes: {
      description: "Role that Starling assumes in this account.",
      value: expression("aws_iam_role.starling.arn"),
    },
  },
  {
    head: 'output "discovery_role_name"',
    attributes: {
      description: "Value of spec.eks.role.name of the ClusterDiscovery.",
      value: expression(`trimprefix("${ref("var.role_path")}${ref("aws_iam_role.starling.name")}", "/")`),
    },
  },
];

function textValue(text: string): HclExpression {
  return expression(JSON.stringify(text));
}

/** @param count - Terraform's count. Absent: one. */
function policy(name: string, policyName: string, document: HclValue, count?: string): HclBlock {
  return {
    head: `resource "aws_iam_role_policy" "${name}"`,
    attributes: {
      ...(count === undefined ? {} : { count: expression(count) }),
      name: policyName,
      role: expression("aws_iam_role.starling.id"),
      policy: jsonEncoded(document),
    },
  };
}
