/** The files of examples/cluster-access, for people who do not deploy with the CDK. They are generated from the construct. */
import { CfnOutput, type CfnResource } from "aws-cdk-lib";
import { templateOf, written, yaml } from "#infra/cluster-access/template-file.ts";
import { terraformModule } from "#infra/cluster-access/terraform-module.ts";
import { StarlingClusterAccess } from "#infra/constructs/starling-cluster-access.ts";
import { defaultGroup, rbacManifests } from "#shared/fleet/access/cluster-rbac.ts";
import { defaultRolePath } from "#shared/fleet/access/cluster-role-policy.ts";

/** The texts by path below examples/cluster-access. */
export function accessFiles(): Readonly<Record<string, string>> {
  const template = `# Gives Starling access to one EKS cluster: a role for this Cluster only, and its access entry.\n# The permissions of its group are in starling-rbac.yaml. ${written}\n`;
  const rbac = `# The permissions of Starling's group in a cluster. Apply them: kubectl apply --server-side -f starling-rbac.yaml\n# The ClusterRole starling-fleet covers the manifests of the fleet. Bind further roles for anything else that you deploy. ${written}\n`;
  return {
    "starling-cluster-access.template.yaml": template + yaml(cloudFormationTemplate()),
    "starling-rbac.yaml": rbac + rbacManifests({ group: defaultGroup }).map(yaml).join("---\n"),
    "terraform/main.tf": terraformModule(),
  };
}

/** The construct with parameters for its settings. */
function cloudFormationTemplate(): unknown {
  return templateOf("Starling: access to one EKS cluster", (stack, parameter) => {
    const access = new StarlingClusterAccess(stack, "Access", {
      applyRole: parameter("ApplyRole", "Output ApplyRole of Starling's control stack", {
        allowedPattern: "arn:.+:iam::.+:role/.+",
      }),
      installationId: parameter("InstallationId", "Output ExternalId up to its slash: starling.<account>.<region>"),
      cluster: parameter("Cluster", "metadata.name of the Cluster in Starling"),
      eksCluster: parameter(
        "EksCluster",
        "Name of the EKS cluster; its authentication mode must support access entries",
      ),
      rolePath: parameter("RolePath", "Path of the roles that Starling may assume", { default: defaultRolePath }),
      roleName: parameter("RoleName", "Name of the role, at most 64 characters; for example the name of the Cluster"),
      group: parameter("Group", "Kubernetes group of Starling", {
        default: defaultGroup,
        allowedPattern: "[a-z0-9.-]+",
      }),
    });
    for (const id of ["Role", "Entry"]) (access.node.findChild(id) as CfnResource).overrideLogicalId(id);
    new CfnOutput(stack, "RoleArn", {
      value: access.roleArn,
      description: "Role that Starling assumes to enter the cluster",
    });
  });
}
