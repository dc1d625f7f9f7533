import type { Authenticator, User } from "@starling/embedded-apiserver";
import { clusterAdminPolicy, type EksRegister } from "#local/aws/eks/eks-register.ts";
import { verifyEksToken } from "#local/aws/eks/eks-token-verifier.ts";

export interface EksAuthenticatorOptions {
  readonly clusters: EksRegister;
  readonly stsEndpoint: string;
  readonly now: () => Date;
  /** The ARN of the EKS cluster that an embedded cluster plays, by the name of the embedded cluster, if any. */
  readonly arnOf: (cluster: string) => string | undefined;
  /** Called for each refused token. The client gets a 401 without a reason. */
  readonly onRefusal?: (cluster: string, reason: string) => void;
}

/**
 * The time for which kube-apiserver caches the answers of a token webhook (`--authentication-token-webhook-cache-ttl`).
 */
const keptMs = 2 * 60_000;
const maxKept = 1000;

interface KeptUser {
  readonly user: User;
  readonly until: number;
}

/**
 * Authenticates as EKS does. The token names an IAM identity, and the cluster's access entry for this identity gives
 * the user and the groups. Refusals are not cached, so that a new access entry works at once.
 */
export function eksAuthenticator(options: EksAuthenticatorOptions): Authenticator {
  const kept = new Map<string, KeptUser>();
  return async (token, cluster) => {
    const id = `${cluster} ${token}`;
    const before = kept.get(id);
    if (before !== undefined && before.until > options.now().getTime()) return before.user;
    kept.delete(id);
    const user = await userOf(token, cluster, options);
    if (user === undefined) return undefined;
    kept.set(id, { user, until: options.now().getTime() + keptMs });
    const [oldest] = kept.keys();
    if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
    return user;
  };
}

async function userOf(token: string, cluster: string, options: EksAuthenticatorOptions): Promise<User | undefined> {
  const arn = options.arnOf(cluster);
  const found = arn === undefined ? undefined : options.clusters.find(arn);
  if (found === undefined) return undefined;
  try {
    const identity = await verifyEksToken(token, {
      clusterName: found.name,
      partition: found.arn.split(":")[1] ?? "",
      region: found.region,
      stsEndpoint: options.stsEndpoint,
      now: options.now,
    });
    const entry = options.clusters.accessEntryOf(found.arn, identity.arn);
    if (entry === undefined) throw new Error(`no access entry for ${identity.canonicalArn}`);
    const sessionName = (identity.sessionName ?? "").replaceAll("@", "-");
    return {
      username: entry.username.replaceAll("{{SessionName}}", sessionName),
      uid: `aws-iam-authenticator:${identity.accountId}:${identity.userId}`,
      // EKS grants this policy outside RBAC. The closest user of an API server is an administrator.
      groups: [...entry.kubernetesGroups, ...(entry.policies.includes(clusterAdminPolicy) ? ["system:masters"] : [])],
      extra: {
        arn: [identity.arn],
        canonicalArn: [identity.canonicalArn],
        accessKeyId: [identity.accessKeyId],
        ...(identity.sessionName === undefined ? {} : { sessionName: [identity.sessionName] }),
      },
    };
  } catch (error) {
    options.onRefusal?.(cluster, error instanceof Error ? error.message : String(error));
    return undefined;
  }
}
