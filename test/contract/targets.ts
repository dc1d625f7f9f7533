import { startClusterHost } from "@starling/embedded-apiserver";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { locateKubeAssets } from "#local/clusters/locate-kube-assets.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";
import { borrowServer } from "#test/support/server-pool/borrow-server.ts";

export interface StartedTarget {
  readonly endpoint: KubeEndpoint;
  stop(): Promise<void>;
}

/** An API server without controllers: no object becomes ready, and no garbage is collected. */
export interface ClusterTarget {
  readonly name: string;
  start(): Promise<StartedTarget>;
}

const embedded: ClusterTarget = {
  name: "the embedded API server",
  start: async () => {
    const host = await startClusterHost({ controllers: "off" });
    return { endpoint: endpointOf(host.addCluster("test")), stop: () => host.stop() };
  },
};

function real(assets: KubeAssets): ClusterTarget {
  return {
    name: "kube-apiserver",
    start: async () => {
      const started = await borrowServer(assets);
      return { endpoint: endpointOf(started), stop: started.stop };
    },
  };
}

/** The programs of a real API server, if they are where envtest looks for them and STARLING_EMBEDDED_ONLY is not 1. */
export const kubeAssets = process.env.STARLING_EMBEDDED_ONLY === "1" ? undefined : await locateKubeAssets();

/** The embedded server, and a real one if its programs are installed: every suite passes on both. */
export const clusterTargets: readonly ClusterTarget[] = [
  embedded,
  ...(kubeAssets === undefined ? [] : [real(kubeAssets)]),
];
