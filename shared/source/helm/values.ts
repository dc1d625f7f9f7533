import { isJsonObject } from "#shared/base/json.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { type ListedFile, normalFolder } from "#shared/source/tree-listing.ts";
import { jsonAsYaml, yamlOfJson } from "#shared/source/yaml/json-as-yaml.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** By path, of an artifact. */
type Files = ReadonlyMap<string, ListedFile>;

/**
 * The values that go over the chart's own, the least first: those of the files in their order, then those of the
 * template. Each is written anew from what was understood of it.
 * @param others - files of the other artifacts that the release names, by digest.
 * @throws ManifestError `ValuesNotFound` for a file that is not there and not optional, `InvalidYaml` and `InvalidValues`
 *   for one that is no map.
 */
export function valuesOf(
  release: HelmRelease,
  files: readonly ListedFile[],
  others: ReadonlyMap<string, readonly ListedFile[]> = new Map(),
): readonly string[] {
  const own = byPath(files);
  const besides = new Map([...others].map(([digest, theirs]) => [digest, byPath(theirs)]));
  const texts = (release.valuesFrom ?? []).flatMap(({ path, optional, from }, index) => {
    const artifact = from === undefined ? own : besides.get(from.artifactDigest);
    const file = artifact?.get(normalFolder(path));
    if (file !== undefined) return [valuesIn(file)];
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

function valuesIn({ path, content }: ListedFile): string {
  const documents = parseDocuments(new TextDecoder().decode(content), path);
  const [first, second] = documents;
  if (second !== undefined) {
    const place = { file: path, document: second.document, line: second.line };
    throw new ManifestError("InvalidValues", place, "a file of values has one document; Helm would leave out this one");
  }
  if (first !== undefined && !isJsonObject(first.value)) {
    throw new ManifestError("InvalidValues", { file: path, line: first.line }, "values are a map, as `replicas: 2`");
  }
  return jsonAsYaml(first?.value ?? {});
}
