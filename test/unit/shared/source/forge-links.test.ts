import { expect, test } from "vitest";
import { commitOf, forgeLinks } from "#shared/source/forge-links.ts";

test.each([
  ["https://github.com/acme/app", "https://github.com/acme/app/commit/b", "https://github.com/acme/app/compare/a...b"],
  [
    "https://github.com/acme/app.git/",
    "https://github.com/acme/app/commit/b",
    "https://github.com/acme/app/compare/a...b",
  ],
  [
    "https://bot:pw@github.com/acme/app.git",
    "https://github.com/acme/app/commit/b",
    "https://github.com/acme/app/compare/a...b",
  ],
  [
    "ssh://git@github.com/acme/app.git",
    "https://github.com/acme/app/commit/b",
    "https://github.com/acme/app/compare/a...b",
  ],
  [
    "https://github.corp.example:8443/a/b",
    "https://github.corp.example:8443/a/b/commit/b",
    "https://github.corp.example:8443/a/b/compare/a...b",
  ],
  [
    "https://gitlab.com/g/s/app.git",
    "https://gitlab.com/g/s/app/-/commit/b",
    "https://gitlab.com/g/s/app/-/compare/a...b",
  ],
  [
    "https://bitbucket.org/acme/app.git",
    "https://bitbucket.org/acme/app/commits/b",
    "https://bitbucket.org/acme/app/branches/compare/b..a",
  ],
  [
    "https://codeberg.org/acme/app",
    "https://codeberg.org/acme/app/commit/b",
    "https://codeberg.org/acme/app/compare/a...b",
  ],
  [
    "https://gitea.corp.example/acme/app",
    "https://gitea.corp.example/acme/app/commit/b",
    "https://gitea.corp.example/acme/app/compare/a...b",
  ],
])("the commits and comparisons of %s have these links", (url, commit, compare) => {
  expect(forgeLinks(url, "b", "a")).toEqual({ commit, compare });
});

test.each([
  "https://git.corp.example/acme/app",
  "https://notgithub.com/acme/app",

  "no url",
])("the address %s has no known links", (url) => {
  expect(forgeLinks(url, "b", "a")).toBeUndefined();
});

test("a commit has no comparison with itself", () => {
  expect(forgeLinks("https://github.com/acme/app", "b", "b")).toEqual({
    commit: "https://github.com/acme/app/commit/b",
  });
});

test.each([
  [`main@sha1:${"a".repeat(40)}`, "a".repeat(40)],
  [`sha1:${"b".repeat(40)}`, "b".repeat(40)],
  ["v1.2.0@sha1:9f2c1ab", "9f2c1ab"],
  ["2 templates", undefined],
  ["main@sha1:../../evil", undefined],
])("the commit of the revision %s is %s", (revision, commit) => {
  expect(commitOf(revision)).toBe(commit);
});
