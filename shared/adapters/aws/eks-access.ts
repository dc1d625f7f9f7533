import type { STSClient } from "@aws-sdk/client-sts";
import { LRUCache } from "lru-cache";
import { type EksClusterOptions, EksClusters, type EksEndpoint } from "#shared/adapters/aws/eks-clusters.ts";
import { eksToken } from "#shared/adapters/aws/eks-token.ts";
import { expiringAfter } from "#shared/adapters/aws/expiring-after.ts";
import { type Identity, RoleSessions, type SessionCredentials } from "#shared/adapters/aws/role-sessions.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import type { EksAddress } from "#shared/fleet/rows/object-rows.ts";

/** A cluster, and the role it is reached with; none: as the function itself. */
export interface EksTarget {
  readonly cluster: EksArn;
  readonly role?: Identity["role"];
}

export interface EksAccessOptions {
  /** Of Starling's own region. */
  readonly sts: STSClient;
  readonly eks: EksClusterOptions["eks"];
  readonly clock: Clock;
  readonly installation: string;
}

interface KeptToken {
  readonly token: string;
  readonly credentials: SessionCredentials;
}

/** Of the 15 minutes that a token is good for; what is left covers a clock that is wrong. */
const tokenMs = 600_000;
/** Of some kilobytes each. */
const mostTokens = 1000;

/** Everything that is asked of AWS to reach EKS clusters by IAM, and what is remembered of it in one process. */
export class EksAccess {
  readonly #options: EksAccessOptions;
  readonly #sessions: RoleSessions;
  readonly #clusters: EksClusters;
  readonly #clock: Clock;
  readonly #tokens: LRUCache<string, KeptToken>;

  constructor(options: EksAccessOptions) {
    const { sts, eks, clock, installation } = options;
    this.#options = options;
    this.#clock = clock;
    this.#tokens = new LRUCache({ max: mostTokens, ...expiringAfter(tokenMs, clock) });
    this.#sessions = new RoleSessions({ sts, clock, sessionName: `starling-${installation}` });
    this.#clusters = new EksClusters({ eks, sessions: this.#sessions, clock });
  }

  /** The same, asking everything anew: what is remembered here says what was true an hour ago. */
  withoutMemory(): EksAccess {
    return new EksAccess(this.#options);
  }

  /**
   * @param known - what the Cluster's row says of it.
   * @throws StarlingError as `EksClusters` does.
   */
  endpoint(target: EksTarget, known?: EksAddress): Promise<EksEndpoint> {
    return this.#clusters.endpoint(target.cluster, target, known);
  }

  /** What is remembered of it; undefined when nobody asked. */
  address(target: EksTarget): EksAddress | undefined {
    return this.#clusters.address(target.cluster, target);
  }

  /** Credentials of the role. @throws StarlingError as `RoleSessions` does. */
  session(target: EksTarget): Promise<SessionCredentials> {
    return this.#sessions.credentials(target);
  }

  /** What answered at the endpoint was not the cluster. */
  distrust(target: EksTarget): void {
    this.#clusters.distrust(target.cluster, target);
  }

  /**
   * A bearer token for the cluster.
   * @param options.refresh - the last one was refused: a new one, by a new session where that one is not brand new.
   * @throws StarlingError as `eksToken` and `RoleSessions` do.
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
