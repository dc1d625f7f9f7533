/** The remedy for a service that a zone does not reach follows from the zone's network and from the service's address. */
import { expect, test } from "vitest";
import { serviceRemedy } from "#functions/apply/check/service-remedy.ts";
import type { ServiceFinding } from "#shared/fleet/zone-services.ts";

const finding = (more: Partial<ServiceFinding> = {}): ServiceFinding => ({
  ...{ service: "sqs", region: "us-east-1", state: "broken", needed: true, link: "route" },
  ...{ host: "sqs.us-east-1.amazonaws.com", addresses: ["52.94.133.1"], network: "public" },
  ...more,
});
const zone = (more: object = {}) => ({ own: "spoke", others: [], addresses: [], region: "us-east-1", ...more });
const subnets = zone({ securityGroups: ["sg-1", "sg-2"] });
const vpc = zone({ addresses: ["203.0.113.7", "203.0.113.8"] });

test("a service that works, or that nobody needs, has no remedy", () => {
  const { link: _link, ...whole } = finding({ state: "ok" });
  expect(serviceRemedy(whole, subnets)).toBeUndefined();
  expect(serviceRemedy(finding({ state: "unneeded" }), subnets)).toBeUndefined();
});

test("a cut way in existing subnets asks for an endpoint of the kind that the service has, with its name", () => {
  const sqs = serviceRemedy(finding(), subnets);
  expect(sqs).toContain("(setting zones, spoke)");
  expect(sqs).toContain("--vpc-endpoint-type Interface --service-name com.amazonaws.us-east-1.sqs ");
  expect(sqs).toContain("the security groups sg-1 sg-2 must let requests out on 443");
  expect(serviceRemedy(finding({ service: "s3" }), subnets)).toContain(
    "--vpc-endpoint-type Gateway --service-name com.amazonaws.us-east-1.s3 ",
  );
});

test("a cut way to a private address is a matter of security groups, and one to another region of a NAT gateway", () => {
  const inside = serviceRemedy(finding({ network: "private", addresses: ["10.0.3.17"] }), subnets);
  expect(inside).toContain("its security group must let the subnets of the zone in on 443");
  expect(inside).not.toContain("create-vpc-endpoint");
  const far = serviceRemedy(finding({ service: "eks", region: "eu-west-1" }), subnets);
  expect(far).toContain("need a NAT gateway, or a route to an endpoint of eu-west-1");
  expect(far).not.toContain("create-vpc-endpoint");
});

test("a zone with a VPC of its own is told to look at its NAT gateway by address, and home at the health of AWS", () => {
  expect(serviceRemedy(finding(), vpc)).toContain("with the address 203.0.113.7 or 203.0.113.8");
  expect(serviceRemedy(finding(), zone())).toContain("it runs outside of every VPC");
});

test("each other link has a remedy of its own", () => {
  const remedy = (more: Partial<ServiceFinding>, of = subnets) => serviceRemedy(finding(more), of);
  expect(remedy({ link: "dns" })).toContain("enableDnsSupport and enableDnsHostnames");
  expect(remedy({ link: "dns" }, zone())).toContain("is the endpoint of a region that exists");
  expect(remedy({ link: "tls" })).toContain("another server than sqs.us-east-1.amazonaws.com answers there");
  expect(remedy({ link: "token" })).toContain("the role of the zone's function apply exists");
  expect(remedy({ link: "authorization", code: "EndpointPolicy" })).toContain("the policy of the VPC endpoint");
  expect(remedy({ link: "authorization", code: "AccessDenied", state: "limited" })).toContain("service control policy");
  expect(remedy({ state: "unknown" })).toContain("AWS Health Dashboard");
});
