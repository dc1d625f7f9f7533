import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hostKeysFor } from "#shared/source/ssh/known-hosts.ts";

const host = { host: "git.corp.example", port: 22 };
const other = { host: "git.corp.example", port: 2222 };

/** A key in the protocol's form: its type, and something. */
function key(type: string, content = "k"): string {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(type.length);
  return `${type} ${Buffer.concat([length, Buffer.from(type + content)]).toString("base64")}`;
}

function hashed(name: string): string {
  const salt = Buffer.from("01234567890123456789");
  return `|1|${salt.toString("base64")}|${createHmac("sha1", salt).update(name).digest("base64")}`;
}

const ed25519 = key("ssh-ed25519");

describe("known_hosts", () => {
  test.each([
    [`git.corp.example ${ed25519}`, host],
    [`  GIT.corp.example,10.0.0.1\t${ed25519} a comment\r\n`, host],
    [`*.corp.example ${ed25519}`, host],
    [`git.cor?.example ${ed25519}`, host],
    [`[git.corp.example]:2222 ${ed25519}`, other],
    [`${hashed("git.corp.example")} ${ed25519}`, host],
    [`${hashed("[git.corp.example]:2222")} ${ed25519}`, other],
  ])("the line %j is of the host", (line, address) => {
    const { types, keys, revoked } = hostKeysFor(address, `# old keys\n\n${line}`);
    expect({ types, keys: keys.length, revoked }).toEqual({ types: ["ssh-ed25519"], keys: 1, revoked: [] });
  });

  test.each([
    [`git.corp.example ${ed25519}`, other],
    [`[git.corp.example]:2222 ${ed25519}`, host],
    [`git.corp.example.evil ${ed25519}`, host],
    [`corp.example ${ed25519}`, host],
    [`*.corp.example,!git.corp.example ${ed25519}`, host],
    [`${hashed("corp.example")} ${ed25519}`, host],
    [`${hashed("git.corp.example").replace("|1|", "|2|")} ${ed25519}`, host],
    [`#git.corp.example ${ed25519}`, host],
    [`@cert-authority git.corp.example ${ed25519}`, host],
    [`git.corp.example ssh-rsa ${ed25519.split(" ")[1]}`, host],
    ["git.corp.example ssh-ed25519", host],
    ["git.corp.example ssh-ed25519 AAAA", host],
  ])("the line %j gives the host no key", (line, address) => {
    expect(hostKeysFor(address, line)).toEqual({ types: [], keys: [], revoked: [] });
  });

  test("lines that `ssh-keygen -H` wrote are of their hosts", () => {
    const port2222 =
      "|1|l2LUWuxyURSf5dJVKDD7K4/Pznk=|aFWvv9Z+MXjdr7EoZc1RAT7XzmY= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMiv3HDZO0KFXlRFgDJmWRPkpSAsDYck2UukR4JbW0FD";
    const port22 =
      "|1|FhDytCsZlAaelezzp9wSwmbPjCk=|OW0Sq3XuWV3v6f2+UNrRK6SOqnY= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMiv3HDZO0KFXlRFgDJmWRPkpSAsDYck2UukR4JbW0FD";
    const found = (address: typeof host) => [port2222, port22].map((line) => hostKeysFor(address, line).keys.length);
    expect([found(other), found(host)]).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  test("all keys of a host are known, and revoked ones are kept apart", () => {
    const text = `git.corp.example ${ed25519}\ngit.corp.example ${key("ssh-rsa")}\n@revoked * ${key("ssh-ed25519", "stolen")}`;
    const { types, keys, revoked } = hostKeysFor(host, text);
    expect([types, keys.length, revoked.map((each) => Buffer.from(each).toString().slice(-6))]).toEqual([
      ["ssh-ed25519", "ssh-rsa"],
      2,
      ["stolen"],
    ]);
  });

  test("a pattern with many stars is read in no time", () => {
    const start = performance.now();
    hostKeysFor({ host: "a".repeat(250), port: 22 }, `${"*a".repeat(500)}b ${ed25519}`);
    expect(performance.now() - start).toBeLessThan(1000);
  });
});
