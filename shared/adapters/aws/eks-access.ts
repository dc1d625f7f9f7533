import type { STSClient } from "@aws-sdk/client-sts";
import { LRUCache } from "lru-cache";
import { type EksClusterOptions, EksClusters, type EksEndpoint } from "#shared/adapters/aws/eks-clusters.ts";
import { eksToken } from "#shared/adapters/aws/eks-token.ts";
import { expiringAfter } from "#shared/adapters/aws/expiring-after.ts";
import {
  callerOfZone,
  type RoleIdentity,
  RoleSessions,
  type SessionCredentials,
} from "#shared/adapters/aws/role-sessions.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { EksAddress } from "#shared/fleet/rows/object-rows.ts";

/** A cluster, and the role with which it is reached. Default: the function's own role. */
export interface EksTarget {
  readonly cluster: EksArn;
  readonly role?: RoleIdentity | undefined;
}

export interface EksAccessOptions {
  /** The client of Starling's own region. */
  readonly sts: STSClient;
  readonly eks: EksClusterOptions["eks"];
  readonly clock: Clock;
  readonly installation: string;
  /** The zone whose role is used. */
  readonly zone?: string;
}

interface KeptToken {
  readonly token: string;
  readonly credentials: SessionCredentials;
}

/** A token is valid for 15 minutes. The rest covers a wrong clock. */
const tokenMs = 600_000;
/** Each has some kilobytes. */
const mostTokens = 1000;

/** All requests to AWS for reaching EKS clusters by IAM, with one process's cache of their answers. */
export class EksAccess {
  readonly #options: EksAccessOptions;
  readonly #sessions: RoleSessions;
  readonly #clusters: EksClusters;
  readonly #clock: Clock;
  readonly #tokens: LRUCache<string, KeptToken>;

  constructor(options: EksAccessOptions) {
    const { sts, eks, clock, installation, zone = homeZone } = options;
    this.#options = options;
    this.#clock = clock;
    this.#tokens = new LRUCache({ max: mostTokens, ...expiringAfter(tokenMs, clock) });
    const caller = callerOfZone(zone);
    this.#sessions = new RoleSessions({ sts, clock, sessionName: `starling-${installation}`, caller });
    this.#clusters = new EksClusters({ eks, sessions: this.#sessions, clock });
  }

  /** The same without a cache. The cached answers may be an hour old. */
  withoutMemory(): EksAccess {
    return new EksAccess(this.#options);
  }

  /**
   *
   * @param known - the address in the Cluster's row.
   * @throws StarlingError like `EksClusters`.
   */
  endpoint(target: EksTarget, known?: EksAddress): Promise<EksEndpoint> {
    return this.#clusters.endpoint(target.cluster, target, known);
  }

  /** The cached address; undefined when there is none. */
  address(target: EksTarget): EksAddress | undefined {
    return this.#clusters.address(target.cluster, target);
  }

  /** Credentials of the role. @throws StarlingError like `RoleSessions`. */
  session(target: EksTarget): Promise<SessionCredentials> {
    return this.#sessions.credentials(target);
  }

  /** Reports that something other than the cluster answered at the endpoint. */
  distrust(target: EksTarget): void {
    this.#clusters.distrust(target.cluster, target);
  }

  /**
   * A bearer token for the cluster.
   * @param options.refresh - the last token was refused: returns a new one, from a new session unless the session is
   * new.
   * @throws StarlingError like `eksToken` and `RoleSessions`.
   */
  async token(target: EksTarget, { refresh }: { readonly refresh: boolean }): Promise<string> {
    const id = JSON.stringify([target.cluster.arn, target.role?.arn, target.role?.externalId]);
    const kept = this.#tokens.get(id);
    if (kept !== undefined && !refresh) return kept.token;
    const refused = refresh && kept !== undefined ? { refused: kept.credentials } : {};
    const credentials = await this.#sessions.credentials(target, refused);
    const token = await eksToken(target.cluster, credentials, this.#clock.now());
    this.#tokens.set(id, { token, credentials });
    return token;
  }
}
