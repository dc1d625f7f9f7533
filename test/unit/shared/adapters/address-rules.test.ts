import { describe, expect, test } from "vitest";
import { addressRules, refuseLiteralAddress } from "#shared/adapters/address-rules.ts";

describe("addresses a Source's URL may not reach", () => {
  const refused = [
    "https://169.254.169.254/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://2852039166/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://0/",
    "https://[fd00:ec2::254]/",
    "https://[::1]/",
    "https://[::]/",
    "https://[fe80::1]/",
    "https://[64:ff9b::a00:1]/",
    "https://10.0.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://255.255.255.255/",
  ];
  test.each(refused)("%s", (url) => {
    expect(() => refuseLiteralAddress(addressRules(""), new URL(url))).toThrow("is not reached");
  });

  test.each(["https://140.82.121.4/", "https://[2606:50c0:8000::153]/", "https://github.com/"])("but %s may", (url) => {
    expect(() => refuseLiteralAddress(addressRules(""), new URL(url))).not.toThrow();
  });
});

describe("the operator's allow list", () => {
  const rows: readonly (readonly [allow: string, host: string, address: string, reached: boolean])[] = [
    ["10.20.0.0/16", "git.corp.example", "10.20.3.4", true],
    ["10.20.0.0/16", "git.corp.example", "10.21.3.4", false],
    ["git.corp.example", "GIT.corp.example", "10.21.3.4", true],
    ["git.corp.example", "evil.example", "10.21.3.4", false],
    ["127.0.0.1, ::1", "localhost", "127.0.0.1", true],
    ["127.0.0.1, ::1", "localhost", "::1", true],
    ["127.0.0.1", "localhost", "127.0.0.2", false],
    ["git.corp.example", "git.corp.example", "169.254.169.254", false],
    ["0.0.0.0/0", "git.corp.example", "169.254.169.254", false],
    ["fc00::/7", "git.corp.example", "fd00:ec2::254", false],
  ];
  test.each(rows)("with %s, %s at %s: %s", (allow, host, address, reached) => {
    expect(addressRules(allow).refusal(host, address) === undefined).toBe(reached);
  });

  test.each(["10.0.0.0/33", "http://git", "a b", "10.0.0.0/x"])("refuses the entry %s", (entry) => {
    expect(() => addressRules(entry)).toThrow(`"${entry}"`);
  });
});
