/** Access to a cluster of the fleet with the caller's own rights. */
import { EksAccounts } from "#cli/access/eks-accounts.ts";
import { eksEndpoint } from "#cli/access/eks-endpoint.ts";
import { requireReadable } from "#cli/format/require-readable.ts";
import { type KubeconfigChoice, kubeconfigEndpoint } from "#cli/seeing/kubeconfig-endpoint.ts";
import { CliFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

export interface OwnAccess extends KubeconfigChoice {
  /** Role to assume in the account of an EKS cluster. */
  readonly assumeRole?: string;
}

const patienceMs = 120_000;

/**
 * Runs `work` with a client for the cluster that Starling knows by this name.
 * @throws CliFailure when the address is not known, when the cluster refuses the caller, or when another cluster answers.
 */
export async function inOwnCluster<T>(
  session: Session,
  { cluster, access }: { readonly cluster: string; readonly access: OwnAccess },
  work: (client: ClusterClient) => Promise<T>,
): Promise<T> {
  const path = pathOfObject({ kind: "Cluster", name: cluster }, "");
  const known = requireReadable(await session.api.call<ClusterObject | UnreadableObject>({ method: "GET", path }));
  const clock: SleepingClock = { now: () => session.io.now(), sleep: (ms) => session.pause(ms) };
  const connection = new KubeConnection(await endpointOf(session, known, access), clock);
  const stop = () => connection.close();
  session.signal.addEventListener("abort", stop, { once: true });
  try {
    const client = connection.client({ deadlineMs: clock.now().getTime() + patienceMs });
    const uid = await clusterUidOf(client);
    const { uid: expected } = known.status;
    if (expected !== undefined && uid !== expected) throw another(cluster, { uid, expected });
    return await work(client);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    session.signal.throwIfAborted();
    throw new CliFailure(`cluster ${cluster}: ${errorMessage(error)}`, { exit: "unknown", next: rightsOf(access) });
  } finally {
    session.signal.removeEventListener("abort", stop);
    connection.close();
  }
}

async function endpointOf(session: Session, known: ClusterObject, access: OwnAccess): Promise<KubeEndpoint> {
  const { name } = known.metadata;
  if (access.kubeconfig !== undefined || access.kubeContext !== undefined)
    return kubeconfigEndpoint(session.io, access);
  const eks = parseEksArn(known.spec.eks?.arn ?? known.status.discovered?.arn ?? "");
  if (eks === undefined) {
    throw new CliFailure(`only Starling has the token of cluster ${name}; connect with your own kubeconfig`, {
      exit: "wrongInput",
      next: "--kube-context NAME, of your kubeconfig",
    });
  }
  const accounts = new EksAccounts(session, defined({ assumeRole: access.assumeRole }));
  try {
    return await eksEndpoint(eks, accounts, { now: () => session.io.now() });
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    throw new CliFailure(`cluster ${name}: EKS does not give its address: ${errorMessage(error)}`, {
      exit: "unknown",
      next: "--assume-role ROLE of its account, or --kube-context NAME of your kubeconfig",
    });
  }
}

function another(cluster: string, { uid, expected }: { readonly uid: string | undefined; readonly expected: string }) {
  const message = `the cluster that answers is not ${cluster}: its kube-system has uid ${uid ?? "(none)"}, expected ${expected}`;
  return new CliFailure(message, { exit: "unknown", next: "kubectl config get-contexts   (choose another one)" });
}

function rightsOf({ kubeContext }: OwnAccess): string {
  const context = kubeContext === undefined ? "" : ` --context ${kubeContext}`;
  return `kubectl${context} auth can-i --list   (a diff needs to list kinds, and to apply with dry run)`;
}
