import { locateLayerProgram } from "#shared/adapters/render/layer-binary.ts";

/** The path of a helm. @throws StarlingError `HelmNotFound` saying what to install. */
export function locateHelm(searchPath: string): Promise<string> {
  return locateLayerProgram({ name: "helm", version: "4.1", code: "HelmNotFound" }, searchPath);
}
