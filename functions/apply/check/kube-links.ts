/** Checks the API server: it answers, knows Starling, is the same cluster as before, and grants the rights. */

import type { CheckedWay } from "#functions/apply/check/checked-way.ts";
import { grantedLink } from "#functions/apply/check/granted-link.ts";
import { endpointRemedy, networkRemedy, overrideRemedy } from "#functions/apply/check/network-remedy.ts";
import type { EksTarget } from "#shared/adapters/aws/eks-access.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import { roleOutput } from "#shared/fleet/kinds/zone-name.ts";
import { specOf } from "#shared/fleet/rows/cluster-entry.ts";
import { type ClusterRow, clusterIdentity } from "#shared/fleet/rows/object-rows.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { newestTested, oldestSupported, versionProblem } from "#shared/kube/server-version.ts";

/** Milliseconds for all requests to one cluster; a cluster that needs longer does not answer workers either. */
const patienceMs = 15_000;

export async function kubeLinks(cluster: ClusterRow, way: CheckedWay): Promise<readonly LinkFinding[]> {
  const endpoint = await way.connector.endpointOf(cluster);
  const connection = new KubeConnection(endpoint, way.clock);
  const options = { deadlineMs: way.clock.now().getTime() + patienceMs };
  const client = connection.client(options);
  try {
    const version = await client.serverVersion().catch((error: unknown) => ({ error }));
    const { eks } = specOf(cluster);
    const server = eks?.endpointOverride === undefined ? endpoint.server : `${endpoint.server} (endpointOverride)`;
    if (typeof version !== "string") return await unanswered(version.error, { cluster, way, server });
    const known = eks === undefined ? "secret" : "accessEntry";
    return [
      { link: "network", state: "ok", value: server },
      { link: known, state: "ok", value: principalOf(cluster, way) },
      ...(await Promise.all([
        identityLink(cluster, client),
        grantedLink(connection.reviews(options)),
        versionLink(version, cluster),
      ])),
    ];
  } finally {
    connection.close();
  }
}

interface Unanswered {
  readonly cluster: ClusterRow;
  readonly way: CheckedWay;
  readonly server: string;
}

async function unanswered(error: unknown, asked: Unanswered): Promise<readonly LinkFinding[]> {
  const { cluster, way, server } = asked;
  const reported = { code: codeOf(error), message: errorMessage(error) };
  const target = way.connector.targetOf(cluster);
  const answered: LinkFinding = { link: "network", state: "ok", value: server };
  if (error instanceof KubeError && error.status === 401) {
    if (target === undefined) return [answered, { ...secretLink(cluster), ...reported, code: "Unauthorized" }];
    return [answered, await unknownPrincipal(target, { ...asked, message: reported.message })];
  }
  if (target === undefined && error instanceof StarlingError && secretCodes.test(error.code)) {
    return [{ ...secretLink(cluster), ...reported }];
  }
  if (error instanceof KubeError && error.status !== undefined) {
    return [{ link: "network", state: "unknown", value: server, ...reported, remedy: "check again in a minute" }];
  }
  const remedy = target === undefined ? endpointRemedy(way.zone) : await eksRemedy(reported.code, target, asked);
  return [{ link: "network", state: "broken", value: server, ...reported, remedy }];
}

async function eksRemedy(code: string, target: EksTarget, { cluster, way }: Unanswered): Promise<string> {
  const unreached = { code, zone: way.zone, target, endpoint: await way.eks.endpoint(target) };
  const override = specOf(cluster).eks?.endpointOverride;
  return override === undefined ? networkRemedy(unreached) : overrideRemedy(override, unreached);
}

const secretCodes = /^(Secret|InvalidCredentials)/;

function codeOf(error: unknown): string {
  return error instanceof KubeError ? error.reason : errorCode(error);
}

function principalOf(cluster: ClusterRow, { connector }: CheckedWay): string {
  return connector.targetOf(cluster)?.role?.arn ?? cluster.spec.endpoint?.token.secret ?? "Starling's own role";
}

