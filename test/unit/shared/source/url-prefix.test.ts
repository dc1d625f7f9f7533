import { describe, expect, test } from "vitest";
import { isBelowPrefix } from "#shared/source/url-prefix.ts";

describe("an address below a prefix", () => {
  test.each([
    ["https://github.com/acme/app", "https://github.com/acme/"],
    ["https://github.com/acme/app", "https://github.com/acme"],
    ["https://github.com/acme/app.git", "https://github.com/acme/app"],
    ["https://github.com/acme/app", "https://github.com/acme/app.git"],
    ["https://GITHUB.com:443/acme/app", "https://github.com/acme/"],
    ["https://github.com/acme/app", "HTTPS://github.com./acme/"],
    ["https://github.com/acme/./x/../app", "https://github.com/acme/app"],
    ["https://github.com/%61cme/app", "https://github.com/acme/"],
    ["https://github.com/acme/app", "https://github.com"],
    ["https://github.com/acme/..app;v=1", "https://github.com/acme/"],
    ["https://files.example/acme/a.tar.gz?v=1", "https://files.example/acme/"],
    ["http://127.0.0.1:8080/acme/app", "http://127.0.0.1:8080/acme/"],
    ["oci://ghcr.io/acme/shop", "oci://ghcr.io/acme/"],
    ["oci://ghcr.io/acme/shop", "oci://GHCR.io:443/acme/shop"],
    ["ssh://git@github.com/acme/app", "ssh://git@github.com:22/acme/"],
    ["ssh://github.com/acme/app.git", "ssh://git@github.com/acme/app"],
    ["ssh://git@git.corp.example/~/app", "ssh://git@git.corp.example/~/"],
  ])("%s is below %s", (address, prefix) => {
    expect(isBelowPrefix(address, prefix)).toBe(true);
  });

  test.each([
    ["https://github.com/acme-evil/app", "https://github.com/acme"],
    ["https://github.com/other/app", "https://github.com/acme/"],
    ["https://github.com/acme", "https://github.com/acme/app"],
    ["https://github.com/acme/app.git/x", "https://github.com/acme/app"],
    ["https://github.com/acme/app2", "https://github.com/acme/app"],
    ["https://github.com/ACME/app", "https://github.com/acme/"],
    // Dots lead out of it, also encoded ones.
    ["https://github.com/acme/../other/app", "https://github.com/acme/"],
    ["https://github.com/acme/%2e%2e/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/.%2E/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/..%2fother/app", "https://github.com/acme/"],
    ["https://github.com/acme/%252e%252e/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/..%5cother/app", "https://github.com/acme/"],
    // Servers in Java take what follows a semicolon away before they resolve dots.
    ["https://github.com/acme/..;/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/..;a=b/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/%2e%2e%3b/other/app", "https://github.com/acme/"],
    ["https://github.com/acme/.;/app", "https://github.com/acme/"],
    ["https://github.com/acme%2fapp", "https://github.com/acme/"],
    ["https://github.com/acme/a%00b", "https://github.com/acme/"],
    ["https://github.com/acme/%zz", "https://github.com/acme/"],
    ["https://github.com//acme/app", "https://github.com/acme/"],
    ["https://github.com/acme\\..\\other/app", "https://github.com/acme/"],
    ["ssh://git@github.com/acme/..%2fother/app", "ssh://git@github.com/acme/"],
    ["ssh://git@github.com/acme/../other/app", "ssh://git@github.com/acme/"],
    // Another server, or another reader of it.
    ["https://github.com.evil.example/acme/app", "https://github.com/acme/"],
    ["https://github.com@evil.example/acme/app", "https://github.com/acme/"],
    ["https://evil.example/acme/app", "https://github.com@evil.example/acme/"],
    ["https://u:p@github.com/acme/app", "https://github.com/acme/"],
    ["https://github.com:8443/acme/app", "https://github.com/acme/"],
    ["http://github.com/acme/app", "https://github.com/acme/"],
    ["https://ghcr.io/acme/app", "oci://ghcr.io/acme/"],
    ["ssh://git@github.com/acme/app", "https://github.com/acme/"],
    ["ssh://bot@github.com/acme/app", "ssh://git@github.com/acme/"],
    ["ssh://github.com@evil.example/acme/app", "ssh://git@github.com/acme/"],
    ["ssh://git@github.com:2222/acme/app", "ssh://git@github.com/acme/"],
    // A prefix that is none.
    ["https://github.com/acme/app", "github.com/acme/"],
    ["https://github.com/acme/app", ""],
    ["https://github.com/acme/app", "https://github.com/acme/?x"],
    ["https://github.com/acme/app", "https://github.com/acme/#x"],
    ["https://github.com/acme/app", "https://github.com/*/app"],
    ["file:///acme/app", "file:///acme/"],
  ])("%s is not below %j", (address, prefix) => {
    expect(isBelowPrefix(address, prefix)).toBe(false);
  });
});
