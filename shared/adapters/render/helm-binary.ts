import { locateLayerProgram } from "#shared/adapters/render/layer-binary.ts";

/** The path of helm. @throws StarlingError `HelmNotFound` that says what to install. */
export function locateHelm(searchPath: string): Promise<string> {
  return locateLayerProgram({ name: "helm", version: "4.1", code: "HelmNotFound" }, searchPath);
}
