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

/** Where a cluster answers, and who vouches for it. */
export interface EksEndpoint {
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  /** `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`: whether it knows access entries. */
  readonly authenticationMode?: string;
  /** Whether it answers from outside of its network. */
  readonly publicAccess?: boolean;
}

export interface EksClusterOptions {
  readonly eks: (scope: { readonly region: string; readonly credentials: SessionCredentials }) => EKSClient;
  readonly sessions: RoleSessions;
  readonly clock: Clock;
}

interface KeptEndpoint {
  readonly endpoint: EksEndpoint;
  readonly askedAt: number;
  readonly until: number;
}

/** Endpoint and authority of a cluster change when it is made anew, or its authority is: hardly ever. */
const keptSeconds = 3600;
/** Between two questions about one cluster, whatever goes wrong there. */
const leastSeconds = 60;
/** Of some kilobytes each. */
const mostKept = 1000;
const usable: ReadonlySet<string> = new Set(["ACTIVE", "UPDATING"]);
const throttles: ReadonlySet<string> = new Set(["ThrottlingException", "TooManyRequestsException", "Throttling"]);

/** What DescribeCluster says, remembered for an hour: never asked for each piece of work, whose number has no bound. */
export class EksClusters {
  readonly #options: EksClusterOptions;
  readonly #kept = new LRUCache<string, KeptEndpoint>({ max: mostKept });
  readonly #questions: SharedQuestions<EksEndpoint>;

  constructor(options: EksClusterOptions) {
    this.#options = options;
    this.#questions = new SharedQuestions(options.clock);
  }

  /**
   * @throws StarlingError `EksClusterNotFound`, `EksClusterNotActive`, `EksDenied`, `RegionOff`, `EksThrottled`,
   *   `EksUnavailable`, and those of the role's session
   */
  async endpoint(cluster: EksArn, identity: Identity): Promise<EksEndpoint> {
    const id = JSON.stringify([cluster.arn, identity.role?.arn, identity.role?.externalId]);
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.until > this.#options.clock.now().getTime()) return kept.endpoint;
    return this.#ask(id, { cluster, identity, kept });
  }

  /** What answers there is not the cluster, or nothing does: EKS is asked again, though not more than once a minute. */
  distrust(cluster: EksArn, identity: Identity): void {
    const id = JSON.stringify([cluster.arn, identity.role?.arn, identity.role?.externalId]);
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.set(id, { ...kept, until: Math.min(kept.until, kept.askedAt + leastSeconds * 1000) });
  }

  async #ask(id: string, question: Question): Promise<EksEndpoint> {
    const now = this.#options.clock.now().getTime();
    try {
      return await this.#questions.ask(id, async () => {
        const endpoint = await this.#describe(question);
        this.#kept.set(id, { endpoint, askedAt: now, until: now + keptSeconds * 1000 });
        return endpoint;
      });
    } catch (error) {
      // What was true an hour ago most likely is: EKS being away is no reason not to reach a cluster.
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
        }),
      };
    } finally {
      client.destroy();
    }
  }
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
  const told = (code: ErrorCode, message: string) =>
    new StarlingError(message, { code, retry: "transient", data: { arn }, cause: error });
  if (name === "ResourceNotFoundException") return notFound(cluster, undefined, error);
  if (name === "AccessDeniedException" || name === "AccessDenied") {
    return told(
      "EksDenied",
      `${arn} may not be described: allow eks:DescribeCluster on it to the role that Starling reaches it with (${rawMessage(error)})`,
    );
  }
  if (regionOff.has(name)) {
    return told(
      "RegionOff",
      `region ${cluster.region} is not enabled for account ${cluster.accountId}, to which ${arn} belongs; enable it there, or correct spec.eks.arn`,
    );
  }
  if (throttles.has(name)) return told("EksThrottled", `EKS answers no question about ${arn} for now: ${name}`);
  return told("EksUnavailable", `${arn} was not described: EKS says ${errorMessage(error)}`);
}

function notFound({ arn }: EksArn, found: string | undefined, cause?: unknown): StarlingError {
  const what = found === undefined ? "no such cluster" : `another one of that name, ${found}`;
  return new StarlingError(
    `EKS knows ${what} where Starling asks for ${arn}; correct spec.eks.arn, or name a role of the cluster's account in spec.access.role`,
    { code: "EksClusterNotFound", retry: "transient", data: { arn }, ...defined({ cause }) },
  );
}
