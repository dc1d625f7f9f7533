import { describe, expect, test } from "vitest";
import {
  addressRules,
  clusterAddresses,
  guardedLookup,
  refuseLiteralAddress,
  workerAddresses,
} from "#shared/adapters/net/address-rules.ts";

describe("addresses a Source's URL may not reach", () => {
  const refused = [
    "https://169.254.169.254/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://2852039166/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://0/",
    "https://0177.1/",
    "https://0xa9fea9fe/",
    "https://169.254.43518/",
    "https://127.0.0.1./",
    "https://[::ffff:0:169.254.169.254]/",
    "https://%31%32%37.0.0.1/",
    "https://１２７.0.0.1/",
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
  test.each(refused)("a Source may not use %s", (url) => {
    expect(() => refuseLiteralAddress(addressRules(""), new URL(url))).toThrow("Starling does not connect to");
  });

  test.each(["https://140.82.121.4/", "https://[2606:50c0:8000::153]/", "https://github.com/"])(
    "a Source may use %s",
    (url) => {
      expect(() => refuseLiteralAddress(addressRules(""), new URL(url))).not.toThrow();
    },
  );
});

/** The ranges of IANA's special-purpose registries (RFC 6890) and of the RFCs that they name. */
describe("every special-purpose range", () => {
  const rows: readonly (readonly [what: string, address: string, reach: "public" | "allowed" | "named" | "never"])[] = [
    ["this network", "0.0.0.0", "never"],
    ["private use", "10.255.255.255", "allowed"],
    ["shared by a carrier", "100.127.0.1", "allowed"],
    ["loopback", "127.0.0.1", "named"],
    ["link-local", "169.254.169.254", "never"],
    ["the credentials of a container", "169.254.170.2", "never"],
    ["metadata of Alibaba Cloud", "100.100.100.200", "never"],
    ["beside metadata of Alibaba Cloud", "100.100.100.201", "allowed"],
    ["the agent's address in Azure", "168.63.129.16", "never"],
    ["metadata of Oracle Cloud", "192.0.0.192", "never"],
    ["metadata of Alibaba Cloud, mapped", "::ffff:100.100.100.200", "never"],
    ["metadata of Alibaba Cloud, by NAT64", "64:ff9b::6464:64c8", "never"],
    ["private use", "172.16.0.1", "allowed"],
    ["beside private use", "172.32.0.1", "public"],
    ["protocol assignments", "192.0.0.8", "allowed"],
    ["documentation", "192.0.2.1", "allowed"],
    ["relays of 6to4", "192.88.99.1", "allowed"],
    ["private use", "192.168.0.1", "allowed"],
    ["benchmarks", "198.19.0.1", "allowed"],
    ["documentation", "198.51.100.1", "allowed"],
    ["documentation", "203.0.113.1", "allowed"],
    ["multicast", "239.0.0.1", "never"],
    ["reserved", "240.0.0.1", "never"],
    ["broadcast", "255.255.255.255", "never"],
    ["no address", "::", "never"],
    ["loopback", "::1", "named"],
    ["loopback, of another spelling", "0:0:0:0:0:0:0:1", "named"],
    ["IPv4-compatible, metadata", "::169.254.169.254", "never"],
    ["IPv4-compatible, private", "::10.0.0.1", "allowed"],
    ["IPv4-compatible, public", "::140.82.121.4", "allowed"],
    ["IPv4-mapped, metadata", "::ffff:169.254.169.254", "never"],
    ["IPv4-mapped, private", "::ffff:a00:1", "allowed"],
    ["IPv4-mapped, public", "::ffff:140.82.121.4", "public"],
    ["IPv4-translated, metadata", "::ffff:0:169.254.169.254", "never"],
    ["IPv4-translated, public", "::ffff:0:140.82.121.4", "allowed"],
    ["NAT64, metadata", "64:ff9b::169.254.169.254", "never"],
    ["NAT64, private", "64:ff9b::10.0.0.1", "allowed"],
    ["NAT64, public", "64:ff9b::140.82.121.4", "public"],
    ["beside NAT64's prefix", "64:ff9b:0:0:0:1:a9fe:a9fe", "allowed"],
    ["local NAT64, metadata at its end", "64:ff9b:1::169.254.169.254", "never"],
    ["local NAT64, metadata after 48 bits", "64:ff9b:1:a9fe:a9:fe00::", "never"],
    ["local NAT64, metadata after 56 bits", "64:ff9b:1:a9:fe:a9fe::", "never"],
    ["local NAT64, metadata after 64 bits", "64:ff9b:1:0:a9:fea9:fe00:0", "never"],
    ["local NAT64, public", "64:ff9b:1::140.82.121.4", "allowed"],
    ["discarded", "100::1", "allowed"],
    ["a dummy prefix", "100:0:0:1::1", "allowed"],
    ["Teredo, metadata as its server", "2001:0:a9fe:a9fe::1", "never"],
    ["Teredo, metadata as its client", "2001:0:4136:e378:8000:63bf:5601:5601", "never"],
    ["Teredo, public", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "allowed"],
    ["benchmarks", "2001:2::1", "allowed"],
    ["ORCHID", "2001:10::1", "allowed"],
    ["documentation", "2001:db8::1", "allowed"],
    ["documentation", "3fff::1", "allowed"],
    ["6to4, metadata", "2002:a9fe:a9fe::1", "never"],
    ["6to4, private", "2002:a00:1::1", "allowed"],
    ["6to4, public", "2002:8c52:7904::1", "allowed"],
    ["segment routing", "5f00::1", "allowed"],
    ["never assigned", "4000::1", "allowed"],
    ["unique local", "fd12:3456::1", "allowed"],
    ["metadata", "fd00:ec2::254", "never"],
    ["link-local", "fe80::1", "never"],
    ["link-local, with its interface", "fe80::1%eth0", "never"],
    ["site-local", "fec0::1", "allowed"],
    ["multicast", "ff02::1", "never"],
    ["global", "2606:50c0:8000::153", "public"],
    ["global, a cloud's", "2a05:d014::1", "public"],
  ];
  test.each(rows)('the range "%s" has %s, which is reached: %s', (_what, address, reach) => {
    const everything = addressRules("0.0.0.0/0, ::/0, git.corp.example");
    const [strict, byRange, byName] = [
      addressRules("").refusal("git.example", address),
      everything.refusal("git.example", address),
      everything.refusal("git.corp.example", address),
    ].map((refusal) => refusal === undefined);
    expect({ strict, byRange, byName }).toEqual({
      strict: reach === "public",
      byRange: reach === "public" || reach === "allowed",
      byName: reach !== "never",
    });
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
    ["0.0.0.0/0, ::/0", "localhost", "::ffff:127.0.0.1", false],
    ["git.corp.example", "git.corp.example", "169.254.169.254", false],
    ["0.0.0.0/0", "git.corp.example", "169.254.169.254", false],
    ["fc00::/7", "git.corp.example", "fd00:ec2::254", false],
    ["10.20.0.0/16", "git.corp.example", "::ffff:10.20.3.4", true],
    ["10.20.0.0/16", "git.corp.example", "64:ff9b::10.20.3.4", true],
    ["10.20.0.0/16", "git.corp.example", "64:ff9b::10.21.3.4", false],
    ["64:ff9b::/96", "git.corp.example", "64:ff9b::10.21.3.4", true],
    ["10.20.0.0/16", "git.corp.example", "2002:a14:304::1", false],
  ];
  test.each(rows)("the allow list %s decides about %s at %s: %s", (allow, host, address, reached) => {
    expect(addressRules(allow).refusal(host, address) === undefined).toBe(reached);
  });

  test.each(["10.0.0.0/33", "http://git", "a b", "10.0.0.0/x"])("the allow list refuses the entry %s", (entry) => {
    expect(() => addressRules(entry)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(`"${entry}"`),
        code: "InvalidAllowList",
        retry: "permanent",
        data: { entry },
      }),
    );
  });
});

