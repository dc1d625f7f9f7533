import type { ClusterConnection } from "@starling/embedded-apiserver";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { type AccessEntry, clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { ApiSession } from "#local/machine/api-session.ts";
import { letGroupAdminister } from "#local/machine/by-hand.ts";
import type { LocalEks, Machine } from "#local/machine/machine.ts";
import { type RegisteredCluster, registerClusters } from "#local/machine/register-clusters.ts";
import { defined } from "#shared/base/defined.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";

/** Two accounts, as in a fleet of any size: Starling's own, and one that it enters by assuming a role. */
const home = { accountId: localAccountId, region: localRegion };
const spoke = { accountId: "111111111111", region: "eu-west-1" };

/** In the second account each cluster has its own role. It trusts Starling for this Cluster only. */
function roleOf(cluster: string): { readonly name: string; readonly arn: string } {
  const name = `starling/clusters/${cluster}`;
  return { name, arn: `arn:aws:iam::${spoke.accountId}:role/${name}` };
}

/** Both accounts are in one organization. In each of them Starling may list clusters for any ClusterDiscovery. */
const root = "r-local";
const unit = "ou-local-starling";
const discoveryRole = "starling/discovery/scan";

function organizeAccounts({ roles, discovererArn, organize }: LocalEks): void {
  const accounts = [home, spoke].map(({ accountId: id }) => ({ id, state: "ACTIVE" as const }));
  for (const { id } of accounts) {
    roles.put({ arn: `arn:aws:iam::${id}:role/${discoveryRole}`, trusts: [{ principalArn: discovererArn }] });
  }
  const units = new Map([
    [root, { units: [unit], accounts: [] }],
    [unit, { units: [], accounts }],
  ]);
  organize({ account: home.accountId, units });
}

/** Starling's group in a cluster. */
const group = "starling";

/**
 * The EKS cluster that an embedded cluster plays. The name decides its account, so the account is the same at every
 * start.
 */
function placeOf(cluster: string): { readonly arn: string; readonly account: "home" | "spoke" } {
  const last = cluster.codePointAt(cluster.length - 1) ?? 0;
  const account = (cluster.length + last) % 2 === 0 ? "home" : "spoke";
  const { accountId, region } = account === "home" ? home : spoke;
  return { arn: `arn:aws:eks:${region}:${accountId}:cluster/${cluster}`, account };
}

/** An authenticator that admits the identities in the access entries of the embedded clusters. */
export function localEksAuthenticator(eks: LocalEks): ReturnType<typeof eksAuthenticator> {
  return eksAuthenticator({
    clusters: eks.clusters,
    stsEndpoint: eks.endpoint,
    now: eks.now,
    arnOf: (cluster) => placeOf(cluster).arn,
  });
}

/**
 * Registers clusters of this machine as EKS clusters of two accounts, and with Starling by their ARN. No secret holds a
 * token. A cluster with a changed address is registered by that address. Starling asks EKS only once a day, and faults
 * of the new port should show at once.
 */
export async function registerEksClusters(
  clusters: readonly RegisteredCluster[],
  machine: Pick<Machine, "putSecret" | "eks">,
  session: ApiSession,
): Promise<void> {
  const { eks } = machine;
  organizeAccounts(eks);
  const hasMoved = ({ connection: { name, server } }: RegisteredCluster) => {
    const known = eks.clusters.find(placeOf(name).arn);
    return known !== undefined && known.endpoint !== server;
  };
  const moved = clusters.filter(hasMoved);
  const byArn = clusters.filter((cluster) => !moved.includes(cluster));
  for (const { connection } of byArn) {
    const isHome = placeOf(connection.name).account === "home";
    const { arn: roleArn } = roleOf(connection.name);
    const externalId = externalIdOf(eks.installation, connection.name);
    if (!isHome) eks.roles.put({ arn: roleArn, trusts: [{ principalArn: eks.callerArn, externalId }] });
    createEksCluster(
      eks,
      connection,
      isHome
        ? { principalArn: eks.callerArn, policies: [] }
        : { principalArn: roleArn, policies: [clusterAdminPolicy] },
    );
  }
  // Each account uses one of the two ways to grant access: RBAC of the cluster, or a policy of EKS.
  const byRbac = byArn.filter(({ connection }) => placeOf(connection.name).account === "home");
  await Promise.all(byRbac.map(({ connection }) => letGroupAdminister(connection, group)));
  if (moved.length > 0) await registerClusters(moved, machine, session);
  if (byArn.length === 0) return;
  await session.apply(
    byArn.map(({ connection: { name }, labels, values }) => ({
      apiVersion: ourApiVersion,
      kind: "Cluster",
      metadata: { name, ...defined({ labels }) },
      spec: { ...specOf(name), ...defined({ values }) },
    })),
  );
}

function specOf(cluster: string): Pick<ClusterSpec, "eks" | "access"> {
  const { arn, account } = placeOf(cluster);
  return account === "home" ? { eks: { arn } } : { eks: { arn }, access: { role: { name: roleOf(cluster).name } } };
}

function createEksCluster(
  eks: LocalEks,
  connection: ClusterConnection,
  access: Pick<AccessEntry, "principalArn" | "policies">,
): void {
  const place = parseEksArn(placeOf(connection.name).arn);
  if (place === undefined) throw new Error(`${connection.name} cannot be the name of an EKS cluster`);
  const { arn, name, region, accountId } = place;
  eks.clusters.put({
    arn,
    name,
    region,
    accountId,
    status: "ACTIVE",
    version: "1.36",
    endpoint: connection.server,
    caData: connection.caData,
    tags: {},
    createdAt: eks.now(),
    accessEntries: [{ ...access, username: "starling:{{SessionName}}", kubernetesGroups: [group] }],
  });
}
