import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import { isIgnored, type ListedFile } from "#shared/source/tree-listing.ts";
import { ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";
import { expansionOf } from "#shared/source/yaml/yaml.ts";

/** The artifact, and the parts of it that a build needs. */
export interface BuildFiles {
  readonly files: ReadonlyMap<string, ListedFile>;
  readonly folders: ReadonlySet<string>;
  /** The files that kustomize gets, by path: the bytes of the artifact, or their parsed form. */
  readonly inputs: Map<string, Uint8Array>;
  /** The characters that aliases add to each YAML file that was checked. */
  readonly expansions: Map<string, number>;
  /** Charts that are rendered before kustomize runs. */
  readonly charts: InflatedChart[];
}

/** One kustomization. */
export interface KustomizeScope extends BuildFiles {
  readonly folder: string;
  readonly file: string;
  /** The bytes that kustomize loads for this kustomization alone, with aliases expanded. */
  readonly weight: { bytes: number };
}

/** A string of a kustomization, and its field. */
export interface KustomizationEntry {
  readonly value: string;
  readonly field: string;
  /** Whether a generator of Secrets contains the entry: people write a value by mistake where a file is expected. */
  readonly isSecret?: boolean;
}

function shownValue({ value, isSecret = false }: KustomizationEntry): string {
  return isSecret ? "the named file (not shown, because the name may be a secret)" : `"${value}"`;
}

/** Go's JSON decoder ignores case when it matches fields, by Unicode's simple folding: `Reſources` is resources. */
export function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}

/** The strings of a field that is a string or a list of strings. */
export function entriesOf(value: unknown, field: string): KustomizationEntry[] {
  if (!Array.isArray(value)) return typeof value === "string" ? [{ value, field }] : [];
  return value.flatMap((item: unknown, index) =>
    typeof item === "string" ? [{ value: item, field: `${field}[${index}]` }] : [],
  );
}

/**
 * Whether the text is an inline document instead of a path: it has several lines, or a colon as in YAML. A URL has
 * neither.
 */
export function isInline(text: string): boolean {
  return !isRemote(text) && (text.includes("\n") || /^\s*[{[]|:\s/.test(text));
}

/**
 * The file of the artifact that an entry names. It is added to the files for kustomize.
 * @throws ManifestError `KustomizationRefused` when the file does not exist, or the entry is a URL.
 */
export function requireFile(scope: KustomizeScope, entry: KustomizationEntry): string {
  const path = resolve(scope, entry);
  const file = scope.files.get(path);
  if (file === undefined) {
    throw kustomizationRefused(
      { file: scope.file, field: entry.field },
      isIgnored(path)
        ? `${shownValue(entry)} is never part of an artifact, because of its name or extension; rename it`
        : `${shownValue(entry)} is not in the artifact; add its folder to the Source's spec.paths. Remote bases are not fetched: commit a copy instead`,
    );
  }
  if (!scope.inputs.has(path)) scope.inputs.set(path, file.content);
  scope.weight.bytes += file.content.length + (scope.expansions.get(path) ?? 0);
  return path;
}

/**
 * Like `requireFile`, for a file that kustomize parses.
 * @throws ManifestError `InvalidYaml` for aliases that would fill kustomize's memory, and for a file that cannot be
 * checked.
 */
export function requireYaml(scope: KustomizeScope, entry: KustomizationEntry): void {
  const path = resolve(scope, entry);
  if (scope.files.has(path) && !scope.expansions.has(path)) {
    scope.expansions.set(path, expansionOf(textOf(scope, path), path));
  }
  requireFile(scope, entry);
}

export function resolve(scope: KustomizeScope, entry: KustomizationEntry): string {
  const { value, field } = entry;
  const where = { file: scope.file, field };
  if (isRemote(value)) {
    throw kustomizationRefused(
      where,
      `${shownValue(entry)} is remote, and Starling fetches nothing while it renders; commit a copy of it`,
    );
  }
  if (value.startsWith("/") || value.includes("\\") || value.includes("\0")) {
    throw kustomizationRefused(where, `${shownValue(entry)} is an absolute path; write it relative to ${scope.file}`);
  }
  const parts = scope.folder === "." ? [] : scope.folder.split("/");
  for (const part of value.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined)
      throw kustomizationRefused(
        where,
        `${shownValue(entry)} leads out of the artifact; commit a copy of the file inside`,
      );
  }
  return parts.length === 0 ? "." : parts.join("/");
}

/** @throws ManifestError `InvalidYaml` for other encodings, which Go's YAML reads and Starling does not. */
export function textOf({ files }: BuildFiles, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(files.get(path)?.content);
  } catch {
    throw new ManifestError("InvalidYaml", { file: path }, "is not UTF-8; save it as UTF-8");
  }
}

/**
 * A URL, an scp address or a `git::` prefix. Other spellings of remote places fail, because they name no file of the
 * artifact.
 */
function isRemote(value: string): boolean {
  if (/^\s*[a-z][a-z0-9+.-]*::?\/\/|^\s*(git|hg|s3|gcs)::/i.test(value)) return true;
  const host = /^[^/\s]*/.exec(value)?.[0] ?? "";
  const at = host.indexOf("@", 1);
  return at > 0 && host.indexOf(":", at + 2) > 0;
}

export function kustomizationRefused(place: ManifestPlace, reason: string): ManifestError {
  return new ManifestError("KustomizationRefused", place, reason);
}
