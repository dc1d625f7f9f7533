import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import { isIgnored, type ListedFile } from "#shared/source/tree-listing.ts";
import { ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";
import { expansionOf } from "#shared/source/yaml/yaml.ts";

/** The artifact, and what of it a build has turned out to need. */
export interface BuildFiles {
  readonly files: ReadonlyMap<string, ListedFile>;
  readonly folders: ReadonlySet<string>;
  /** What kustomize gets to see: by path, the bytes of the artifact, or what was understood of them. */
  readonly inputs: Map<string, Uint8Array>;
  /** What aliases add to each file of YAML that was looked at, in characters. */
  readonly expansions: Map<string, number>;
  /** Charts that are rendered before kustomize runs. */
  readonly charts: InflatedChart[];
}

/** One kustomization. */
export interface KustomizeScope extends BuildFiles {
  readonly folder: string;
  readonly file: string;
  /** The bytes that kustomize loads for this kustomization alone, aliases written out. */
  readonly weight: { bytes: number };
}

/** A text of a kustomization, and which field it is in. */
export interface KustomizationEntry {
  readonly value: string;
  readonly field: string;
  /** Of a generator of Secrets: a value may stand where a file is meant. */
  readonly isSecret?: boolean;
}

function told({ value, isSecret = false }: KustomizationEntry): string {
  return isSecret ? "what it names (not repeated, for it may be a secret)" : `"${value}"`;
}

/** Go's JSON decoder ignores case when it matches fields, by Unicode's simple folding: `Reſources` is resources. */
export function folded(key: string): string {
  return key.toUpperCase().toLowerCase();
}

/** The texts of a field that is one, or a list of them. */
export function entriesOf(value: unknown, field: string): KustomizationEntry[] {
  if (!Array.isArray(value)) return typeof value === "string" ? [{ value, field }] : [];
  return value.flatMap((item: unknown, index) =>
    typeof item === "string" ? [{ value: item, field: `${field}[${index}]` }] : [],
  );
}

/** A document in place of a path: it has lines, or a colon as YAML has them. A URL has neither. */
export function isInline(text: string): boolean {
  return !isRemote(text) && (text.includes("\n") || /^\s*[{[]|:\s/.test(text));
}

/**
 * The file of the artifact that an entry names; kustomize gets to see it.
 * @throws ManifestError `KustomizationRefused` when there is none, or the entry is a URL.
 */
export function requireFile(scope: KustomizeScope, entry: KustomizationEntry): string {
  const path = resolve(scope, entry);
  const file = scope.files.get(path);
  if (file === undefined) {
    throw kustomizationRefused(
      { file: scope.file, field: entry.field },
      isIgnored(path)
        ? `${told(entry)} is left out of every artifact, for its name or ending; give it another`
        : `${told(entry)} is not in the artifact; add its folder to the Source's spec.paths. Remote bases are not fetched: commit a copy instead`,
    );
  }
  if (!scope.inputs.has(path)) scope.inputs.set(path, file.content);
  scope.weight.bytes += file.content.length + (scope.expansions.get(path) ?? 0);
  return path;
}

/**
 * `requireFile` for a file that kustomize will parse.
 * @throws ManifestError `InvalidYaml` for aliases that would fill its memory, and for what cannot be looked at.
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
      `${told(entry)} is remote, and nothing is fetched while rendering; commit a copy of it`,
    );
  }
  if (value.startsWith("/") || value.includes("\\") || value.includes("\0")) {
    throw kustomizationRefused(where, `${told(entry)} is an absolute path; write it relative to ${scope.file}`);
  }
  const parts = scope.folder === "." ? [] : scope.folder.split("/");
  for (const part of value.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) throw kustomizationRefused(where, `${told(entry)} leaves the artifact`);
  }
  return parts.length === 0 ? "." : parts.join("/");
}

/** @throws ManifestError `InvalidYaml` for other encodings, which Go's YAML reads and this project does not. */
export function textOf({ files }: BuildFiles, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(files.get(path)?.content);
  } catch {
    throw new ManifestError("InvalidYaml", { file: path }, "is not UTF-8; save it as UTF-8");
  }
}

/** A URL, an scp address or a `git::` prefix; other spellings of remote places fail because they are no file. */
function isRemote(value: string): boolean {
  if (/^\s*[a-z][a-z0-9+.-]*::?\/\/|^\s*(git|hg|s3|gcs)::/i.test(value)) return true;
  const host = /^[^/\s]*/.exec(value)?.[0] ?? "";
  const at = host.indexOf("@", 1);
  return at > 0 && host.indexOf(":", at + 2) > 0;
}

export function kustomizationRefused(place: ManifestPlace, reason: string): ManifestError {
  return new ManifestError("KustomizationRefused", place, reason);
}
