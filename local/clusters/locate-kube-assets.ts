import { homedir } from "node:os";
import { join } from "node:path";
import { findKubeAssets, type KubeAssets } from "#local/clusters/kube-assets.ts";
import { downloadKubeAssets } from "#local/clusters/kube-assets-download.ts";

/**
 * The programs of a real kube-apiserver: those that `KUBEBUILDER_ASSETS` names, those in envtest's default folder, or,
 * where `STARLING_ENVTEST_DOWNLOAD` is 1, those of the pinned release of envtest, fetched once into `~/.cache/starling/envtest`.
 * @throws Error when a folder was named that has none, or a download fails.
 */
export async function locateKubeAssets(): Promise<KubeAssets | undefined> {
  const found = await findKubeAssets(process.env.KUBEBUILDER_ASSETS);
  if (found !== undefined || process.env.STARLING_ENVTEST_DOWNLOAD !== "1") return found;
  return downloadKubeAssets({ folder: join(homedir(), ".cache", "starling", "envtest") });
}
