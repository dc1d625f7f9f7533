import { compareText } from "#shared/base/text-order.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** By its name. */
export function isManifestFile({ path }: ListedFile): boolean {
  return /\.(yaml|yml|json)$/.test(path);
}

/**
 * Decodes every `*.yaml`, `*.yml` and `*.json` below `folder`, in the order of their paths, leaving out what lies below
 * one of `without`.
 * @throws ManifestError for a file that is no YAML, or holds something else than objects.
 */
export function readPlainFiles(
  files: readonly ListedFile[],
  { folder, without }: { readonly folder: string; readonly without: readonly string[] },
): ManifestDocument[] {
  return files
    .filter((file) => isManifestFile(file) && isWithin(file.path, [folder]) && !isWithin(file.path, without))
    .toSorted((a, b) => compareText(a.path, b.path))
    .flatMap((file) => parseManifests(textOf(file), file.path));
}

/** @throws ManifestError `InvalidYaml` for what some editors write. */
function textOf({ path, content }: ListedFile): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new ManifestError("InvalidYaml", { file: path }, "is not UTF-8; save it as UTF-8");
  }
}

/** The topmost folders below `folder` that have a kustomization of their own: each is one build, as in Flux. */
export function nestedKustomizations(files: readonly ListedFile[], folder: string): string[] {
  const found = files
    .map(({ path }) => path)
    .filter((path) => isWithin(path, [folder]) && isKustomization(path))
    .map((path) => path.slice(0, path.lastIndexOf("/")))
    .sort(compareText);
  return found.filter(
    (path, index) => found.indexOf(path) === index && !found.some((other) => path.startsWith(`${other}/`)),
  );
}

function isKustomization(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return path.includes("/") && kustomizationNames.some((known) => known === name);
}
