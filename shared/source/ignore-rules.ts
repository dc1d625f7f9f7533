/**
 * `spec.ignore` and the files `.sourceignore` of a tree: gitignore's patterns, of which the last one that matches a file, or a folder
 * above it, decides. Unlike in git, a file can be taken back although its folder is ignored, as in Flux.
 */
import {
  IgnoreError,
  type IgnorePattern,
  matches,
  mayMatchBelow,
  parsePatterns,
  type StepMeter,
} from "#shared/source/ignore-pattern.ts";
import { isIgnored, type ListedFile } from "#shared/source/tree-listing.ts";

/** The file of a folder with patterns for what is below it. */
export const ignoreFile = ".sourceignore";
export const maxIgnoreFileBytes = 64 * 1024;
/** Patterns of a folder and of those above it. */
const maxPatternsAbove = 1000;
interface Pattern extends IgnorePattern {
  /** Number of folders on the way to the folder whose file has it. */
  readonly depth: number;
  readonly rank: number;
}

/** The decision about an entry, and the rank of the pattern that made it. */
interface Verdict {
  readonly isIgnored: boolean;
  readonly rank: number;
}

/** A folder that is looked into, with the patterns that count in it. */
export interface IgnoreScope {
  /** In their order; those of the Source's spec have the highest ranks. */
  readonly patterns: readonly Pattern[];
  readonly verdict: Verdict;
  /** Whether files of version control and CI are ignored unless a pattern takes them back. */
  readonly hasDefaults: boolean;
  readonly meter: StepMeter;
}

const undecided: Verdict = { isIgnored: false, rank: -2 };
const byDefault: Verdict = { isIgnored: true, rank: -1 };
/** Above the rank of each pattern of a file. */
const specRank = 1_000_000;

/** The root of a tree. @param ignore - `spec.ignore` @throws IgnoreError */
export function ignoreRoot(
  ignore: string | undefined,
  { hasDefaults }: { readonly hasDefaults: boolean },
): IgnoreScope {
  const patterns = parsePatterns(ignore ?? "").map((pattern, index) => ({
    ...pattern,
    depth: 0,
    rank: specRank + index,
  }));
  return { patterns, verdict: undecided, hasDefaults, meter: { steps: 0 } };
}

/** @param folder - path of the folder whose `.sourceignore` has this text; empty for the root. @throws IgnoreError */
export function withIgnoreFile(scope: IgnoreScope, folder: string, content: Uint8Array): IgnoreScope {
  if (content.length > maxIgnoreFileBytes) throw new IgnoreError(`has more than ${maxIgnoreFileBytes / 1024} KiB`);
  const own = scope.patterns.filter(({ rank }) => rank >= specRank);
  const before = scope.patterns.filter(({ rank }) => rank < specRank);
  const depth = segmentsOf(folder).length;
  const added = parsePatterns(new TextDecoder().decode(content)).map((pattern, index) => ({
    ...pattern,
    depth,
    rank: before.length + index,
  }));
  if (before.length + added.length > maxPatternsAbove)
    throw new IgnoreError(`makes more than ${maxPatternsAbove} patterns, with those of the folders above it`);
  return { ...scope, patterns: [...before, ...added, ...own] };
}

/** Whether a file is left out. */
export function ignoresFile(scope: IgnoreScope, path: string): boolean {
  return judge(scope, path, "file").isIgnored;
}

/** The scope of a folder; undefined when it is left out with all that is below it. */
export function ignoreScopeOf(scope: IgnoreScope, path: string): IgnoreScope | undefined {
  const verdict = judge(scope, path, "folder");
  if (!verdict.isIgnored) return { ...scope, verdict };
  const names = segmentsOf(path);
  if (names.at(-1) === ".git") return undefined;
  const mayReturn = scope.patterns.some(
    (pattern) =>
      pattern.takesBack &&
      pattern.rank > verdict.rank &&
      mayMatchBelow(pattern, names.slice(pattern.depth), scope.meter),
  );
  return mayReturn ? { ...scope, verdict } : undefined;
}

function judge(scope: IgnoreScope, path: string, kind: "file" | "folder"): Verdict {
  const names = segmentsOf(path);
  const name = names.at(-1) ?? "";
  if (name === ".git") return { isIgnored: true, rank: Number.POSITIVE_INFINITY };
  const above = scope.hasDefaults && scope.verdict.rank < byDefault.rank && isIgnored(name) ? byDefault : scope.verdict;
  for (let index = scope.patterns.length - 1; index >= 0; index--) {
    const pattern = scope.patterns[index];
    if (pattern === undefined || pattern.rank <= above.rank) return above;
    if (pattern.isForFolders && kind === "file") continue;
    if (matches(pattern, names.slice(pattern.depth), scope.meter))
      return { isIgnored: !pattern.takesBack, rank: pattern.rank };
  }
  return above;
}

/**
 * The files that are not ignored, of a tree that is read whole.
 * @throws IgnoreError that names the file.
 */
export function withoutIgnored(files: readonly ListedFile[], root: IgnoreScope): readonly ListedFile[] {
  const texts = new Map(files.map((file) => [file.path, file.content]));
  const scopes = new Map<string, IgnoreScope | undefined>();
  const read = (scope: IgnoreScope, folder: string): IgnoreScope => {
    const path = folder === "" ? ignoreFile : `${folder}/${ignoreFile}`;
    const content = texts.get(path);
    try {
      return content === undefined ? scope : withIgnoreFile(scope, folder, content);
    } catch (error) {
      throw error instanceof IgnoreError ? new IgnoreError(`${path} ${error.message}`) : error;
    }
  };
  const scopeOf = (folder: string): IgnoreScope | undefined => {
    if (scopes.has(folder)) return scopes.get(folder);
    const parent = folder === "" ? root : scopeOf(parentOf(folder));
    const own = parent === undefined || folder === "" ? parent : ignoreScopeOf(parent, folder);
    const scope = own === undefined ? undefined : read(own, folder);
    scopes.set(folder, scope);
    return scope;
  };
  return files.filter(({ path }) => {
    const scope = scopeOf(parentOf(path));
    return scope !== undefined && !ignoresFile(scope, path);
  });
}

function segmentsOf(path: string): readonly string[] {
  return path === "" ? [] : path.split("/");
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
