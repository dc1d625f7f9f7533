import type { KubeConnector } from "#functions/apply/cluster/kube-connector.ts";
import type { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import type { SleepingClock } from "#shared/base/clock.ts";

/** What it takes to go the way to a cluster, and remembers nothing of another time. */
export interface CheckedWay {
  readonly connector: Pick<KubeConnector, "endpointOf" | "targetOf">;
  readonly eks: Pick<EksAccess, "session" | "endpoint">;
  readonly clock: SleepingClock;
}
