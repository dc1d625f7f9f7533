/** The construct, the CloudFormation template and the Terraform module give the same access to one cluster. */
import { readFileSync } from "node:fs";
import { KubectlV35Layer } from "@aws-cdk/lambda-layer-kubectl-v35";
import { App, Stack, Validations } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Cluster, KubernetesVersion } from "aws-cdk-lib/aws-eks-v2";
import { AwsSolutionsChecks } from "cdk-nag";
import { load, loadAll } from "js-yaml";
import { describe, expect, test } from "vitest";
import { accessFiles } from "#infra/cluster-access/access-files.ts";
import { StarlingClusterAccess, type StarlingClusterAccessProps } from "#infra/constructs/starling-cluster-access.ts";
import type { AccessRule } from "#shared/fleet/access/cluster-rbac.ts";
import { terraformModule } from "#test/support/terraform-module.ts";

const applyRole = "arn:aws:iam::999988887777:role/starling-control-Apply";
const props: StarlingClusterAccessProps = {
  applyRole,
  installationId: "starling.999988887777.eu-west-1",
  cluster: "prod-eu-1",
  eksCluster: "Prod_EU_1",
};
const env = { account: "111122223333", region: "eu-west-2" };
const folder = "examples/cluster-access";

type Resources = Readonly<Record<string, { readonly Type: string; readonly Properties: Record<string, unknown> }>>;

function resourcesWith(more: Partial<StarlingClusterAccessProps> = {}): Resources {
  const stack = new Stack(new App({ analyticsReporting: false }), "S", { env });
  new StarlingClusterAccess(stack, "Access", { ...props, ...more });
  return Template.fromStack(stack).toJSON().Resources as Resources;
}

function only(resources: Resources, type: string): Record<string, unknown> {
  const found = Object.values(resources).filter((resource) => resource.Type === type);
  expect(found).toHaveLength(1);
  return found[0]?.Properties ?? {};
}

describe("StarlingClusterAccess", () => {
  test("the construct makes a role that the apply role may assume for this Cluster only, and that may describe this cluster only", () => {
    const resources = resourcesWith();
    expect(Object.values(resources).map(({ Type }) => Type)).toEqual(["AWS::IAM::Role", "AWS::EKS::AccessEntry"]);
    expect(only(resources, "AWS::IAM::Role")).toEqual({
      Path: "/starling/clusters/",
      RoleName: "prod-eu-1",
      Description: "Assumed by Starling, to keep one cluster in sync with git",
      AssumeRolePolicyDocument: {
        Version: "2012-10-17",
        Statement: [
          {
            Effect: "Allow",
            Action: "sts:AssumeRole",
            Principal: { AWS: applyRole },
            Condition: { StringEquals: { "sts:ExternalId": "starling.999988887777.eu-west-1/prod-eu-1" } },
          },
        ],
      },
      Policies: [
        {
          PolicyName: "describe-cluster",
          PolicyDocument: {
            Version: "2012-10-17",
            Statement: [
              {
                Effect: "Allow",
                Action: "eks:DescribeCluster",
                Resource: {
                  "Fn::Join": [
                    "",
                    ["arn:", { Ref: "AWS::Partition" }, ":eks:eu-west-2:111122223333:cluster/Prod_EU_1"],
                  ],
                },
              },
            ],
          },
        },
      ],
    });
    const [role = ""] = Object.keys(resources);
    expect(only(resources, "AWS::EKS::AccessEntry")).toEqual({
      ClusterName: "Prod_EU_1",
      PrincipalArn: { "Fn::GetAtt": [role, "Arn"] },
      KubernetesGroups: ["starling"],
      Type: "STANDARD",
    });
  });

  test("the construct puts the RBAC objects into a cluster of the same app, and passes cdk-nag itself", () => {
    const app = new App({ analyticsReporting: false });
    const stack = new Stack(app, "S", { env });
    const cluster = new Cluster(stack, "Cluster", {
      version: KubernetesVersion.V1_33,
      kubectlProviderOptions: { kubectlLayer: new KubectlV35Layer(stack, "Kubectl") },
    });
    const access = new StarlingClusterAccess(stack, "Access", { ...props, manifests: cluster, group: "starling-dev" });
    expect(access.accessRoleName).toBe("starling/clusters/prod-eu-1");
    const resources = Template.fromStack(stack).toJSON().Resources as Resources;
    const { Manifest } = only(resources, "Custom::AWSCDK-EKS-KubernetesResource");
    const objects = JSON.parse(String(Manifest)) as readonly { kind: string; metadata: { name: string } }[];
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "Namespace starling-system",
      "ClusterRole starling-dev",
      "ClusterRoleBinding starling-dev",
      "Role starling-dev",
      "RoleBinding starling-dev",
      "ClusterRole starling-dev-fleet",
      "ClusterRoleBinding starling-dev-fleet",
    ]);
    const alone = new App({ analyticsReporting: false });
    new StarlingClusterAccess(new Stack(alone, "S", { env }), "Access", props);
    Validations.of(alone).addPlugins(new AwsSolutionsChecks(alone));
    expect(() => alone.synth()).not.toThrow();
  });

  test.each([
    [
      { rolePath: "starling/" },
      'rolePath of StarlingClusterAccess is "starling/"; expected a path such as /starling/clusters/',
    ],
    [{ cluster: "c".repeat(65) }, `roleName of StarlingClusterAccess is "${"c".repeat(65)}"; expected at most 64`],
    [{ group: "system:masters" }, 'group of StarlingClusterAccess is "system:masters"; expected a name'],
  ])("refuses what IAM or EKS would: %j", (more, message) => {
    expect(() => resourcesWith(more)).toThrow(message);
  });
});