function secretLink({ spec }: ClusterRow) {
  const value = spec.endpoint?.token.secret ?? "";
  const remedy = `aws secretsmanager put-secret-value --secret-id ${quoted(value)} --secret-string file://secret.json, with a token that is good there`;
  return { link: "secret", state: "broken", value, remedy } as const;
}

async function unknownPrincipal(
  target: EksTarget,
  { way, message }: Unanswered & { readonly message: string },
): Promise<LinkFinding> {
  const { name, region } = target.cluster;
  const { authenticationMode } = await way.eks.endpoint(target);
  const value = target.role?.arn ?? "Starling's own role";
  const found = { link: "accessEntry", state: "broken", value, code: "Unauthorized" } as const;
  if (authenticationMode === "CONFIG_MAP") {
    const remedy = `aws eks update-cluster-config --name ${name} --region ${region} --access-config authenticationMode=API_AND_CONFIG_MAP`;
    return { ...found, message: `${name} knows no access entries: its authentication mode is CONFIG_MAP`, remedy };
  }
  const principal = target.role === undefined ? `ARN of output ${roleOutput(way.zone.own)}` : quoted(target.role.arn);
  const remedy = `aws eks create-access-entry --cluster-name ${name} --region ${region} --principal-arn ${principal} --kubernetes-groups starling`;
  return { ...found, message: `no access entry of ${name} names the role: ${message}`, remedy };
}

async function identityLink(cluster: ClusterRow, client: ClusterClient): Promise<LinkFinding> {
  const expected = clusterIdentity(cluster);
  try {
    const uid = await clusterUidOf(client);
    if (uid === undefined) {
      const message = "it has no namespace kube-system with a uid";
      return {
        link: "identity",
        state: "broken",
        code: "IdentityMismatch",
        message,
        remedy: "correct the Cluster's address",
      };
    }
    if (expected === undefined || uid === expected) return { link: "identity", state: "ok", value: uid };
    const message = `kube-system has the uid ${uid}, expected ${expected}`;
    const remedy = `if the cluster was rebuilt: starling cluster accept ${cluster.name} --uid ${uid}; else correct its address`;
    return { link: "identity", state: "broken", value: uid, code: "IdentityMismatch", message, remedy };
  } catch (error) {
    const reported = { code: codeOf(error), message: errorMessage(error) };
    // The next link reports this.
    if (error instanceof KubeError && error.class === "forbidden")
      return { link: "identity", state: "skipped", ...reported };
    return { link: "identity", state: "unknown", ...reported, remedy: "check again in a minute" };
  }
}

/** A value that people wrote stays when the cluster is upgraded. A Cluster with a ClusterDiscovery does not use it. */
function writtenVersion(version: string, { name, spec, discovered }: ClusterRow): Omit<LinkFinding, "link" | "value"> {
  const [minor] = /\d+\.\d+/.exec(version) ?? [];
  const { kubeVersion } = spec;
  if (kubeVersion === undefined || discovered !== undefined || minor === undefined || kubeVersion === minor)
    return { state: "ok" };
  const message = `spec.kubeVersion is ${kubeVersion}, for which charts are rendered`;
  return {
    state: "limited",
    code: "VersionOther",
    message,
    remedy: `set spec.kubeVersion of Cluster ${name} to "${minor}"`,
  };
}

function versionLink(version: string, cluster: ClusterRow): LinkFinding {
  const found = { link: "version", value: version } as const;
  const problem = versionProblem(version);
  if (problem === undefined) return { ...found, ...writtenVersion(version, cluster) };
  if (problem === "newer") {
    const message = `newer than ${newestTested}, which is the newest that Starling is tested with`;
    return { ...found, state: "limited", code: "VersionUntested", message, remedy: "look for a newer Starling" };
  }
  const message = `older than ${oldestSupported}, which is the oldest that Starling supports`;
  return {
    ...found,
    state: "broken",
    code: "VersionTooOld",
    message,
    remedy: "aws eks update-cluster-version, or its like",
  };
}
