/** The endpoints that a zone uses, lacks and could save follow from the addresses at which its services answer. */
import { describe, expect, test } from "vitest";
import { networkOf } from "#shared/adapters/net/address-rules.ts";
import { defined } from "#shared/base/defined.ts";
import { type EndpointQuestion, monthlyOf, zoneEndpoints } from "#shared/fleet/zone-endpoints.ts";
import { networkPrices } from "#shared/fleet/zone-prices.ts";
import type { ServiceFinding, ZoneService } from "#shared/fleet/zone-services.ts";

const [inside, outside] = ["10.0.3.17", "52.94.133.1"];

/** The service as a worker found it at this address, or without an answer of the resolver. */
function found(service: ZoneService, address: string | undefined, more: Partial<ServiceFinding> = {}): ServiceFinding {
  const addresses = address === undefined ? [] : [address];
  const network = address === undefined ? undefined : networkOf(address);
  const base = { service, region: "us-east-1", state: "ok", needed: true, host: `${service}.example` } as const;
  return { ...base, addresses, ...defined({ network }), ...more };
}

const cut = { state: "broken", link: "route" } as const;

function ask(services: readonly ServiceFinding[], more: Partial<EndpointQuestion> = {}) {
  const network = { type: "subnets", addresses: [] } as const;
  return zoneEndpoints({ network, region: "us-east-1", services, prices: networkPrices("us-east-1"), ...more });
}

const usesOf = (endpoints: ReturnType<typeof ask>) =>
  endpoints.map(({ endpoint, type, use, monthly }) => `${endpoint} ${type} ${use} ${monthly}`);

describe("in existing subnets", () => {
  test("with interface endpoints only, all of them are used, and a NAT gateway would be another way", () => {
    expect(usesOf(ask([found("sqs", inside), found("sts", inside)]))).toEqual([
      "sqs interface used 14.6",
      "sts interface used 14.6",
      "nat nat other 36.5",
    ]);
  });

  test("an interface endpoint beside a NAT gateway can be saved", () => {
    const endpoints = ask([found("sqs", inside), found("sts", outside)]);
    expect(usesOf(endpoints)).toEqual(["sqs interface saveable 14.6", "sts interface other 14.6", "nat nat used 36.5"]);
    expect(monthlyOf(endpoints, ["used", "saveable"])).toBe(51.1);
    expect(monthlyOf(endpoints, ["saveable"])).toBe(14.6);
  });

  test("an answer that refuses the role shows the way as well, and a public address without an answer does not", () => {
    const limited = ask([found("sqs", inside), found("sts", outside, { state: "limited" })]);
    expect(usesOf(limited)).toContain("nat nat used 36.5");
    const broken = ask([found("sqs", inside), found("sts", outside, cut)]);
    expect(usesOf(broken)).toEqual(["sqs interface used 14.6", "sts interface missing 14.6", "nat nat other 36.5"]);
  });

  test("DynamoDB and S3 at a public address show no NAT gateway: a gateway endpoint has no address", () => {
    const endpoints = ask([found("dynamodb", outside), found("s3", outside), found("sqs", inside)]);
    expect(usesOf(endpoints)).toEqual([
      "dynamodb gateway unknown 0",
      "s3 gateway unknown 0",
      "sqs interface used 14.6",
      "nat nat other 36.5",
    ]);
  });

  test("S3 at a private address has an interface endpoint, which a free one replaces, and without an answer it lacks one", () => {
    expect(usesOf(ask([found("s3", inside)]))[0]).toBe("s3 interface saveable 14.6");
    expect(usesOf(ask([found("s3", outside, cut)]))[0]).toBe("s3 gateway missing 0");
  });

  test("a service that no cluster needs is not missing, and its endpoint can be saved", () => {
    const unneeded = { needed: false } as const;
    expect(usesOf(ask([found("eks", inside, unneeded)]))[0]).toBe("eks interface saveable 14.6");
    expect(usesOf(ask([found("eks", outside, { ...cut, ...unneeded })]))[0]).toBe("eks interface other 14.6");
  });

  test("a name that does not resolve shows nothing, and neither does an address of the worker's own machine", () => {
    expect(usesOf(ask([found("sqs", undefined, { state: "broken", link: "dns" })]))[0]).toBe(
      "sqs interface unknown 14.6",
    );
    expect(usesOf(ask([found("sqs", "127.0.0.1")]))[0]).toBe("sqs interface unknown 14.6");
  });

  test("an endpoint is priced for each subnet", () => {
    expect(usesOf(ask([found("sqs", inside)], { subnets: 3 }))[0]).toBe("sqs interface used 21.9");
  });

  test("a service of another region has no endpoint in the zone: a NAT gateway is missing when nothing answers there", () => {
    const far = { region: "eu-west-1" } as const;
    const endpoints = ask([found("sqs", inside), found("eks", outside, { ...cut, ...far })]);
    expect(usesOf(endpoints)).toEqual(["sqs interface used 14.6", "nat nat missing 36.5"]);
    expect(endpoints.at(-1)?.remark).toContain("eks of eu-west-1");
    const unneeded = ask([found("sqs", inside), found("eks", outside, { ...cut, ...far, needed: false })]);
    expect(usesOf(unneeded).at(-1)).toBe("nat nat other 36.5");
    // A private address of the other region is that of an endpoint there, to which a route exists or not.
    const peered = ask([found("sqs", inside), found("eks", inside, { ...cut, ...far })]);
    expect(usesOf(peered).at(-1)).toBe("nat nat other 36.5");
  });
});

test("a zone with a VPC of its own pays for each gateway and its address, and has free gateway endpoints", () => {
  const network = { type: "vpc", addresses: ["203.0.113.7", "203.0.113.8"] } as const;
  expect(usesOf(ask([found("s3", outside), found("sqs", outside)], { network }))).toEqual([
    "s3 gateway used 0",
    "sqs interface other 14.6",
    "nat nat used 65.7",
    "address address used 7.3",
  ]);
});

test("a zone without a network pays for none", () => {
  expect(ask([found("sqs", outside)], { network: { type: "none", addresses: [] } })).toEqual([]);
});

test.each([
  ["10.255.255.254", "private"],
  ["11.0.0.1", "public"],
  ["172.16.0.1", "private"],
  ["172.32.0.1", "public"],
  ["192.168.1.1", "private"],
  ["100.64.0.1", "private"],
  ["100.63.255.254", "public"],
  ["100.128.0.1", "public"],
  ["fd00::1", "private"],
  ["fc00::1", "private"],
  ["2600:1f18::1", "public"],
  ["::ffff:10.0.0.1", "private"],
  ["::ffff:52.94.133.1", "public"],
  ["52.94.133.1", "public"],
  ["169.254.169.254", undefined],
  ["fd00:ec2::254", undefined],
  ["127.0.0.1", undefined],
  ["::1", undefined],
  ["0.0.0.0", undefined],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
