import { isJsonObject } from "#shared/base/json.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { type ListedFile, normalFolder } from "#shared/source/tree-listing.ts";
import { jsonAsYaml, yamlOfJson } from "#shared/source/yaml/json-as-yaml.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** The limit of all files of values together, both as they are and with their aliases expanded. */
const maxValuesBytes = 4 * 1024 * 1024;

/** The files of one artifact, by path. */
type Files = ReadonlyMap<string, ListedFile>;

/**
 * The values that override the chart's own, lowest precedence first: those of the files in order, then those of the
 * template. Each is written again from its parsed form.
 * @param others - files of the other artifacts that the release names, by digest.
 * @throws ManifestError `ValuesNotFound` for a missing file that is not optional; `InvalidYaml` and `InvalidValues` for
 * a file that is not a map, and for values that are too large.
 */
export function chartValues(
  release: HelmRelease,
  files: readonly ListedFile[],
  others: ReadonlyMap<string, readonly ListedFile[]> = new Map(),
): readonly string[] {
  const own = byPath(files);
  const size = { left: maxValuesBytes };
  const besides = new Map([...others].map(([digest, theirs]) => [digest, byPath(theirs)]));
  const texts = (release.valuesFrom ?? []).flatMap(({ path, optional, from }, index) => {
    const artifact = from === undefined ? own : besides.get(from.artifactDigest);
    const file = artifact?.get(normalFolder(path));
    if (file !== undefined) return [valuesIn(file, size)];
    if (optional) return [];
    const whose = from === undefined ? "the artifact" : `Source ${from.source}`;
    throw new ManifestError(
      "ValuesNotFound",
      { file: path, field: `render.helm.valuesFrom[${index}].path` },
      `is not a file of ${whose}; correct the path, which begins at the root of the repository, add its folder to the Source's spec.paths, or set optional: true`,
    );
  });
  return release.values === undefined ? texts : [...texts, yamlOfJson(release.values)];
}

function byPath(files: readonly ListedFile[]): Files {
  return new Map(files.map((file) => [file.path, file]));
}

/**
 * The bytes that are left for further files. Helm needs about fifty times the size of the values in memory, four times
 * over.
 */
interface Size {
  left: number;
}

function valuesIn({ path, content }: ListedFile, size: Size): string {
  // The size is checked first, because reading takes time in proportion to it.
  requireRoom(path, size, content.length);
  const documents = parseDocuments(textOf(path, content), path);
  const [first, second] = documents;
  if (second !== undefined) {
    const place = { file: path, document: second.document, line: second.line };
    throw new ManifestError(
      "InvalidValues",
      place,
      "a file of values must have one document, because Helm ignores further ones; remove this one",
    );
  }
  if (first !== undefined && !isJsonObject(first.value)) {
    throw new ManifestError(
      "InvalidValues",
      { file: path, line: first.line },
      "values must be a map, such as `replicas: 2`",
    );
  }
  // The size with its aliases expanded.
  const written = jsonAsYaml(first?.value ?? {});
  requireRoom(path, size, written.length);
  size.left -= written.length;
  return written;
}

function requireRoom(file: string, { left }: Size, bytes: number): void {
  if (bytes <= left) return;
  const reason = `makes the files of values larger than ${maxValuesBytes} bytes, the most that Helm has memory for; leave out what the chart does not read, or put data into a file of the chart`;
  throw new ManifestError("InvalidValues", { file }, reason);
}

function textOf(file: string, content: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new ManifestError("InvalidYaml", { file }, "is not UTF-8; save it as UTF-8");
  }
}
