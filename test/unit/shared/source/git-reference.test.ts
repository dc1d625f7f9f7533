import { describe, expect, test } from "vitest";
import type { GitReference } from "#shared/source/git-ref-schema.ts";
import { breakTie, formatRevision, prefixesOf, resolveReference } from "#shared/source/git-reference.ts";

const listed = [
  { ref: "HEAD", oid: "c1", target: "refs/heads/trunk" },
  { ref: "refs/heads/main", oid: "c1" },
  { ref: "refs/heads/main-2", oid: "c2" },
  { ref: "refs/heads/feature/x", oid: "c3" },
  { ref: "refs/tags/v1.0.0", oid: "t1", peeled: "c4" },
  { ref: "refs/tags/v1.1.0", oid: "c5" },
  { ref: "refs/tags/app/2.0.0", oid: "c6" },
  { ref: "refs/pull/420/head", oid: "c7" },
];

const found: readonly (readonly [ref: GitReference | undefined, revision: string])[] = [
  [undefined, "trunk@sha1:c1"],
  [{ branch: "main" }, "main@sha1:c1"],
  [{ branch: "feature/x" }, "feature/x@sha1:c3"],
  [{ tag: "v1.0.0" }, "v1.0.0@sha1:c4"],
  [{ tag: "v1.1.0" }, "v1.1.0@sha1:c5"],
  [{ semver: "1.x" }, "v1.1.0@sha1:c5"],
  [{ semver: "<1.1" }, "v1.0.0@sha1:c4"],
  [{ semver: "*", tagPrefix: "app/" }, "app/2.0.0@sha1:c6"],
  [{ semver: "*", tagFilter: "^v1\\.0" }, "v1.0.0@sha1:c4"],
  [{ semver: "*", tagPrefix: "app/", tagFilter: "^app/" }, "app/2.0.0@sha1:c6"],
  [{ name: "refs/pull/420/head" }, "refs/pull/420/head@sha1:c7"],
  [{ name: "refs/heads/feature/x" }, "refs/heads/feature/x@sha1:c3"],
  [{ name: "refs/tags/v1.0.0" }, "refs/tags/v1.0.0@sha1:c4"],
  [{ commit: "abc" }, "sha1:abc"],
];

const missing: readonly (readonly [ref: GitReference, message: string])[] = [
  [{ branch: "mai" }, "the repository has no refs/heads/mai; push it, or correct spec.git.ref"],
  [{ tag: "v1" }, "the repository has no refs/tags/v1; push it, or correct spec.git.ref"],
  [{ name: "refs/pull/42" }, "the repository has no refs/pull/42; push it, or correct spec.git.ref"],
  [{ semver: ">=3" }, "no tag matches >=3 among 3 tags; push one, or widen spec.git.ref.semver"],
  [
    { semver: "*", tagPrefix: "web/" },
    "no tag with the prefix web/ matches * among 3 tags; push one, or widen spec.git.ref.semver",
  ],
  [
    { semver: "*", tagFilter: "-rc" },
    "no tag matches * because tagFilter -rc matches none of 3 tags (v1.0.0, v1.1.0, app/2.0.0); push one, or widen spec.git.ref.semver, or correct tagFilter",
  ],
  [
    { semver: ">=3", tagFilter: "^v" },
    "no tag matches >=3 among the 2 of 3 tags that tagFilter ^v matches (v1.0.0, v1.1.0); push one, or widen spec.git.ref.semver, or correct tagFilter",
  ],
];

describe("resolveReference", () => {
  test.each(found)("the reference %j is resolved to %s [source.reference.revision]", (ref, revision) => {
    const resolution = resolveReference(ref, listed);
    expect(resolution.kind).toBe("resolved");
    expect(resolution.kind === "resolved" && formatRevision(resolution.reference)).toBe(revision);
  });

  test.each(missing)("the reference %j is not found [source.reference.missing]", (ref, message) => {
    expect(resolveReference(ref, listed)).toEqual({ kind: "missing", message });
  });

  test("a detached HEAD is shown as HEAD", () => {
    const resolution = resolveReference(undefined, [{ ref: "HEAD", oid: "c1" }]);
    expect(resolution).toEqual({ kind: "resolved", reference: { name: "HEAD", commit: "c1" } });
  });

  test("equal versions on one commit are no tie, and on two commits they are [source.version.equal]", () => {
    const one = [
      { ref: "refs/tags/v1.0.0", oid: "c1" },
      { ref: "refs/tags/1.0.0", oid: "c1" },
    ];
    expect(resolveReference({ semver: "1" }, one)).toMatchObject({ kind: "resolved", reference: { name: "v1.0.0" } });
    const two = [...one, { ref: "refs/tags/v1.0.0+b", oid: "c2" }];
    const resolution = resolveReference({ semver: "1" }, two);
    expect(resolution.kind).toBe("tied");
    const dated = [
      { name: "v1.0.0", commit: "c1", committedAt: "2026-01-01T00:00:00.000Z" },
      { name: "v1.0.0+b", commit: "c2", committedAt: "2026-01-02T00:00:00.000Z" },
    ];
    expect(breakTie({ semver: "1" }, dated)).toEqual({ name: "v1.0.0+b", commit: "c2" });
  });
});

test("a resolution lists only the references that it needs [source.reference.listing]", () => {
  expect(prefixesOf(undefined)).toEqual(["HEAD"]);
  expect(prefixesOf({ branch: "main" })).toEqual(["refs/heads/main"]);
  expect(prefixesOf({ tag: "v1" })).toEqual(["refs/tags/v1"]);
  expect(prefixesOf({ semver: "*", tagPrefix: "app/" })).toEqual(["refs/tags/app/"]);
  expect(prefixesOf({ commit: "abc" })).toEqual([]);
});