const files = accessFiles();
const rbac = loadAll(files["starling-rbac.yaml"] ?? "") as readonly {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly AccessRule[];
}[];

test.each(Object.keys(files))("%s is what node infra/bin/cluster-access.ts writes", (path) => {
  expect(readFileSync(`${folder}/${path}`, "utf8")).toBe(files[path]);
});

test("the CloudFormation template makes what the construct makes, with parameters for its settings", () => {
  const template = load(files["starling-cluster-access.template.yaml"] ?? "") as { Resources: Resources };
  const given = {
    ApplyRole: applyRole,
    InstallationId: props.installationId,
    Cluster: "prod-eu-1",
    EksCluster: "Prod_EU_1",
    RolePath: "/starling/clusters/",
    RoleName: "prod-eu-1",
    Group: "starling",
    "AWS::Region": env.region,
    "AWS::AccountId": env.account,
  };
  const role = Object.keys(resourcesWith())[0] ?? "";
  const plain = JSON.parse(JSON.stringify(resourcesWith()).replaceAll(role, "Role")) as Resources;
  expect(Object.values(resolved(template.Resources, given) as Resources)).toEqual(
    Object.values(resolved(plain, given) as Resources),
  );
});

/** Replaces parameters by values, and joins texts. */
function resolved(value: unknown, given: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, given));
  if (typeof value !== "object" || value === null) return value;
  const { Ref, "Fn::Join": join } = value as { readonly Ref?: string; readonly "Fn::Join"?: [string, unknown[]] };
  if (Ref !== undefined) return given[Ref] ?? `<${Ref}>`;
  if (join !== undefined) return join[1].map((part) => resolved(part, given)).join(join[0]);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, given)]));
}

