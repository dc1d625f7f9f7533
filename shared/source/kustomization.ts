import type { ListedFile } from "#shared/source/tree-listing.ts";

/** The names kustomize recognises, in its order. */
export const kustomizationNames = ["kustomization.yaml", "kustomization.yml", "Kustomization"] as const;

/** The paths of the kustomization files of a folder (`.` is the artifact itself): kustomize refuses more than one. */
export function kustomizationsOf(files: ReadonlyMap<string, ListedFile>, folder: string): string[] {
  return kustomizationNames
    .map((name) => (folder === "." ? name : `${folder}/${name}`))
    .filter((path) => files.has(path));
}
