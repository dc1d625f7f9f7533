import { DescribeClusterCommand, type EKSClient, EKSServiceException } from "@aws-sdk/client-eks";
import { LRUCache } from "lru-cache";
import { isExpired } from "#shared/adapters/aws/in-new-session.ts";
import { regionOff } from "#shared/adapters/aws/inventory-error.ts";
import type { Identity, RoleSessions, SessionCredentials } from "#shared/adapters/aws/role-sessions.ts";
import { SharedQuestions } from "#shared/adapters/aws/shared-questions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, rawMessage, StarlingError } from "#shared/base/errors.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import type { EksAddress } from "#shared/fleet/rows/object-rows.ts";

/** The address of a cluster, and its certificate authority. */
export interface EksEndpoint {
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  /** `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`. It says whether the cluster has access entries. */
  readonly authenticationMode?: string;
  /** Whether the cluster answers from outside its network. */
  readonly publicAccess?: boolean;
  /** The networks from which it then answers. */
  readonly publicCidrs?: readonly string[];
}

export interface EksClusterOptions {
  readonly eks: (scope: { readonly region: string; readonly credentials: SessionCredentials }) => EKSClient;
  readonly sessions: RoleSessions;
  readonly clock: Clock;
}

interface KeptEndpoint {
  readonly endpoint: EksEndpoint;
  readonly askedAt: number;
  /** Earlier than `askedAt` when EKS did not answer the last request. */
  readonly answeredAt: number;
  readonly until: number;
}

/**
 * The endpoint and the authority of a cluster seldom change: only when the cluster or its authority is created again.
 * Then nobody answers at the old endpoint, or another server does, and EKS is asked at once.
 */
const keptSeconds = 86_400;
/** The minimum between two requests about one cluster. */
const leastSeconds = 60;
/** The most answers of DescribeCluster that are cached; each has some kilobytes. */
const mostKept = 1000;
const usable: ReadonlySet<string> = new Set(["ACTIVE", "UPDATING"]);
const throttles: ReadonlySet<string> = new Set(["ThrottlingException", "TooManyRequestsException", "Throttling"]);

/**
 * The answers of DescribeCluster, cached for a day. It is not called for each piece of work, because their number has
 * no bound.
 */
export class EksClusters {
  readonly #options: EksClusterOptions;
  readonly #kept = new LRUCache<string, KeptEndpoint>({ max: mostKept });
  readonly #questions: SharedQuestions<EksEndpoint>;

  constructor(options: EksClusterOptions) {
    this.#options = options;
    this.#questions = new SharedQuestions(options.clock);
  }

  /**
   *
   * @param known - the address in the Cluster's row. It counts as an answer of EKS, unless this process has a newer
   * one.
   * @throws StarlingError `EksClusterNotFound`, `EksClusterNotActive`, `EksDenied`, `RegionOff`, `EksThrottled`,
   * `EksUnavailable`, and the errors of the role's session
   */
  async endpoint(cluster: EksArn, identity: Identity, known?: EksAddress): Promise<EksEndpoint> {
    const id = idOf(cluster, identity);
    if (known?.arn === cluster.arn) this.#recall(id, known);
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.until > this.#options.clock.now().getTime()) return kept.endpoint;
    return this.#ask(id, { cluster, identity, kept });
  }

  /** The last answer of EKS, or the address in the row. */
  address(cluster: EksArn, identity: Identity): EksAddress | undefined {
    const kept = this.#kept.get(idOf(cluster, identity));
    if (kept === undefined) return undefined;
    const { server, caData } = kept.endpoint;
    return { arn: cluster.arn, server, caData, askedAt: new Date(kept.answeredAt).toISOString() };
  }

