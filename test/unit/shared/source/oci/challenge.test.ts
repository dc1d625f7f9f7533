import { describe, expect, test } from "vitest";
import { mayAskFor, parseChallenge } from "#shared/source/oci/challenge.ts";

describe("the challenge of a registry", () => {
  test.each<[string | undefined, unknown]>([
    ['Basic realm="r"', { scheme: "basic" }],
    ["basic", { scheme: "basic" }],
    [
      'Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="repository:a/b:pull"',
      { scheme: "bearer", realm: "https://ghcr.io/token", service: "ghcr.io" },
    ],
    ['bearer service="s", realm="https://h/t"', { scheme: "bearer", realm: "https://h/t", service: "s" }],
    ['Bearer realm="not a url"', undefined],
    ["Bearer", undefined],
    ["Negotiate", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("%j is read as %j", (header, expected) => {
    expect(parseChallenge(header)).toEqual(expected);
  });
});

describe("the host that gets the credentials of a registry for a token", () => {
  test.each<[string, string, readonly string[], boolean]>([
    ["https://ghcr.io", "https://ghcr.io/token", [], true],
    ["https://registry-1.docker.io", "https://auth.docker.io/token", [], true],
    ["https://registry.gitlab.com", "https://gitlab.com/jwt/auth", [], true],
    ["https://registry.acme.example", "https://auth.acme.example/token", [], false],
    ["https://registry.acme.example", "https://auth.acme.example/token", ["auth.acme.example"], true],
    ["https://ghcr.io", "https://evil.example/token", [], false],
    ["https://ghcr.io", "https://ghcr.io.evil.example/token", [], false],
    ["https://ghcr.io", "https://ghcr.io:8443/token", [], false],
    ["https://ghcr.io", "http://ghcr.io/token", [], false],
    ["https://ghcr.io", "http://auth.acme.example/token", ["auth.acme.example"], false],
    ["http://127.0.0.1:5000", "http://127.0.0.1:5000/token", [], true],
  ])("a registry %s may send them to %s if the secret names %j: %j", (registry, realm, named, expected) => {
    expect(mayAskFor(registry, realm, named)).toBe(expected);
  });
});
