import { describe, expect, test } from "vitest";
import { checkGitUrl, normaliseGitUrl } from "#shared/source/git-url.ts";

describe("normaliseGitUrl", () => {
  const app = [
    "https://github.com/acme/app",
    "https://github.com/acme/app.git",
    "https://github.com/acme/app/",
    "https://GitHub.com:443/Acme/App.git/",
    "http://github.com/acme/app",
    "https://user:token@github.com/acme/app.git",
    "git@github.com:acme/app.git",
    "github.com:acme/app",
    "ssh://git@github.com/acme/app.git",
    "ssh://git@github.com:22/acme/app.git",
    "git://github.com/acme/app.git",
  ];
  test.each(app)("the URL %s is normalised to acme's app", (url) => {
    expect(normaliseGitUrl(url)).toBe("github.com/acme/app");
  });

  const others: readonly (readonly [url: string, normal: string | undefined])[] = [
    ["https://github.com:8443/acme/app", "github.com:8443/acme/app"],
    ["https://127.0.0.1:41234/fleet.git", "127.0.0.1:41234/fleet"],
    ["https://github.com/acme/app.git.git", "github.com/acme/app.git"],
    ["https://github.com/acme/.*", "github.com/acme/.*"],
    ["https://github.com/", undefined],
    ["/srv/git/app.git", undefined],
    ["file:///srv/git/app.git", undefined],
    ["C:\\repos\\app", undefined],
    ["", undefined],
  ];
  test.each(others)("the URL %s is normalised to %s", (url, normal) => {
    expect(normaliseGitUrl(url)).toBe(normal);
  });
});

describe("checkGitUrl", () => {
  const rows: readonly (readonly [url: string, problem: string | undefined])[] = [
    ["https://github.com/acme/app", undefined],
    ["https://git.corp.example:8443/acme/app.git", undefined],
    ["http://127.0.0.1:8080/fleet.git", undefined],
    ["http://[::1]:8080/fleet.git", undefined],
    ["http://github.com/acme/app", "would be fetched unencrypted; use https://github.com/acme/app"],
    ["git@github.com:acme/app.git", "has the form of scp; write it as ssh://git@github.com/acme/app.git"],
    ["github.com:/acme/app", "has the form of scp; write it as ssh://github.com/acme/app"],
    ["ssh://git@github.com/acme/app", undefined],
    ["ssh://github.com:2222/acme/app", undefined],
    ["ssh://git@github.com/acme/app?ref=main", "has a query or a fragment; give branch or tag in ref instead"],
    ["ssh://git@github.com", "names a host but no repository"],
    [
      "https://github.com\\@evil.example/app",
      "contains a backslash, a space or a line end; write it as https://HOST/PATH",
    ],
    ["https://git\nhub.com/acme/app", "contains a backslash, a space or a line end; write it as https://HOST/PATH"],
    [
      "https://token@github.com/acme/app",
      "contains a user name or a password; remove it and name a secret in credentials",
    ],
    ["file:///etc", "has the scheme file; only https and ssh are fetched"],
    ["https://github.com/acme/app?ref=main", "has a query or a fragment; give branch or tag in ref instead"],
    ["https://github.com", "names a host but no repository"],
    ["./app", "is not a URL; write it as https://HOST/PATH"],
  ];
  test.each(rows)("the URL %s has the problem: %s [source.git.url]", (url, problem) => {
    expect(checkGitUrl(url)).toBe(problem);
  });
});
