import { sha256 } from "#shared/base/digest.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { compareText } from "#shared/base/text-order.ts";

/** A regular file of a tree. A link appears as the file that it points to. */
export interface ListedFile {
  /** Relative to the repository, separated by `/`. */
  readonly path: string;
  readonly executable: boolean;
  readonly content: Uint8Array;
}

/**
 * `sha256:<hex>` over the canonical listing (path, mode, hash of the content) in the order of the paths' UTF-16 units. Equal
 * trees have equal digests on any machine, independent of the archive's format.
 */
export function treeDigest(files: readonly ListedFile[]): string {
  const listing = files
    .map((file) => [file.path, file.executable ? "755" : "644", sha256(file.content)] as const)
    .sort(([a], [b]) => compareText(a, b));
  return sha256(stringifyJson(listing));
}

/** True when `path` is one of `paths` or lies below one; `.` means everything. */
export function isWithin(path: string, paths: readonly string[]): boolean {
  return paths.some((part) => part === "." || path === part || path.startsWith(`${part}/`));
}

/** The artifact's form of a folder that users write: `./deploy/` becomes `deploy`, and `./` becomes `.`. */
export function normalFolder(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.length === 0 ? "." : parts.join("/");
}

/** Flux's default list of ignored files, so that a Source means the same in both tools. */
const ignoredNames = new Set([
  ".git",
  ".gitignore",
  ".gitmodules",
  ".gitattributes",
  ".github",
  ".circleci",
  ".travis.yml",
  ".gitlab-ci.yml",
  "appveyor.yml",
  ".drone.yml",
  "cloudbuild.yaml",
  "codeship-services.yml",
  "codeship-steps.yml",
  ".goreleaser.yml",
  ".sops.yaml",
  ".flux.yaml",
]);
const ignoredEndings = [".jpg", ".jpeg", ".gif", ".png", ".wmv", ".flv", ".tar.gz", ".zip"];

/**
 * Whether the file belongs to version control or a CI system, or is a media file. Such files are not part of an
 * artifact.
 */
export function isIgnored(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (ignoredEndings.some((ending) => name.endsWith(ending))) return true;
  return path.split("/").some((part) => ignoredNames.has(part));
}
