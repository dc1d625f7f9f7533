/** The remedy for an API server that cannot be reached, by the network of the zone from which it was asked. */
import { BlockList } from "node:net";
import type { CheckedZone } from "#functions/apply/check/checked-way.ts";
import type { EksTarget } from "#shared/adapters/aws/eks-access.ts";
import type { EksEndpoint } from "#shared/adapters/aws/eks-clusters.ts";
import type { EndpointOverride } from "#shared/fleet/kinds/cluster.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** The value of `publicAccessCidrs` that excludes nobody. */
const everywhere = "0.0.0.0/0";
const onlyPublic = "the zone home reaches public addresses only: for others, name a zone in spec.access.zone";

export interface Unreached {
  readonly code: string;
  readonly zone: CheckedZone;
  readonly target: EksTarget;
  readonly endpoint: Pick<EksEndpoint, "server" | "publicAccess" | "publicCidrs">;
}

export function networkRemedy({ code, zone, target, endpoint }: Unreached): string {
  const { name, region } = target.cluster;
  const { publicAccess, publicCidrs = [] } = endpoint;
  if (isOtherServer(code)) {
    return `another server than ${name} answers there: look for a proxy in between, and compare certificateAuthority of \`aws eks describe-cluster --name ${name} --region ${region}\``;
  }
  if (publicAccess === false) return `its endpoint is private, and ${privateRemedy(zone, target)}`;
  const lacking = zone.addresses.filter((address) => !isIn(publicCidrs, address));
  const isLimited = zone.addresses.length > 0 ? lacking.length > 0 : !publicCidrs.includes(everywhere);
  if (isLimited) {
    const cidrs = [...publicCidrs, ...lacking.map((address) => `${address}/32`)];
    return `its public endpoint lets in ${publicCidrs.join(", ")} only, and ${limitedRemedy(zone, target, cidrs)}`;
  }
  const path = zone.securityGroups === undefined ? "" : `${pathOut(zone)}; `;
  return `its public endpoint lets everybody ask, and did not answer: ${path}look at the cluster's health with aws eks describe-cluster --name ${name} --region ${region} --query cluster.health, and check again in a minute`;
}

function isOtherServer(code: string): boolean {
  return (
    code === "InvalidAuthority" || code.startsWith("ERR_TLS") || code.includes("CERT") || code.includes("SIGNATURE")
  );
}

/** The remedy for an address that people wrote in place of the one of EKS. */
export function overrideRemedy({ server, tlsServerName }: EndpointOverride, { code, zone, ...eks }: Unreached): string {
  const { endpoint, target } = eks;
  const { name, region } = target.cluster;
  const asked = `spec.eks.endpointOverride.server (${server}) is asked in place of ${endpoint.server}`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const expected = tlsServerName ?? `the host of ${endpoint.server}`;
    return `${asked}, and its certificate is not for ${expected}: let the address lead to ${name} itself, and remove spec.eks.endpointOverride.tlsServerName, or set it to a name of the API server's certificate`;
  }
  if (isOtherServer(code)) {
    return `${asked}, and another server than ${name} answers there: let it lead to the API server itself, without a proxy or load balancer that ends TLS, and compare certificateAuthority of \`aws eks describe-cluster --name ${name} --region ${region}\``;
  }
  const place =
    zone.own === homeZone
      ? onlyPublic
      : `see that it leads to ${name} from the zone ${zone.own}: ${zone.securityGroups === undefined ? "its network is the VPC that the setting zones makes" : pathOut(zone)}`;
  return `${asked}: correct it, or remove spec.eks.endpointOverride; ${place}`;
}

/** The remedy for an address that people wrote. */
export function endpointRemedy({ own }: CheckedZone): string {
  const place = own === homeZone ? onlyPublic : `it is reached from the zone ${own}`;
  return `correct spec.endpoint: server, caData and tlsServerName are what is connected to; ${place}`;
}

function privateRemedy(zone: CheckedZone, target: EksTarget): string {
  const { own, addresses, securityGroups } = zone;
  if (own === homeZone) {
    return `the zone home runs outside of every VPC: ${placeFor(zone, '{"name": "spoke", "subnets": [...], "securityGroups": [...]}')}. Or use its public endpoint: ${updateCommand(target, [everywhere])}`;
  }
  if (securityGroups !== undefined) {
    const { name, region } = target.cluster;
    return `the zone ${own} is in subnets that must lead there: ${pathOut(zone)}; and see that its cluster security group lets in port 443 from the zone: aws eks describe-cluster --name ${name} --region ${region} --query cluster.resourcesVpcConfig.clusterSecurityGroupId`;
  }
  const cidrs = addresses.map((address) => `${address}/32`);
  return `the VPC of the zone ${own} leads to public endpoints only: let the zone in there with ${updateCommand(target, cidrs)}, or use a zone with subnets that lead to the VPC of the cluster`;
}

function limitedRemedy(zone: CheckedZone, target: EksTarget, cidrs: readonly string[]): string {
  const { own, addresses, securityGroups } = zone;
  if (own === homeZone) {
    return `the zone home has no fixed address that could be added: ${placeFor(zone, '{"name": "fixed", "vpc": {}}')}, and add its addresses. Or let everybody ask, which lets nobody in without IAM and RBAC: ${updateCommand(target, [everywhere])}`;
  }
  if (securityGroups !== undefined) {
    return `the zone ${own} comes from the address of the NAT gateway of its subnets, or from inside of the VPC: add that address to publicAccessCidrs (aws ec2 describe-nat-gateways), or activate the private endpoint; ${pathOut(zone)}`;
  }
  return `the zone ${own} comes from ${addresses.join(" and ")}: ${updateCommand(target, cidrs)}`;
}

/** The zones that exist, or the setting that makes one. */
function placeFor({ others }: CheckedZone, setting: string): string {
  const made =
    others.length === 0
      ? `add a zone to the setting zones: [${setting}], deploy,`
      : `take one of the zones ${others.join(", ")}, or add ${setting} to the setting zones and deploy,`;
  return `${made} and name it in spec.access.zone of the Cluster`;
}

function pathOut({ own, securityGroups = [] }: CheckedZone): string {
  return `look at the route tables of the zone's subnets (setting zones, ${own}), and whether its security group lets requests out: aws ec2 describe-security-groups --group-ids ${securityGroups.join(" ")} --query SecurityGroups[].IpPermissionsEgress`;
}

function updateCommand({ cluster: { name, region } }: EksTarget, cidrs: readonly string[]): string {
  return `aws eks update-cluster-config --name ${name} --region ${region} --resources-vpc-config endpointPublicAccess=true,publicAccessCidrs=${cidrs.join(",")}`;
}

function isIn(cidrs: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [net = "", prefix] = cidr.split("/");
    list.addSubnet(net, Number(prefix), net.includes(":") ? "ipv6" : "ipv4");
  }
  return list.check(address);
}
