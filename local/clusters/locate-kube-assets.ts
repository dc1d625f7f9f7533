import { homedir } from "node:os";
import { join } from "node:path";
import { findKubeAssets, type KubeAssets } from "#local/clusters/kube-assets.ts";
import { downloadKubeAssets } from "#local/clusters/kube-assets-download.ts";

/**
 * The programs of a real kube-apiserver, from the folder in `KUBEBUILDER_ASSETS`, or from envtest's default folder. If
 * both have none and `STARLING_ENVTEST_DOWNLOAD` is 1, it downloads the pinned envtest release once into
 * `~/.cache/starling/envtest`. @throws Error when `KUBEBUILDER_ASSETS` names a folder without programs, or when a
 * download fails.
 */
export async function locateKubeAssets(): Promise<KubeAssets | undefined> {
  const found = await findKubeAssets(process.env.KUBEBUILDER_ASSETS);
  if (found !== undefined || process.env.STARLING_ENVTEST_DOWNLOAD !== "1") return found;
  return downloadKubeAssets({ folder: join(homedir(), ".cache", "starling", "envtest") });
}
