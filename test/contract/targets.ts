import { existsSync } from "node:fs";
import { join } from "node:path";
import { startClusterHost } from "#local/cluster/cluster-host.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import { startRealApiServer } from "#test/support/real-api-server.ts";

export interface StartedTarget {
  readonly endpoint: KubeEndpoint;
  stop(): Promise<void>;
}

/** An API server without controllers: nothing becomes ready, nothing is collected. */
export interface ClusterTarget {
  readonly name: string;
  start(): Promise<StartedTarget>;
}

const embedded: ClusterTarget = {
  name: "the embedded API server",
  start: async () => {
    const host = await startClusterHost({ controllers: "off" });
    const { server, caData, token } = host.addCluster("test");
    return { endpoint: { server, caData, credentials: { token: async () => token } }, stop: () => host.stop() };
  },
};

/** Where the binaries of envtest are, if they are anywhere. */
function realAssets(): string | undefined {
  const folders = [process.env.KUBEBUILDER_ASSETS, "/usr/local/kubebuilder/bin"];
  return folders.find(
    (folder) => folder !== undefined && existsSync(join(folder, "kube-apiserver")) && existsSync(join(folder, "etcd")),
  );
}

function real(): readonly ClusterTarget[] {
  const assets = realAssets();
  return assets === undefined ? [] : [{ name: "kube-apiserver", start: () => startRealApiServer(assets) }];
}

/** The embedded server always, and a real one where its binaries are at hand: every suite holds on both. */
export const clusterTargets: readonly ClusterTarget[] = [embedded, ...real()];