describe("the address of a cluster", () => {
  test.each([
    ["127.0.0.1", true],
    ["10.0.0.1", true],
    ["fd12:3456::1", true],
    ["140.82.121.4", true],
    ["169.254.169.254", false],
    ["0.0.0.0", false],
    ["fe80::1", false],
    ["fd00:ec2::254", false],
    ["::ffff:a9fe:a9fe", false],
  ])("a cluster may have the address %s: %s", async (address, reached) => {
    expect(clusterAddresses.refusal("c1.example", address) === undefined).toBe(reached);
    const answered = new Promise((resolve, reject) => {
      guardedLookup(clusterAddresses)(address, {}, (error, found) => (error === null ? resolve(found) : reject(error)));
    });
    if (reached) expect(await answered).toBe(address);
    else await expect(answered).rejects.toMatchObject({ code: "AddressRefused" });
  });
});

describe("the address of a cluster, for the workers of a deployed function", () => {
  test.each([
    ["10.0.0.1", true],
    ["172.16.0.1", true],
    ["192.168.0.1", true],
    ["100.64.0.1", true],
    ["fd12:3456::1", true],
    ["140.82.121.4", true],
    ["::ffff:10.0.0.1", true],
    ["127.0.0.1", false],
    ["127.255.255.254", false],
    ["::1", false],
    ["::ffff:127.0.0.1", false],
    ["64:ff9b::127.0.0.1", false],
    ["::127.0.0.1", false],
    ["2002:7f00:1::1", false],
    ["169.254.169.254", false],
    ["169.254.170.2", false],
    ["fd00:ec2::254", false],
    ["::ffff:169.254.169.254", false],
    ["0.0.0.0", false],
  ])("a worker reaches %s: %s", (address, reached) => {
    expect(workerAddresses("").refusal("c1.example", address) === undefined).toBe(reached);
  });

  test("a local machine names its own addresses, and metadata stays out of reach", () => {
    const rules = workerAddresses("127.0.0.0/8,localhost,::1/128,169.254.0.0/16");
    expect(rules.refusal("127.0.0.1", "127.0.0.1")).toBeUndefined();
    expect(rules.refusal("localhost", "::1")).toBeUndefined();
    expect(rules.refusal("c1.example", "169.254.169.254")).toContain("is a link-local or reserved address");
  });
});

