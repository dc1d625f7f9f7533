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

/** Where a cluster answers, and who vouches for it. */
export interface EksEndpoint {
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  /** `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`: whether it knows access entries. */
  readonly authenticationMode?: string;
  /** Whether it answers from outside of its network. */
  readonly publicAccess?: boolean;
  /** From where it answers then. */
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
  /** Earlier than `askedAt` where EKS did not answer the last question. */
  readonly answeredAt: number;
  readonly until: number;
}

/**
 * Endpoint and authority of a cluster hardly ever change: when the cluster or its authority is made anew. Nobody answers at
 * the old ones then, or somebody else, and EKS is asked at once.
 */
const keptSeconds = 86_400;
/** Between two questions about one cluster, whatever goes wrong there. */
const leastSeconds = 60;
/** Of some kilobytes each. */
const mostKept = 1000;
const usable: ReadonlySet<string> = new Set(["ACTIVE", "UPDATING"]);
const throttles: ReadonlySet<string> = new Set(["ThrottlingException", "TooManyRequestsException", "Throttling"]);

/** What DescribeCluster says, remembered for a day: never asked for each piece of work, whose number has no bound. */
export class EksClusters {
  readonly #options: EksClusterOptions;
  readonly #kept = new LRUCache<string, KeptEndpoint>({ max: mostKept });
  readonly #questions: SharedQuestions<EksEndpoint>;

  constructor(options: EksClusterOptions) {
    this.#options = options;
    this.#questions = new SharedQuestions(options.clock);
  }

  /**
   * @param known - what the Cluster's row says of it: taken for what EKS said then, unless this process knows better.
   * @throws StarlingError `EksClusterNotFound`, `EksClusterNotActive`, `EksDenied`, `RegionOff`, `EksThrottled`,
   *   `EksUnavailable`, and those of the role's session
   */
  async endpoint(cluster: EksArn, identity: Identity, known?: EksAddress): Promise<EksEndpoint> {
    const id = idOf(cluster, identity);
    if (known?.arn === cluster.arn) this.#recall(id, known);
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.until > this.#options.clock.now().getTime()) return kept.endpoint;
    return this.#ask(id, { cluster, identity, kept });
  }

  /** What EKS said last, or what the row said of that. */
  address(cluster: EksArn, identity: Identity): EksAddress | undefined {
    const kept = this.#kept.get(idOf(cluster, identity));
    if (kept === undefined) return undefined;
    const { server, caData } = kept.endpoint;
    return { arn: cluster.arn, server, caData, askedAt: new Date(kept.answeredAt).toISOString() };
  }

  /** An older answer than the one that this process has is not taken: it may have been found wrong since. */
  #recall(id: string, { server, caData, askedAt }: EksAddress): void {
    const answeredAt = Date.parse(askedAt);
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.answeredAt >= answeredAt) return;
    const until = answeredAt + keptSeconds * 1000;
    this.#kept.set(id, { endpoint: { server, caData }, askedAt: answeredAt, answeredAt, until });
  }

  /** What answers there is not the cluster, or nothing does: EKS is asked again, though not more than once a minute. */
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
      // What was true a day ago most likely is: EKS being away is no reason not to reach a cluster.
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
      // A name is unique in an account only: without a role, a cluster of ours may have the name of one of theirs.
      if (arn !== cluster.arn) throw notFound(cluster, arn);
      if (!usable.has(status) || endpoint === undefined || certificateAuthority?.data === undefined) {
        throw new StarlingError(
          `EKS says that ${cluster.arn} is ${status}; it is used when it is ACTIVE or UPDATING, wait for that`,
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
  const reported = (code: ErrorCode, message: string) =>
    new StarlingError(message, { code, retry: "transient", data: { arn }, cause: error });
  if (name === "ResourceNotFoundException") return notFound(cluster, undefined, error);
  if (name === "AccessDeniedException" || name === "AccessDenied") {
    return reported(
      "EksDenied",
      `${arn} may not be described: allow eks:DescribeCluster on it to the role that Starling reaches it with (${rawMessage(error)})`,
    );
  }
  if (regionOff.has(name)) {
    return reported(
      "RegionOff",
      `region ${cluster.region} is not enabled for account ${cluster.accountId}, to which ${arn} belongs; enable it there, or correct spec.eks.arn`,
    );
  }
  if (throttles.has(name)) return reported("EksThrottled", `EKS answers no question about ${arn} for now: ${name}`);
  return reported("EksUnavailable", `${arn} was not described: EKS says ${errorMessage(error)}`);
}

function notFound({ arn }: EksArn, found: string | undefined, cause?: unknown): StarlingError {
  const what = found === undefined ? "no such cluster" : `another one of that name, ${found}`;
  return new StarlingError(
    `EKS knows ${what} where Starling asks for ${arn}; correct spec.eks.arn, or name a role of the cluster's account in spec.access.role`,
    { code: "EksClusterNotFound", retry: "transient", data: { arn }, ...defined({ cause }) },
  );
}
