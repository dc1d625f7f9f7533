import {
  expression,
  type HclBlock,
  type HclExpression,
  jsonEncoded,
  printBlock,
  ref,
  variable,
} from "#infra/cluster-access/hcl.ts";
import {
  type AccessRule,
  defaultGroup,
  fleetRules,
  namespaceRules,
  ownRules,
} from "#shared/fleet/access/cluster-rbac.ts";
import {
  defaultRolePath,
  describePolicy,
  describePolicyName,
  trustPolicy,
} from "#shared/fleet/access/cluster-role-policy.ts";
import { parentNamespace } from "#shared/kube/parent-object.ts";

const header = `# Gives Starling access to one EKS cluster: a role for this Cluster only, its access entry, and its group's permissions.
# Written by "node infra/bin/cluster-access.ts"; the CloudFormation template and the CDK construct StarlingClusterAccess create the same.`;

const rbacGroup = "rbac.authorization.k8s.io";
const managed = { expression: '{ "app.kubernetes.io/managed-by" = "starling" }' };
const ruleType = `list(object({
  api_groups     = list(string)
  resources      = list(string)
  resource_names = optional(list(string))
  verbs          = list(string)
}))`;

/** The module in one file: `main.tf`. */
export function terraformModule(): string {
  return `${[header, ...[...settings, ...inAccount, ...inCluster, ...outputs].map(printBlock)].join("\n\n")}\n`;
}

const settings: readonly HclBlock[] = [
  {
    head: "terraform",
    attributes: { required_version: ">= 1.3" },
    blocks: [
      {
        head: "required_providers",
        attributes: {
          aws: { source: "hashicorp/aws", version: ">= 5.33" },
          kubernetes: { source: "hashicorp/kubernetes", version: ">= 2.20" },
        },
      },
    ],
  },
  variable("apply_role", { description: "Output ApplyRole of Starling's control stack." }),
  variable("installation_id", { description: "Output ExternalId up to its slash: starling.<account>.<region>." }),
  variable("cluster", { description: "metadata.name of the Cluster in Starling." }),
  variable("eks_cluster", {
    description: "Name of the EKS cluster; its authentication mode must support access entries.",
  }),
  variable("role_path", {
    description: "Path of the roles that Starling may assume.",
    default: { expression: JSON.stringify(defaultRolePath) },
  }),
  variable("role_name", {
    description: "Name of the role (default: the name of the Cluster).",
    default: expression("null"),
  }),
  variable("group", {
    description: "Kubernetes group of Starling.",
    default: expression(JSON.stringify(defaultGroup)),
  }),
  {
    head: 'variable "fleet_rules"',
    attributes: {
      description: "Rights for the kinds that manifests of the fleet may have.",
      type: expression(ruleType),
      default: fleetRules.map(ruleValue),
    },
  },
];

function ruleValue({ apiGroups, resources, resourceNames, verbs }: AccessRule) {
  const named = resourceNames === undefined ? {} : { resource_names: resourceNames };
  return { api_groups: apiGroups, resources, ...named, verbs };
}

const inAccount: readonly HclBlock[] = [
  { head: 'data "aws_eks_cluster" "this"', attributes: { name: expression("var.eks_cluster") } },
  {
    head: 'resource "aws_iam_role" "starling"',
    attributes: {
      path: expression("var.role_path"),
      name: expression("coalesce(var.role_name, var.cluster)"),
      description: "Assumed by Starling, to keep one cluster in sync with git",
      assume_role_policy: jsonEncoded(
        trustPolicy({
          applyRole: ref("var.apply_role"),
          installationId: ref("var.installation_id"),
          cluster: ref("var.cluster"),
        }),
      ),
    },
  },
  {
    head: 'resource "aws_iam_role_policy" "describe"',
    attributes: {
      name: describePolicyName,
      role: expression("aws_iam_role.starling.id"),
      policy: jsonEncoded(describePolicy(ref("data.aws_eks_cluster.this.arn"))),
    },
  },
  {
    head: 'resource "aws_eks_access_entry" "starling"',
    attributes: {
      cluster_name: expression("var.eks_cluster"),
      principal_arn: expression("aws_iam_role.starling.arn"),
      kubernetes_groups: expression("[var.group]"),
      type: "STANDARD",
    },
  },
];

const inCluster: readonly HclBlock[] = [
  {
    head: 'resource "kubernetes_namespace_v1" "starling"',
    blocks: [{ head: "metadata", attributes: { name: parentNamespace, labels: managed } }],
  },
  ...granted("own", { kind: "ClusterRole", name: expression("var.group"), rules: ownRules.map(ruleBlock) }),
  ...granted("namespace", { kind: "Role", name: expression("var.group"), rules: namespaceRules.map(ruleBlock) }),
  ...granted("fleet", { kind: "ClusterRole", name: expression(`"${ref("var.group")}-fleet"`), rules: [fleetRule()] }),
];

interface Grant {
  readonly kind: "ClusterRole" | "Role";
  readonly name: HclExpression;
  readonly rules: readonly HclBlock[];
}

/** A role and its binding to the group. */
function granted(id: string, { kind, name, rules }: Grant): readonly HclBlock[] {
  const type = kind === "Role" ? "kubernetes_role" : "kubernetes_cluster_role";
  const place = kind === "Role" ? { namespace: expression("kubernetes_namespace_v1.starling.metadata[0].name") } : {};
  const metadata: HclBlock = { head: "metadata", attributes: { name, ...place, labels: managed } };
  return [
    { head: `resource "${type}_v1" "${id}"`, blocks: [metadata, ...rules] },
    {
      head: `resource "${type}_binding_v1" "${id}"`,
      blocks: [
        metadata,
        {
          head: "role_ref",
          attributes: { api_group: rbacGroup, kind, name: expression(`${type}_v1.${id}.metadata[0].name`) },
        },
        { head: "subject", attributes: { api_group: rbacGroup, kind: "Group", name: expression("var.group") } },
      ],
    },
  ];
}

function ruleBlock(rule: AccessRule): HclBlock {
  return { head: "rule", attributes: ruleValue(rule) };
}

function fleetRule(): HclBlock {
  const fields = ["api_groups", "resources", "resource_names", "verbs"];
  const content = {
    head: "content",
    attributes: Object.fromEntries(fields.map((f) => [f, expression(`rule.value.${f}`)])),
  };
  return { head: 'dynamic "rule"', attributes: { for_each: expression("var.fleet_rules") }, blocks: [content] };
}

const outputs: readonly HclBlock[] = [
  {
    head: 'output "role_arn"',
    attributes: {
      description: "Role that Starling assumes to enter the cluster.",
      value: expression("aws_iam_role.starling.arn"),
    },
  },
  {
    head: 'output "access_role_name"',
    attributes: {
      description: "Value of spec.access.role.name of the Cluster.",
      value: expression(`trimprefix("${ref("var.role_path")}${ref("aws_iam_role.starling.name")}", "/")`),
    },
  },
];
