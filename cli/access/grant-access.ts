/** Gives Starling access to a cluster with the caller's own rights: an access entry, and the RBAC of its group. */
import type { EKSClient } from "@aws-sdk/client-eks";
import { type DesiredAccess, principalOf } from "#cli/access/access-steps.ts";
import type { EksAccounts } from "#cli/access/eks-accounts.ts";
import { eksEndpoint } from "#cli/access/eks-endpoint.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { rbacManifests } from "#shared/fleet/access/cluster-rbac.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

const patienceMs = 60_000;

export interface Granting {
  readonly accounts: EksAccounts;
  readonly clock: SleepingClock;
}

/**
 * A second call changes nothing. After a failure, a second call does what is left.
 * @returns what was done, in words; empty when nothing was missing.
 * @throws Error of EKS or of the cluster.
 */
export async function grantAccess(access: DesiredAccess, { accounts, clock }: Granting): Promise<readonly string[]> {
  const { eks } = access;
  const done: string[] = [];
  const endpoint = await eksEndpoint(eks, accounts, clock);
  const entered = await accounts.using(eks, (client) => enter(client, access));
  if (entered !== undefined) done.push(entered);
  const connection = new KubeConnection(endpoint, clock);
  try {
    const client = connection.client({ deadlineMs: clock.now().getTime() + patienceMs });
    done.push(...(await applyRbac(client, access.group)));
  } finally {
    connection.close();
  }
  return done;
}

/** Creates the access entry. An existing entry of the principal keeps its groups. */
async function enter(client: EKSClient, access: DesiredAccess): Promise<string | undefined> {
  const { CreateAccessEntryCommand, DescribeAccessEntryCommand, ResourceInUseException, UpdateAccessEntryCommand } =
    await import("@aws-sdk/client-eks");
  const { eks, group } = access;
  const named = { clusterName: eks.name, principalArn: principalOf(access) };
  try {
    await client.send(new CreateAccessEntryCommand({ ...named, kubernetesGroups: [group], type: "STANDARD" }));
    return "access entry created";
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
  const { accessEntry } = await client.send(new DescribeAccessEntryCommand(named));
  const groups = accessEntry?.kubernetesGroups ?? [];
  if (groups.includes(group)) return undefined;
  await client.send(new UpdateAccessEntryCommand({ ...named, kubernetesGroups: [...groups, group] }));
  return `group ${group} added to the access entry`;
}

/** @returns what was created or changed, in words. */
export async function applyRbac(client: ClusterClient, group: string): Promise<readonly string[]> {
  const done: string[] = [];
  for (const object of rbacManifests({ group })) {
    const applied = await applyObject(client, object);
    if (applied !== undefined) done.push(applied);
  }
  return done;
}

async function applyObject(client: ClusterClient, object: ManifestObject): Promise<string | undefined> {
  const { kind, metadata } = object;
  const found = await client.lookup({ group: groupOf(object.apiVersion), kind });
  if (found.outcome !== "found") throw new Error(`the cluster does not serve ${kind}`);
  const key = { namespace: metadata.namespace ?? "", name: metadata.name };
  const before = await client.get(found.info, key, { metadataOnly: true });
  const { object: after, created } = await client.apply(found.info, object);
  if (created) return `${kind} ${metadata.name} created`;
  return versionOf(before) === versionOf(after) ? undefined : `${kind} ${metadata.name} configured`;
}

function versionOf(object: unknown): unknown {
  return (object as { readonly metadata?: { readonly resourceVersion?: unknown } } | undefined)?.metadata
    ?.resourceVersion;
}
