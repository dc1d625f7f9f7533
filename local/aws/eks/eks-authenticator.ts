import type { Authenticator, User } from "@starling/embedded-apiserver";
import { clusterAdminPolicy, type EksRegister } from "#local/aws/eks/eks-register.ts";
import { verifyEksToken } from "#local/aws/eks/eks-token-verifier.ts";

export interface EksAuthenticatorOptions {
  readonly clusters: EksRegister;
  readonly stsEndpoint: string;
  readonly now: () => Date;
  /** The EKS cluster that an embedded cluster is, by its name; undefined: none. */
  readonly arnOf: (cluster: string) => string | undefined;
  /** Of tokens that are refused: the client is told 401 and nothing else. */
  readonly onRefusal?: (cluster: string, reason: string) => void;
}

/** As kube-apiserver remembers what a token webhook said (`--authentication-token-webhook-cache-ttl`). */
const keptMs = 2 * 60_000;
const maxKept = 1000;

interface KeptUser {
  readonly user: User;
  readonly until: number;
}

/**
 * Authenticates as EKS does: the token says who somebody is to IAM, and the cluster's access entry for them which user
 * and groups they are here. Refusals are not remembered, so that an entry that is added holds at once.
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
      // EKS grants a policy beside RBAC; of the users that an API server has, an administrator comes closest.
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
