import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { defined } from "#shared/base/defined.ts";

/** The paths of the programs of a Kubernetes control plane. */
export interface KubeAssets {
  readonly folder: string;
  readonly etcd: string;
  readonly kubeApiServer: string;
  /** Undefined unless the user has added it, because envtest's archives do not contain it. */
  readonly kubeControllerManager?: string;
  readonly kubectl?: string;
}

/** The default folder of envtest. */
export const defaultKubeAssetsFolder = "/usr/local/kubebuilder/bin";

/**
 * Finds etcd and kube-apiserver as envtest does, in the given folder (from `KUBEBUILDER_ASSETS`) or in
 * `/usr/local/kubebuilder/bin`. Undefined when the default folder has none. @throws Error when a folder is given and
 * lacks a program, because the caller asked for that folder.
 */
export async function findKubeAssets(kubebuilderAssets: string | undefined): Promise<KubeAssets | undefined> {
  if (kubebuilderAssets === undefined || kubebuilderAssets === "") return readKubeAssets(defaultKubeAssetsFolder);
  const assets = await readKubeAssets(kubebuilderAssets);
  if (assets !== undefined) return assets;
  throw new Error(
    `KUBEBUILDER_ASSETS is ${kubebuilderAssets}, which does not contain executable etcd and kube-apiserver; set it to a folder with both, or unset it`,
  );
}

/** The programs in a folder; undefined when etcd or kube-apiserver is missing. */
export async function readKubeAssets(folder: string): Promise<KubeAssets | undefined> {
  const [etcd, kubeApiServer, kubeControllerManager, kubectl] = await Promise.all(
    ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"].map((name) => executable(join(folder, name))),
  );
  if (etcd === undefined || kubeApiServer === undefined) return undefined;
  return {
    ...{ folder, etcd, kubeApiServer },
    ...defined({ kubeControllerManager, kubectl }),
  };
}

async function executable(path: string): Promise<string | undefined> {
  return access(path, constants.X_OK).then(
    () => path,
    () => undefined,
  );
}