  /** An answer older than this process's is ignored, because the cluster may have been found wrong since. */
  #recall(id: string, { server, caData, askedAt }: EksAddress): void {
    const answeredAt = Date.parse(askedAt);
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.answeredAt >= answeredAt) return;
    const until = answeredAt + keptSeconds * 1000;
    this.#kept.set(id, { endpoint: { server, caData }, askedAt: answeredAt, answeredAt, until });
  }

  /** Nothing, or another server, answers at the endpoint. EKS is asked again, but at most once a minute. */
  distrust(cluster: EksArn, identity: Identity): void {
    const id = idOf(cluster, identity);
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.set(id, { ...kept, until: Math.min(kept.until, kept.askedAt + leastSeconds * 1000) });
  }

  async #ask(id: string, question: Question): Promise<EksEndpoint> {
    const now = this.#options.clock.now().getTime();
    try {
      return await this.#questions.ask(id, async () => {
        const endpoint = await this.#describe(question);
        this.#kept.set(id, { endpoint, askedAt: now, answeredAt: now, until: now + keptSeconds * 1000 });
        return endpoint;
      });
    } catch (error) {
      // The answer of yesterday is most likely still true, so that the cluster stays reachable while EKS does not
      // answer.
      const { kept } = question;
      const isAway = error instanceof StarlingError && passing.has(error.code);
      if (kept === undefined || !isAway) throw error;
      this.#kept.set(id, { ...kept, askedAt: now, until: now + leastSeconds * 1000 });
      return kept.endpoint;
    }
  }

  async #describe({ cluster, identity }: Question): Promise<EksEndpoint> {
    const credentials = await this.#options.sessions.credentials(identity);
    try {
      return await this.#describeWith(cluster, credentials);
    } catch (error) {
      if (!isExpired(error)) throw eksError(error, cluster);
    }
    const fresh = await this.#options.sessions.credentials(identity, { refused: credentials });
    try {
      return await this.#describeWith(cluster, fresh);
    } catch (error) {
      throw eksError(error, cluster);
    }
  }

  async #describeWith(cluster: EksArn, credentials: SessionCredentials): Promise<EksEndpoint> {
    const client = this.#options.eks({ region: cluster.region, credentials });
    try {
      const { cluster: found } = await client.send(new DescribeClusterCommand({ name: cluster.name }));
      const { arn, status = "unknown", endpoint, certificateAuthority, accessConfig, resourcesVpcConfig } = found ?? {};
      // A name is only unique in an account. Without a role, a cluster of Starling's own account may have the same
      // name.
      if (arn !== cluster.arn) throw notFound(cluster, arn);
      if (!usable.has(status) || endpoint === undefined || certificateAuthority?.data === undefined) {
        throw new StarlingError(
          `EKS reports the status ${status} for ${cluster.arn}; Starling uses the cluster when it is ACTIVE or UPDATING: wait for that`,
          { code: "EksClusterNotActive", retry: "transient", data: { arn: cluster.arn, status } },
        );
      }
      return {
        server: endpoint,
        caData: certificateAuthority.data,
        ...defined({
          authenticationMode: accessConfig?.authenticationMode,
          publicAccess: resourcesVpcConfig?.endpointPublicAccess,
          publicCidrs: resourcesVpcConfig?.publicAccessCidrs,
        }),
      };
    } finally {
      client.destroy();
    }
  }
}

function idOf(cluster: EksArn, { role }: Identity): string {
  return JSON.stringify([cluster.arn, role?.arn, role?.externalId]);
}

interface Question {
  readonly cluster: EksArn;
  readonly identity: Identity;
  readonly kept: KeptEndpoint | undefined;
}

const passing: ReadonlySet<string> = new Set(["EksThrottled", "EksUnavailable", "StsUnavailable"]);

function eksError(error: unknown, cluster: EksArn): StarlingError {
  if (error instanceof StarlingError) return error;
  const { arn } = cluster;
  const name = error instanceof EKSServiceException ? error.name : "";
  const failure = (code: ErrorCode, message: string) =>
    new StarlingError(message, { code, retry: "transient", data: { arn }, cause: error });
  if (name === "ResourceNotFoundException") return notFound(cluster, undefined, error);
  if (name === "AccessDeniedException" || name === "AccessDenied") {
    return failure(
      "EksDenied",
      `Starling may not describe ${arn}: allow eks:DescribeCluster on it to the role with which Starling reaches it (${rawMessage(error)})`,
    );
  }
  if (regionOff.has(name)) {
    return failure(
      "RegionOff",
      `region ${cluster.region} is not enabled for account ${cluster.accountId}, to which ${arn} belongs; enable it there, or correct spec.eks.arn`,
    );
  }
  if (throttles.has(name))
    return failure("EksThrottled", `EKS throttles requests about ${arn}: ${name}; Starling tries again`);
  return failure("EksUnavailable", `EKS did not describe ${arn}: ${errorMessage(error)}`);
}

function notFound({ arn }: EksArn, found: string | undefined, cause?: unknown): StarlingError {
  const what = found === undefined ? "does not know" : `knows ${found} of the same name, but not`;
  return new StarlingError(
    `EKS ${what} ${arn}; correct spec.eks.arn, or name a role of the cluster's account in spec.access.role`,
    { code: "EksClusterNotFound", retry: "transient", data: { arn }, ...defined({ cause }) },
  );
}
