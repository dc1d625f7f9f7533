import type { ListedFile } from "#shared/source/tree-listing.ts";

/** The names that kustomize recognises, in its order. */
export const kustomizationNames = ["kustomization.yaml", "kustomization.yml", "Kustomization"] as const;

/**
 * Whether the folder is a Component, which other kustomizations include. kustomize builds nothing from a Component
 * alone.
 */
export function isComponent(files: ReadonlyMap<string, ListedFile>, folder: string): boolean {
  const [path = ""] = kustomizationsOf(files, folder);
  return /^kind: *["']?Component\b/m.test(new TextDecoder().decode(files.get(path)?.content));
}

export const componentAlone =
  "it is a Component, which kustomize only includes in other kustomizations; name it in the template's spec.components";

/** The paths of the kustomization files of a folder (`.` is the artifact itself). kustomize refuses more than one. */
export function kustomizationsOf(files: ReadonlyMap<string, ListedFile>, folder: string): string[] {
  return kustomizationNames
    .map((name) => (folder === "." ? name : `${folder}/${name}`))
    .filter((path) => files.has(path));
}
