import { locateLayerProgram } from "#shared/adapters/render/layer-binary.ts";

/** The path of kubectl. @throws StarlingError `KubectlNotFound` that says what to install. */
export function locateKubectl(searchPath: string): Promise<string> {
  return locateLayerProgram({ name: "kubectl", version: "1.35", code: "KubectlNotFound" }, searchPath);
}
