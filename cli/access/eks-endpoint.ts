import type { EksAccounts } from "#cli/access/eks-accounts.ts";
import { eksToken } from "#shared/adapters/aws/eks-token.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";

/** The address of an EKS cluster. @throws Error when the keys belong to another account, or the cluster is not active. */
export async function eksEndpoint(eks: EksArn, accounts: EksAccounts, clock: Clock): Promise<KubeEndpoint> {
  const { DescribeClusterCommand } = await import("@aws-sdk/client-eks");
  const { server, caData } = await accounts.using(eks, async (client) => {
    const { cluster } = await client.send(new DescribeClusterCommand({ name: eks.name }));
    const [address, authority] = [cluster?.endpoint, cluster?.certificateAuthority?.data];
    if (cluster?.arn !== eks.arn)
      throw new Error(`these credentials belong to ${cluster?.arn ?? "another account"}, not to ${eks.arn}`);
    if (address === undefined || authority === undefined)
      throw new Error(`${eks.name} is ${cluster.status}; wait until it is ACTIVE`);
    return { server: address, caData: authority };
  });
  const keys = await accounts.keys(eks.accountId, eks.region);
  return { server, caData, credentials: { token: () => eksToken(eks, keys, clock.now()) } };
}
