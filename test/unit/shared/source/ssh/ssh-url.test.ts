import { describe, expect, test } from "vitest";
import { checkSshUrl, sshAddress, sshHost } from "#shared/source/ssh/ssh-url.ts";

describe("the address of a repository over SSH", () => {
  test.each([
    ["ssh://git@github.com/acme/app.git", { user: "git", host: "github.com", port: 22, path: "/acme/app.git" }],
    ["ssh://GitHub.com./a", { user: "git", host: "github.com", port: 22, path: "/a" }],
    ["ssh://APKA1@[::1]:2222/v1/repos/a", { user: "APKA1", host: "::1", port: 2222, path: "/v1/repos/a" }],
    ["ssh://git@h/~bot/a%20b.git", { user: "git", host: "h", port: 22, path: "~bot/a b.git" }],
  ])("%s is read", (text, address) => {
    expect(checkSshUrl(text)).toBeUndefined();
    expect(sshAddress(text)).toEqual(address);
  });

  test.each([
    ["ssh://git:pw@h/a", "contains a password; remove it and name a secret with a key in credentials"],
    ["ssh:git@h/a", "is not the address of a repository over SSH; write it as ssh://git@HOST/PATH"],
    ["ssh://-oProxyCommand=x/a", "is not the address of a repository over SSH; write it as ssh://git@HOST/PATH"],
    ["ssh://a@b@h/a", "is not the address of a repository over SSH; write it as ssh://git@HOST/PATH"],
    ["ssh://h%2eexample/a", "is not the address of a repository over SSH; write it as ssh://git@HOST/PATH"],
    ["ssh://h:70000/a", "has the port 70000; ports are numbers from 1 to 65535"],
    ["ssh://h:0/a", "has the port 0; ports are numbers from 1 to 65535"],
    ["ssh://h//", "names a host but no repository"],
    ["ssh://h/%0a", "has a path with a % that encodes no character that a path can have"],
    ["ssh://h/%zz", "has a path with a % that encodes no character that a path can have"],
  ])("%s is refused", (text, problem) => {
    expect(checkSshUrl(text)).toBe(problem);
  });

  test.each([
    [{ host: "h", port: 22 }, "h"],
    [{ host: "h", port: 443 }, "h:443"],
    [{ host: "::1", port: 2222 }, "[::1]:2222"],
  ])("%j is spelled %s", (address, spelled) => {
    expect(sshHost(address)).toBe(spelled);
  });
});
