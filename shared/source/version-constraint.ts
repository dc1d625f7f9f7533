/**
 * Version ranges with the rules of Masterminds/semver v3.4, which Flux users know: a comma or space means AND, `||`
 * means OR, a partial version is compared at its own precision, and a group considers prereleases only when one of its
 * comparators names a prerelease. The npm package `semver` parses and compares single versions. Its ranges have other
 * rules (no comma, no `!=`, `>=1.0.0-0` does not match 1.1.0-rc.1), so they are not used.
 */
import { SemVer } from "semver";
import { compareText } from "#shared/base/text-order.ts";

type Operator = "=" | "!=" | ">" | "<" | ">=" | "<=" | "~" | "^";

interface Comparator {
  readonly operator: Operator;
  readonly version: SemVer;
  /** Whether a part was left out or is a wildcard. */
  readonly partial: boolean;
  /** `1` or `1.x`: the minor version is open. */
  readonly anyMinor: boolean;
  /** `1.2` or `1.2.x`: the patch version is open. */
  readonly anyPatch: boolean;
}

/** All comparators of a group must hold. At least one group must hold. */
export interface VersionConstraint {
  readonly text: string;
  readonly groups: readonly (readonly Comparator[])[];
}

/** An invalid range; only a change of the Source helps. */
export class VersionConstraintError extends Error {
  readonly code = "InvalidVersionConstraint";

  constructor(text: string) {
    super(
      `invalid version range: ${JSON.stringify(text)}; expected a range such as ">=1.2.0 <2", "~1.4", "1.x" or "1.2 - 1.9 || ^2"`,
    );
    this.name = "VersionConstraintError";
  }
}

const operators: Readonly<Record<string, Operator>> = {
  "": "=",
  "=": "=",
  "!=": "!=",
  ">": ">",
  "<": "<",
  ">=": ">=",
  "=>": ">=",
  "<=": "<=",
  "=<": "<=",
  "~": "~",
  "~>": "~",
  "^": "^",
};

const suffix = String.raw`(-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?`;
const comparatorToken = new RegExp(
  String.raw`(!=|>=|=>|<=|=<|~>|[=<>~^])?\s*v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?${suffix}`,
  "y",
);
const rangeToken = /\s+-\s+/y;
const andToken = /\s*,\s*|\s+/y;

/**
 * @throws VersionConstraintError with the text, for an empty text, `latest`, `==1.0.0` and anything else that is not a
 * range.
 */
export function parseVersionConstraint(text: string): VersionConstraint {
  // Longer than any range that people write. The limit bounds the work below.
  if (text.length > 512) throw new VersionConstraintError(`${text.slice(0, 60)}...`);
  return { text, groups: text.split("||").map((group) => parseGroup(group.trim())) };
}

function parseGroup(text: string): Comparator[] {
  const comparators: Comparator[] = [];
  let position = 0;

  function take(token: RegExp): RegExpExecArray | null {
    token.lastIndex = position;
    const match = token.exec(text);
    if (match !== null) position = token.lastIndex;
    return match;
  }

  for (;;) {
    const from = take(comparatorToken);
    if (from === null) throw new VersionConstraintError(text);
    if (take(rangeToken) === null) {
      comparators.push(toComparator(from, operators[from[1] ?? ""], text));
    } else {
      const to = take(comparatorToken);
      if (to === null || from[1] !== undefined || to[1] !== undefined) throw new VersionConstraintError(text);
      comparators.push(toComparator(from, ">=", text), toComparator(to, "<=", text));
    }
    if (position === text.length) return comparators;
    if (take(andToken) === null) throw new VersionConstraintError(text);
  }
}

function toComparator(match: RegExpExecArray, operator: Operator | undefined, text: string): Comparator {
  const [, , major, minor, patch, prerelease = "", build = ""] = match;
  const anyMajor = isOpen(major);
  const anyMinor = !anyMajor && isOpen(minor);
  const anyPatch = !anyMajor && !anyMinor && isOpen(patch);
  const parts = [major, anyMajor || anyMinor ? "0" : minor, anyMajor || anyMinor || anyPatch ? "0" : patch];
  if (anyMajor) parts[0] = "0";
  const version = toVersion(parts, prerelease, build);
  if (version === undefined || operator === undefined) throw new VersionConstraintError(text);
  return { operator, version, partial: anyMajor || anyMinor || anyPatch, anyMinor, anyPatch };
}

function isOpen(part: string | undefined): boolean {
  return part === undefined || !/^\d/.test(part);
}

/** `semver` refuses leading zeros, which calendar versions such as 2025.02.03 have. */
function toVersion(parts: readonly (string | undefined)[], prerelease: string, build: string): SemVer | undefined {
  const numbers = parts.map((part) => (part ?? "0").replace(/^0+(?=\d)/, ""));
  try {
    return new SemVer(`${numbers.join(".")}${prerelease}${build}`);
  } catch {
    return undefined;
  }
}

const tagPattern = new RegExp(`^v?(\\d+)\\.(\\d+)\\.(\\d+)${suffix}$`);

/**
 * The version that a tag names: three numbers after an optional `v`. Leading zeros are allowed.
 * @returns undefined for every other tag, which is then not a candidate.
 */
