/** Resolves a Source's `ref` among the references of a repository. */
import type { GitReference } from "#shared/source/git-ref-schema.ts";
import { filterTags } from "#shared/source/tag-filter.ts";
import { bestTags, parseVersionConstraint, selectTag, type VersionTag } from "#shared/source/version-constraint.ts";

/** One reference of a listing from the git port. */
export interface ListedRef {
  readonly ref: string;
  readonly oid: string;
  readonly peeled?: string;
  readonly target?: string;
}

/** An exact commit and the name of the reference, such as `main`, `v1.2.0` or `refs/pull/420/head`. A pinned commit has no name. */
export interface ResolvedReference {
  readonly name?: string;
  readonly commit: string;
}

export type Resolution =
  | { readonly kind: "resolved"; readonly reference: ResolvedReference }
  /** Tags of equal versions point to several commits. The commits' times decide. */
  | { readonly kind: "tied"; readonly tags: readonly VersionTag[] }
  | { readonly kind: "missing"; readonly message: string };

const heads = "refs/heads/";
const tags = "refs/tags/";

/** The prefixes to list; none when the reference needs no listing. */
export function prefixesOf(ref: GitReference | undefined): readonly string[] {
  if (ref?.branch !== undefined) return [`${heads}${ref.branch}`];
  if (ref?.tag !== undefined) return [`${tags}${ref.tag}`];
  if (ref?.semver !== undefined) return [`${tags}${ref.tagPrefix ?? ""}`];
  if (ref?.name !== undefined) return [ref.name];
  return ref?.commit === undefined ? ["HEAD"] : [];
}

/**
 * Finds the commit in a listing. Names are compared whole, because a listing by the prefix `refs/heads/main` also
 * contains `main-2`. An annotated tag means the commit that it points to.
 */
export function resolveReference(ref: GitReference | undefined, listed: readonly ListedRef[]): Resolution {
  if (ref?.commit !== undefined) return { kind: "resolved", reference: { commit: ref.commit } };
  if (ref?.semver !== undefined) return resolveVersion({ ...ref, semver: ref.semver }, listed);
  const [desired = ""] = prefixesOf(ref);
  const found = listed.find((candidate) => candidate.ref === desired);
  if (found === undefined) {
    const remedy = ref === undefined ? "name a branch in spec.git.ref" : "push it, or correct spec.git.ref";
    return { kind: "missing", message: `the repository has no ${desired}; ${remedy}` };
  }
  const name = ref?.name ?? nameInKind(found.target ?? found.ref);
  return { kind: "resolved", reference: { name, commit: commitOf(found) } };
}

/**
 * The full names that a typed name can mean: a branch or a tag, or one reference by its full name, such as
 * `refs/pull/318/head`.
 */
export function referencesNamed(name: string): readonly string[] {
  return name === "HEAD" || name.startsWith("refs/") ? [name] : [`${heads}${name}`, `${tags}${name}`];
}

/**
 * Finds a typed name in a listing of `referencesNamed`. A branch and a tag of the same name must point to the same
 * commit.
 */
export function resolveNamed(name: string, listed: readonly ListedRef[]): Resolution {
  const desired = referencesNamed(name);
  const found = listed.filter(({ ref }) => desired.includes(ref));
  const [first] = found;
  if (first === undefined) return { kind: "missing", message: `the repository has no ${desired.join(" and no ")}` };
  if (found.some((other) => commitOf(other) !== commitOf(first)))
    return {
      kind: "missing",
      message: `${desired.join(" and ")} are different commits; give the full name of the one that you mean`,
    };
  return { kind: "resolved", reference: { name: nameInKind(first.target ?? first.ref), commit: commitOf(first) } };
}

function resolveVersion(
  { semver, tagPrefix = "", tagFilter }: GitReference & { readonly semver: string },
  listed: readonly ListedRef[],
): Resolution {
  const candidates = listed
    .filter((candidate) => candidate.ref.startsWith(tags))
    .map((candidate) => ({ name: nameInKind(candidate.ref), commit: commitOf(candidate) }));
  const filtered = filterTags(candidates, { tagFilter, nameOf: ({ name }) => name });
  const best = bestTags(filtered.tags, { constraint: parseVersionConstraint(semver), tagPrefix });
  const [first] = best;
  if (first === undefined) {
    const prefixed = tagPrefix === "" ? "" : ` with the prefix ${tagPrefix}`;
    return {
      kind: "missing",
      message: `no tag${prefixed} matches ${semver} ${filtered.among}; push one, or widen spec.git.ref.semver${filtered.remedy}`,
    };
  }
  if (best.some((tag) => tag.commit !== first.commit)) return { kind: "tied", tags: best };
  return { kind: "resolved", reference: chosen(best, semver, tagPrefix) ?? first };
}

/** Breaks a tie: the latest commit wins, then the greatest name. */
export function breakTie(ref: GitReference, tied: readonly VersionTag[]): ResolvedReference | undefined {
  return chosen(tied, ref.semver ?? "*", ref.tagPrefix ?? "");
}

function chosen(candidates: readonly VersionTag[], semver: string, tagPrefix: string): ResolvedReference | undefined {
  const tag = selectTag(candidates, { constraint: parseVersionConstraint(semver), tagPrefix });
  return tag === undefined ? undefined : { name: tag.name, commit: tag.commit };
}

function commitOf(ref: ListedRef): string {
  return ref.peeled ?? ref.oid;
}

/** A branch or a tag without its first two segments: `refs/heads/feature/x` is `feature/x`. */
export function nameInKind(ref: string): string {
  return ref.startsWith(heads) ? ref.slice(heads.length) : ref.startsWith(tags) ? ref.slice(tags.length) : ref;
}

/** The revision in Flux's format: `main@sha1:<commit>`, `v1.2.0@sha1:<commit>`, `refs/pull/420/head@sha1:<commit>` or `sha1:<commit>`. */
export function formatRevision({ name, commit }: ResolvedReference): string {
  return name === undefined ? `sha1:${commit}` : `${name}@sha1:${commit}`;
}

/** The commit of a revision as `formatRevision` writes it. */
export function commitIn(revision: string): string {
  return revision.slice(revision.lastIndexOf(":") + 1);
}

/** The reference that a push moved, as a webhook reports it. */
export interface PushedRef {
  /** Full name. */
  readonly ref: string;
  readonly defaultBranch?: string;
}

/**
 * Whether a push of this reference can change the commit that the Source resolves to. The Source is resolved again
 * anyway.
 */
export function mayFollow(ref: GitReference | undefined, pushed: PushedRef): boolean {
  if (ref?.branch !== undefined) return pushed.ref === `${heads}${ref.branch}`;
  if (ref?.tag !== undefined) return pushed.ref === `${tags}${ref.tag}`;
  if (ref?.semver !== undefined) return pushed.ref.startsWith(`${tags}${ref.tagPrefix ?? ""}`);
  if (ref?.name !== undefined) return pushed.ref === ref.name;
  // A pinned commit never moves, but it may not have been pushed yet.
  if (ref?.commit !== undefined) return true;
  if (!pushed.ref.startsWith(heads)) return false;
  return pushed.defaultBranch === undefined || pushed.ref === `${heads}${pushed.defaultBranch}`;
}
