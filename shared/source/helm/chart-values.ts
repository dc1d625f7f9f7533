import { isJsonObject } from "#shared/base/json.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { type ListedFile, normalFolder } from "#shared/source/tree-listing.ts";
import { jsonAsYaml, yamlOfJson } from "#shared/source/yaml/json-as-yaml.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** Of all files of values together, as they are and with their aliases written out. */
const maxValuesBytes = 4 * 1024 * 1024;

/** By path, of an artifact. */
type Files = ReadonlyMap<string, ListedFile>;

/**
 * The values that go over the chart's own, the least first: those of the files in their order, then those of the
 * template. Each is written anew from what was understood of it.
 * @param others - files of the other artifacts that the release names, by digest.
 * @throws ManifestError `ValuesNotFound` for a file that is not there and not optional, `InvalidYaml` and `InvalidValues`
 *   for one that is no map, and where they are too large.
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
      `is no file of ${whose}; paths begin at the root of the repository: correct it, add its folder to the Source's spec.paths, or say optional: true`,
    );
  });
  return release.values === undefined ? texts : [...texts, yamlOfJson(release.values)];
}

function byPath(files: readonly ListedFile[]): Files {
  return new Map(files.map((file) => [file.path, file]));
}

/** What is left of what all files may have; Helm holds values about fifty times as large, four times over. */
interface Size {
  left: number;
}

function valuesIn({ path, content }: ListedFile, size: Size): string {
  // Before it is read, which takes as long as it is large.
  requireRoom(path, size, content.length);
  const documents = parseDocuments(textOf(path, content), path);
  const [first, second] = documents;
  if (second !== undefined) {
    const place = { file: path, document: second.document, line: second.line };
    throw new ManifestError("InvalidValues", place, "a file of values has one document; Helm would leave out this one");
  }
  if (first !== undefined && !isJsonObject(first.value)) {
    throw new ManifestError("InvalidValues", { file: path, line: first.line }, "values are a map, as `replicas: 2`");
  }
  // With what its aliases stand for.
  const written = jsonAsYaml(first?.value ?? {});
  requireRoom(path, size, written.length);
  size.left -= written.length;
  return written;
}

function requireRoom(file: string, { left }: Size, bytes: number): void {
  if (bytes <= left) return;
  const reason = `makes the files of values larger than ${maxValuesBytes} bytes, more than Helm can hold; leave out what the chart does not read, or put data into a file of the chart`;
  throw new ManifestError("InvalidValues", { file }, reason);
}

function textOf(file: string, content: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new ManifestError("InvalidYaml", { file }, "is not UTF-8; save it as UTF-8");
  }
}