function parseVersionTag(tag: string): SemVer | undefined {
  const match = tagPattern.exec(tag);
  if (match === null) return undefined;
  const [, major, minor, patch, prerelease = "", build = ""] = match;
  return toVersion([major, minor, patch], prerelease, build);
}

function satisfies(version: SemVer, constraint: VersionConstraint): boolean {
  return constraint.groups.some((group) => {
    const prereleasesCount = group.some((comparator) => comparator.version.prerelease.length > 0);
    if (version.prerelease.length > 0 && !prereleasesCount) return false;
    return group.every((comparator) => holds(version, comparator));
  });
}

function holds(v: SemVer, comparator: Comparator): boolean {
  const c = comparator.version;
  switch (comparator.operator) {
    case "=":
      return comparator.partial ? withinTilde(v, comparator) : v.compare(c) === 0;
    case "!=":
      return differs(v, comparator);
    case ">":
      return isAfter(v, comparator);
    case "<":
      return v.compare(c) < 0;
    case ">=":
      return v.compare(c) >= 0;
    case "<=":
      if (!comparator.partial) return v.compare(c) <= 0;
      return v.major < c.major || (v.major === c.major && (comparator.anyMinor || v.minor <= c.minor));
    case "~":
      return withinTilde(v, comparator);
    case "^":
      return withinCaret(v, comparator);
  }
}

function differs(v: SemVer, { version: c, partial, anyMinor, anyPatch }: Comparator): boolean {
  if (!partial) return v.compare(c) !== 0;
  if (v.major !== c.major) return true;
  if (anyMinor) return false;
  if (v.minor !== c.minor) return true;
  if (anyPatch) return v.comparePre(c) !== 0 && (v.prerelease.length > 0 || c.prerelease.length > 0);
  return v.compare(c) !== 0;
}

function isAfter(v: SemVer, { version: c, partial, anyMinor, anyPatch }: Comparator): boolean {
  if (!partial) return v.compare(c) > 0;
  if (v.major !== c.major) return v.major > c.major;
  if (anyMinor) return false;
  if (anyPatch) return v.minor > c.minor;
  return v.compare(c) > 0;
}

function withinTilde(v: SemVer, { version: c, anyMinor, anyPatch }: Comparator): boolean {
  if (v.compare(c) < 0) return false;
  // `*` and `~0.0.0` match everything.
  if (c.major === 0 && c.minor === 0 && c.patch === 0 && !anyMinor && !anyPatch) return true;
  return v.major === c.major && (anyMinor || v.minor === c.minor);
}

function withinCaret(v: SemVer, { version: c, anyMinor, anyPatch }: Comparator): boolean {
  if (v.compare(c) < 0 || v.major !== c.major) return false;
  if (c.major > 0 || anyMinor) return true;
  if (c.minor > 0 || anyPatch) return v.minor === c.minor;
  return v.minor === 0 && v.patch === c.patch;
}

export interface VersionTag {
  /** Without `refs/tags/`. */
  readonly name: string;
  /** The commit it points to, annotated tags dereferenced. */
  readonly commit: string;
  /** ISO 8601 UTC; needed only for ties. */
  readonly committedAt?: string;
}

export interface TagChoice {
  readonly constraint: VersionConstraint;
  /** The prefix of the candidates' names, such as `app/`. The version follows it. */
  readonly tagPrefix?: string;
}

/**
 * The tags of the highest version that satisfies the constraint. There are several when versions differ only in build
 * metadata or spelling.
 */
export function bestTags<Tag extends VersionTag>(tags: readonly Tag[], choice: TagChoice): Tag[] {
  const prefix = choice.tagPrefix ?? "";
  let best: Tag[] = [];
  let highest: SemVer | undefined;
  for (const tag of tags) {
    if (!tag.name.startsWith(prefix)) continue;
    const version = parseVersionTag(tag.name.slice(prefix.length));
    if (version === undefined || !satisfies(version, choice.constraint)) continue;
    const order = highest === undefined ? 1 : version.compare(highest);
    if (order < 0) continue;
    if (order > 0) {
      highest = version;
      best = [];
    }
    best.push(tag);
  }
  return best;
}

/**
 * The tag to follow: the highest version, then the latest commit, then the greatest name. So the choice does not depend
 * on the order of a listing.
 * @returns undefined when no tag satisfies the constraint.
 */
export function selectTag<Tag extends VersionTag>(tags: readonly Tag[], choice: TagChoice): Tag | undefined {
  const order = (a: Tag, b: Tag): number =>
    compareText(b.committedAt ?? "", a.committedAt ?? "") || compareText(b.name, a.name);
  return bestTags(tags, choice).sort(order)[0];
}

export interface VersionChoice {
  readonly constraint: VersionConstraint;
  /** The version that a name stands for. */
  versionOf(name: string): string;
}

/** The name of the highest version that satisfies the constraint; of equal versions, the greatest text. */
export function bestVersion(names: readonly string[], { constraint, versionOf }: VersionChoice): string | undefined {
  const tags = names.map((name) => ({ name: versionOf(name), commit: "", tag: name }));
  return selectTag(tags, { constraint })?.tag;
}
