import { describe, expect, test } from "vitest";
import { dockerLogin } from "#functions/resolve/docker-config.ts";

/** `printf 'bot:s3:cret' | base64` */
const auth = "Ym90OnMzOmNyZXQ=";
const bot = { username: "bot", password: "s3:cret" };
const other = { username: "other", password: "x" };

describe("the login of a repository in Docker's configuration", () => {
  test.each<[string, object, string]>([
    ["a host", { "ghcr.io": { auth } }, "oci://ghcr.io/acme/shop"],
    ["a host with a port", { "registry.corp.example:5000": { auth } }, "oci://registry.corp.example:5000/shop"],
    ["a URL", { "https://ghcr.io": { auth } }, "oci://ghcr.io/acme/shop"],
    ["a URL with a version", { "https://registry.corp.example/v2/": { auth } }, "oci://registry.corp.example/shop"],
    ["the key of Docker Hub", { "https://index.docker.io/v1/": { auth } }, "oci://docker.io/acme/shop"],
    ["the host of Docker Hub", { "docker.io": { auth } }, "oci://registry-1.docker.io/acme/shop"],
    ["a part of the path", { "ghcr.io/acme": { auth }, "ghcr.io": other }, "oci://ghcr.io/acme/shop"],
    ["the longest path", { "ghcr.io/acme": other, "ghcr.io/acme/shop": { auth } }, "oci://ghcr.io/acme/shop"],
    ["the whole segment", { "ghcr.io/acme": other, "ghcr.io/acme-labs": { auth } }, "oci://ghcr.io/acme-labs/shop"],
    ["user and password", { "ghcr.io": bot }, "oci://ghcr.io/acme/shop"],
    ["empty members beside them", { "ghcr.io": { auth: "", identitytoken: "", ...bot } }, "oci://ghcr.io/acme/shop"],
    ["an auth that is padded with zero bytes", { "ghcr.io": { auth: "Ym90OnMzOmNyZXQAAA==" } }, "oci://ghcr.io/a"],
  ])("%s is found", (_what, auths, address) => {
    expect(dockerLogin({ auths }, address)).toEqual(bot);
  });

  test.each<[string, object]>([
    ["another host", { "ghcr.io.evil.example": { auth } }],
    ["a host with another port", { "ghcr.io:8443": { auth } }],
    ["a neighbour", { "ghcr.io/acme-evil": { auth } }],
    ["a part of a segment", { "ghcr.io/ac": { auth } }],
    ["a pattern", { "*.io": { auth } }],
    ["a user before the host", { "ghcr.io@evil.example": { auth } }],
    ["a way out", { "ghcr.io/other/%2e%2e/acme": { auth } }],
    ["nothing", {}],
  ])("a key with %s is not for oci://ghcr.io/acme/shop", (_what, auths) => {
    expect(dockerLogin({ auths }, "oci://ghcr.io/acme/shop")).toBe("absent");
  });

  test.each<[string, object, string]>([
    ["no auths", {}, 'no "auths"'],
    ["auths that are a list", { auths: [] }, 'no "auths"'],
    ["helpers only", { credsStore: "desktop" }, 'no "auths"'],
    ["an empty entry", { auths: { "ghcr.io": {} } }, "USER:PASSWORD in base64"],
    ["an entry that is a text", { auths: { "ghcr.io": "s3cret" } }, "no entry"],
    ["an auth that is no base64", { auths: { "ghcr.io": { auth: "bot:s3cret" } } }, "USER:PASSWORD in base64"],
    ["an auth without a colon", { auths: { "ghcr.io": { auth: "czNjcmV0" } } }, "USER:PASSWORD in base64"],
    ["an identity token", { auths: { "ghcr.io": { auth, identitytoken: "s3cret" } } }, "identitytoken"],
    ["a registry token", { auths: { "ghcr.io": { registrytoken: "s3cret" } } }, "registrytoken"],
  ])("a configuration with %s is refused by name", (_what, members, message) => {
    const found = dockerLogin({ ...members }, "oci://ghcr.io/acme/shop");
    expect(found).toEqual({ problem: expect.stringContaining(message) });
    expect(JSON.stringify(found)).not.toContain("s3cret");
  });
});
