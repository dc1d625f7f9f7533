import type { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import type { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import type { SleepingClock } from "#shared/base/clock.ts";

/** The ports by which a check reaches a cluster; they keep nothing from another check. */
export interface CheckedWay {
  readonly connector: Pick<KubeConnector, "endpointOf" | "targetOf">;
  readonly eks: Pick<EksAccess, "session" | "endpoint">;
  readonly clock: SleepingClock;
}
