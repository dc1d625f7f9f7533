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

/** Each is a run of kustomize: more would take all the time that a rendering has. */
const maxBuilds = 1000;

/**
 * The topmost folders below `folder` that have a kustomization of their own: each is one build, as in Flux.
 * @throws ManifestError `KustomizationRefused` for more than can be built in one rendering.
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
    `holds ${topmost.length} kustomizations, more than ${maxBuilds}; give parts of it templates of their own, or include them in one kustomization`,
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
