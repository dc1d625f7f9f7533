import type { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import type { WorkerZone } from "#functions/apply/cluster/worker-ports.ts";
import type { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import type { SleepingClock } from "#shared/base/clock.ts";

/** The ports by which a check reaches a cluster; they keep nothing from another check. */
export interface CheckedWay {
  readonly connector: Pick<KubeConnector, "endpointOf" | "targetOf">;
  readonly eks: Pick<EksAccess, "session" | "endpoint">;
  readonly clock: SleepingClock;
  readonly zone: CheckedZone;
}

/** The zone from which a check goes, with its network. */
export interface CheckedZone extends WorkerZone {
  /** Fixed public addresses from which its requests come; none in `home`, and none in subnets that existed before. */
  readonly addresses: readonly string[];
  /** The security groups of a zone in subnets that existed before. */
  readonly securityGroups?: readonly string[];
  /** How many subnets these are, where it is known. */
  readonly subnets?: number;
}
