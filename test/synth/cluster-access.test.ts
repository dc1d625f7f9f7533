/** The access to one cluster, in the three ways that it is given: they say the same. */
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
  test("makes a role that the apply role may assume for this Cluster only, and that may describe this cluster only", () => {
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

  test("puts the RBAC objects into a cluster of the same app, and passes cdk-nag itself", () => {
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
      'rolePath of StarlingClusterAccess is "starling/"; give it a path such as /starling/clusters/',
    ],
    [{ cluster: "c".repeat(65) }, `roleName of StarlingClusterAccess is "${"c".repeat(65)}"; give it at most 64`],
    [{ group: "system:masters" }, 'group of StarlingClusterAccess is "system:masters"; give it a name'],
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

test("the CloudFormation template is the construct, with parameters for its settings", () => {
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

/** With parameters in their places, and texts joined. */
function resolved(value: unknown, given: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, given));
  if (typeof value !== "object" || value === null) return value;
  const { Ref, "Fn::Join": join } = value as { readonly Ref?: string; readonly "Fn::Join"?: [string, unknown[]] };
  if (Ref !== undefined) return given[Ref] ?? `<${Ref}>`;
  if (join !== undefined) return join[1].map((part) => resolved(part, given)).join(join[0]);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, given)]));
}

describe("the Terraform module", () => {
  const module = (files["terraform/main.tf"] ?? "").replaceAll(/\s+/g, " ");
  const list = (texts: readonly string[]) => `[${texts.map((text) => JSON.stringify(text)).join(", ")}]`;

  test("has the trust, the permission and the access entry of the construct", () => {
    for (const part of [
      `Principal = { AWS = "\${var.apply_role}" }`,
      'Action = "sts:AssumeRole"',
      `"sts:ExternalId" = "\${var.installation_id}/\${var.cluster}"`,
      `Effect = "Allow" Action = "eks:DescribeCluster" Resource = "\${data.aws_eks_cluster.this.arn}"`,
      "principal_arn = aws_iam_role.starling.arn",
      "kubernetes_groups = [var.group]",
      'default = "/starling/clusters/"',
      'default = "starling"',
    ]) {
      expect(module).toContain(part);
    }
    expect(module.match(/Action\s*=/g)).toHaveLength(2);
  });

  test("has every rule of the RBAC objects, and none besides", () => {
    const rules = rbac.flatMap((object) => object.rules ?? []);
    for (const { apiGroups, resources, resourceNames, verbs } of rules) {
      const named = resourceNames === undefined ? "" : ` resource_names = ${list(resourceNames)}`;
      const wanted = `api_groups = ${list(apiGroups)} resources = ${list(resources)}${named} verbs = ${list(verbs)}`;
      expect(module).toContain(wanted);
    }
    expect(module.match(/api_groups = \[/g)).toHaveLength(rules.length);
  });
});
