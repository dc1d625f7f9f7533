import { compareText } from "#shared/base/text-order.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** Decided by the file's name. */
export function isManifestFile({ path }: ListedFile): boolean {
  return /\.(yaml|yml|json)$/.test(path);
}

/**
 * Decodes every `*.yaml`, `*.yml` and `*.json` file below `folder` in the order of their paths, except those below one
 * of `without`.
 * @throws ManifestError for a file that is not YAML, or that contains something other than objects.
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

/** @throws ManifestError `InvalidYaml` for another encoding, which some editors write. */
function textOf({ path, content }: ListedFile): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new ManifestError("InvalidYaml", { file: path }, "is not UTF-8; save it as UTF-8");
  }
}

/** Each is a run of kustomize. More runs could take all the time of a rendering. */
const maxBuilds = 1000;

/**
 * The topmost folders below `folder` that have a kustomization. Each of them is one build, as in Flux.
 * @throws ManifestError `KustomizationRefused` when there are more than one rendering can build.
 */
export function nestedKustomizations(files: readonly ListedFile[], folder: string): string[] {
  const found = new Set(
    files
      .map(({ path }) => path)
      .filter((path) => isWithin(path, [folder]) && isKustomization(path))
      .map((path) => path.slice(0, path.lastIndexOf("/"))),
  );
  const topmost = [...found].filter((path) => !isBelowAny(path, found)).sort(compareText);
  if (topmost.length <= maxBuilds) return topmost;
  throw new ManifestError(
    "KustomizationRefused",
    { file: folder },
    `contains ${topmost.length} kustomizations, more than ${maxBuilds}; write several templates for parts of the folder, or include its kustomizations in one`,
  );
}

function isBelowAny(path: string, folders: ReadonlySet<string>): boolean {
  for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
    if (folders.has(path.slice(0, slash))) return true;
  }
  return false;
}

function isKustomization(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return path.includes("/") && kustomizationNames.some((known) => known === name);
}
