/** The remedy for a service of AWS that the workers of a zone do not reach, by the network of the zone. */
import type { CheckedZone } from "#functions/apply/check/checked-way.ts";
import { isGateway } from "#shared/fleet/zone-endpoints.ts";
import type { ServiceFinding } from "#shared/fleet/zone-services.ts";

/** @returns undefined for what needs no remedy. */
export function serviceRemedy(finding: ServiceFinding, zone: ZoneInRegion): string | undefined {
  if (finding.state === "unknown") return "look at the AWS Health Dashboard, and check again in a minute";
  if (finding.link === undefined || finding.state === "unneeded") return undefined;
  return remedies[finding.link](finding, zone);
}

const remedies = {
  dns: ({ host }: ServiceFinding, zone: CheckedZone) =>
    zone.securityGroups === undefined
      ? `see that ${host} is the endpoint of a region that exists, and check again in a minute`
      : `see that the VPC has enableDnsSupport and enableDnsHostnames (aws ec2 describe-vpc-attribute), and that the name servers of its DHCP options resolve ${host}`,
  route: routeRemedy,
  tls: ({ host }: ServiceFinding) =>
    `another server than ${host} answers there: look for a proxy in between, and for a private hosted zone or an endpoint that takes this name`,
  token: () =>
    "check again in a minute; if it stays, see that the role of the zone's function apply exists, and deploy",
  authorization: ({ code, host }: ServiceFinding) =>
    code === "EndpointPolicy"
      ? `let the policy of the VPC endpoint for ${host} allow the role of the zone: aws ec2 describe-vpc-endpoints --query VpcEndpoints[].[ServiceName,PolicyDocument]`
      : "see that no service control policy and no policy of the resource refuses the role of the zone, and deploy the stacks",
} as const;

interface ZoneInRegion extends CheckedZone {
  /** The region of its workers. */
  readonly region: string;
}

function routeRemedy(finding: ServiceFinding, zone: ZoneInRegion): string {
  const { own, securityGroups, addresses } = zone;
  const { service, region, network } = finding;
  if (securityGroups === undefined && addresses.length === 0)
    return "it runs outside of every VPC: look at the AWS Health Dashboard, and check again in a minute";
  if (securityGroups === undefined) {
    return `look at the NAT gateway of the zone: aws ec2 describe-nat-gateways --filter Name=state,Values=available, with the address ${addresses.join(" or ")}`;
  }
  const out = `the security groups ${securityGroups.join(" ")} must let requests out on 443`;
  if (network === "private") {
    return `an interface endpoint has this address: its security group must let the subnets of the zone in on 443, and ${out}`;
  }
  if (region !== zone.region) {
    return `an endpoint answers for its own region only: the subnets of the zone (setting zones, ${own}) need a NAT gateway, or a route to an endpoint of ${region}; and ${out}`;
  }
  const kind = isGateway(service) ? "Gateway" : "Interface";
  const more =
    kind === "Gateway" ? "for the route tables of the subnets" : "with private DNS, in the subnets of the zone";
  return `the route tables of the subnets of the zone (setting zones, ${own}) have no way there: add a NAT gateway, or an endpoint ${more} (aws ec2 create-vpc-endpoint --vpc-endpoint-type ${kind} --service-name com.amazonaws.${region}.${service} --vpc-id VPC); and ${out}`;
}
