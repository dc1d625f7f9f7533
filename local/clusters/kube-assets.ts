import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { defined } from "#shared/base/defined.ts";

/** The programs of a Kubernetes control plane, by path. */
export interface KubeAssets {
  readonly folder: string;
  readonly etcd: string;
  readonly kubeApiServer: string;
  /** Not part of envtest's archives: absent unless somebody put it there. */
  readonly kubeControllerManager?: string;
  readonly kubectl?: string;
}

/** Where envtest looks by default. */
export const defaultKubeAssetsFolder = "/usr/local/kubebuilder/bin";

/**
 * Finds etcd and kube-apiserver as envtest does: in the folder that `KUBEBUILDER_ASSETS` names, which is given here, else
 * in `/usr/local/kubebuilder/bin`. Undefined when the default folder has none.
 * @throws Error naming the folder and what it lacks when one is given: a folder that was asked for is not passed over.
 */
export async function findKubeAssets(kubebuilderAssets: string | undefined): Promise<KubeAssets | undefined> {
  if (kubebuilderAssets === undefined || kubebuilderAssets === "") return readKubeAssets(defaultKubeAssetsFolder);
  const assets = await readKubeAssets(kubebuilderAssets);
  if (assets !== undefined) return assets;
  throw new Error(
    `KUBEBUILDER_ASSETS is ${kubebuilderAssets}, where there is no etcd and kube-apiserver that can be run; point it to a folder with both or unset it`,
  );
}

/** The programs of one folder; undefined when etcd or kube-apiserver is not among them. */
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