describe("the Terraform module", () => {
  const text = files["terraform/main.tf"] ?? "";
  const given = {
    "var.apply_role": applyRole,
    "var.installation_id": props.installationId,
    "var.cluster": props.cluster,
    "var.eks_cluster": props.eksCluster,
    "data.aws_eks_cluster.this.arn": `arn:<AWS::Partition>:eks:${env.region}:${env.account}:cluster/${props.eksCluster}`,
    "aws_iam_role.starling.id": "Role",
    "aws_iam_role.starling.arn": { "Fn::GetAtt": ["Role", "Arn"] },
  };

  /** The role that the construct makes, with all values filled in. */
  function constructed(more: Partial<StarlingClusterAccessProps> = {}): Resources {
    const resources = resourcesWith(more);
    const role = Object.keys(resources)[0] ?? "";
    return resolved(JSON.parse(JSON.stringify(resources).replaceAll(role, "Role")), {}) as Resources;
  }

  test.each<[string, Partial<StarlingClusterAccessProps>, Readonly<Record<string, unknown>>]>([
    ["by default", {}, {}],
    [
      "with all names set",
      { rolePath: "/other/clusters/", roleName: "shop", group: "starling-dev" },
      { "var.role_path": "/other/clusters/", "var.role_name": "shop", "var.group": "starling-dev" },
    ],
  ])("makes the role and the access entry of the construct, %s", (_, more, variables) => {
    const { resources, outputs } = terraformModule(text, { ...given, ...variables });
    const role = resources.get("aws_iam_role.starling");
    const { name, policy, role: of } = resources.get("aws_iam_role_policy.describe") ?? {};
    expect(of).toBe("Role");
    expect({
      Path: role?.path,
      RoleName: role?.name,
      Description: role?.description,
      AssumeRolePolicyDocument: role?.assume_role_policy,
      Policies: [{ PolicyName: name, PolicyDocument: policy }],
    }).toEqual(only(constructed(more), "AWS::IAM::Role"));
    const entry = resources.get("aws_eks_access_entry.starling");
    expect({
      ClusterName: entry?.cluster_name,
      PrincipalArn: entry?.principal_arn,
      KubernetesGroups: entry?.kubernetes_groups,
      Type: entry?.type,
    }).toEqual(only(constructed(more), "AWS::EKS::AccessEntry"));
    const path = more.rolePath ?? "/starling/clusters/";
    expect(outputs.get("access_role_name")).toBe(`${path.slice(1)}${more.roleName ?? "prod-eu-1"}`);
    expect([...resources.keys()].filter((key) => key.startsWith("aws_"))).toHaveLength(3);
  });

  test("the module makes exactly the RBAC objects of the file for kubectl", () => {
    const { resources } = terraformModule(text, given);
    const made = [...resources].flatMap(([key, block]) => (key.startsWith("aws_") ? [] : [manifestOf(key, block)]));
    const byName = (objects: readonly object[]) => objects.map((each) => JSON.stringify(sorted(each))).sort();
    expect(byName(made)).toEqual(byName(rbac));
    expect(made).toHaveLength(7);
  });

  test("the reader of Terraform files refuses a text that is no Terraform", () => {
    expect(() => terraformModule(text.replace("type = list(object({", "type = list(object({{"), given)).toThrow(
      "no HCL",
    );
  });
});

interface TerraformObject {
  readonly metadata: readonly [object];
  readonly rule?: readonly Record<string, unknown>[];
  readonly role_ref?: readonly [Record<string, string>];
  readonly subject?: readonly Record<string, string>[];
}

/** The Kubernetes object that a block of Terraform's provider makes. */
function manifestOf(key: string, given: object): object {
  const { metadata, rule, role_ref: roleRef, subject } = given as TerraformObject;
  const kind = (/^kubernetes_(\w+)_v1\./.exec(key)?.[1] ?? "").replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) =>
    letter.toUpperCase(),
  );
  const camel = (block: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(block).map(([name, value]) => [
        name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
        value,
      ]),
    );
  return {
    apiVersion: kind === "Namespace" ? "v1" : "rbac.authorization.k8s.io/v1",
    kind,
    metadata: metadata[0],
    ...(rule === undefined ? {} : { rules: rule.map(camel) }),
    ...(roleRef === undefined ? {} : { roleRef: camel(roleRef[0]) }),
    ...(subject === undefined ? {} : { subjects: subject.map(camel) }),
  };
}

/** Sorts the members of a value at every level. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}