describe("a socket's lookup", () => {
  const resolveHost = (rules: ReturnType<typeof addressRules>, host: string, all: "all" | "one") =>
    new Promise((resolve, reject) => {
      guardedLookup(rules)(host, all === "all" ? { all: true } : {}, (error, ...found) =>
        error === null ? resolve(found) : reject(error),
      );
    });

  test("a lookup returns the first allowed address with its family", async () => {
    expect(await resolveHost(clusterAddresses, "127.0.0.1", "one")).toEqual(["127.0.0.1", 4]);
    expect(await resolveHost(clusterAddresses, "::1", "one")).toEqual(["::1", 6]);
  });

  test("a lookup of all addresses returns the allowed ones only", async () => {
    const both = { refusal: (_host: string, address: string) => (address === "127.0.0.1" ? undefined : "not there") };
    expect(await resolveHost(both, "localhost", "all")).toEqual([[{ address: "127.0.0.1", family: 4 }]]);
  });

  test("a lookup of a refused name fails with the name and the reason", async () => {
    await expect(resolveHost(addressRules(""), "127.0.0.1", "all")).rejects.toMatchObject({
      code: "AddressRefused",
      retry: "permanent",
      message: expect.stringContaining("127.0.0.1 is an address of the machine that asks"),
    });
  });

  test("a lookup of an unknown name fails as the resolver does", async () => {
    // The resolver is not asked for a label of more than 63 characters.
    await expect(resolveHost(clusterAddresses, `${"x".repeat(64)}.invalid`, "one")).rejects.toMatchObject({
      syscall: "getaddrinfo",
    });
  });
});
