/** The endpoints of AWS that a zone uses or lacks, with their cost: `starling zone check` lists them. */
import type { ZoneNetworkKind } from "#shared/fleet/api/zone-object.ts";
import { aMonth, type PricesOfRegion } from "#shared/fleet/zone-prices.ts";
import type { ServiceFinding, ZoneService } from "#shared/fleet/zone-services.ts";

export interface ZoneEndpoint {
  /** A service, `nat` or `address`. */
  readonly endpoint: ZoneService | "nat" | "address";
  readonly region: string;
  readonly type: "gateway" | "interface" | "nat" | "address";
  /**
   * - `used`: the zone uses it; `saveable`: it costs something, and could be left out;
   * - `other`: the requests go another way, and it would cost this; `missing`: nothing answers without it;
   * - `unknown`: nothing shows whether it exists.
   */
  readonly use: "used" | "saveable" | "other" | "missing" | "unknown";
  /** USD. */
  readonly monthly: number;
  readonly remark?: string;
}

/** Services with an endpoint in route tables, which is free. */
export function isGateway(service: ZoneService): boolean {
  return service === "dynamodb" || service === "s3";
}

export interface EndpointQuestion {
  readonly network: { readonly type: ZoneNetworkKind; readonly addresses: readonly string[] };
  /** The number of existing subnets, each in an availability zone of its own; absent when unknown. */
  readonly subnets?: number;
  /** The region of the workers; absent when no worker answered. An endpoint answers for its own region only. */
  readonly region?: string;
  readonly services: readonly ServiceFinding[];
  readonly prices: PricesOfRegion;
}

/** The number of availability zones that a zone with a network of its own has, and that docs/zones.md recommends. */
export const usualZones = 2;

/** @returns nothing for a zone without a network, whose requests cost nothing of this kind. */
export function zoneEndpoints(question: EndpointQuestion): readonly ZoneEndpoint[] {
  const { network, services, region } = question;
  if (network.type === "none") return [];
  const own = services.filter((each) => region === undefined || each.region === region);
  return [...own.map((service) => endpointOf(service, question)), ...natOf(question)];
}

/** The monthly cost of what the zone uses. */
export function monthlyOf(endpoints: readonly ZoneEndpoint[], uses: readonly ZoneEndpoint["use"][]): number {
  const cents = endpoints.filter(({ use }) => uses.includes(use)).reduce((sum, { monthly }) => sum + monthly * 100, 0);
  return Math.round(cents) / 100;
}

function endpointOf(found: ServiceFinding, question: EndpointQuestion): ZoneEndpoint {
  const { service, region, network } = found;
  const { subnets = usualZones, prices } = question;
  const priced = aMonth(prices.prices.interfaceEndpoint * subnets);
  const asInterface = { endpoint: service, region, type: "interface", monthly: priced } as const;
  if (isGateway(service)) {
    const asGateway = { endpoint: service, region, type: "gateway", monthly: 0 } as const;
    if (network === "private") {
      return { ...asInterface, use: "saveable", remark: "a gateway endpoint does the same, and is free" };
    }
    if (isCut(found)) return { ...asGateway, use: "missing", remark: "add it to the route tables of the subnets" };
    if (network === undefined) return { ...asGateway, use: "unknown" };
    if (question.network.type === "vpc") return { ...asGateway, use: "used" };
    return {
      ...asGateway,
      use: "unknown",
      remark:
        "its address is public with one and without: see that the route tables have it, since a NAT gateway charges for each GB",
    };
  }
  if (network === "private") {
    if (!found.needed) return { ...asInterface, use: "saveable", remark: "no cluster of the zone needs it" };
    if (hasPublicWay(question)) {
      return { ...asInterface, use: "saveable", remark: "the NAT gateway that the zone has reaches this service, too" };
    }
    return { ...asInterface, use: "used" };
  }
  if (isCut(found)) {
    if (!found.needed) return { ...asInterface, use: "other", remark: "no cluster of the zone needs it" };
    return { ...asInterface, use: "missing", remark: "or a NAT gateway" };
  }
  if (network === undefined) return { ...asInterface, use: "unknown" };
  return { ...asInterface, use: "other", remark: "its requests go through a NAT gateway" };
}

/** Whether a service that has no gateway endpoint answered at a public address. */
function hasPublicWay({ services }: EndpointQuestion): boolean {
  return services.some(
    ({ service, network, state }) =>
      !isGateway(service) && network === "public" && (state === "ok" || state === "limited"),
  );
}

function natOf(question: EndpointQuestion): readonly ZoneEndpoint[] {
  const { network, prices } = question;
  const region = question.region ?? prices.region;
  const nat = { endpoint: "nat", region, type: "nat" } as const;
  const address = { endpoint: "address", region, type: "address" } as const;
  if (network.type === "vpc") {
    const count = network.addresses.length;
    const remark = count > 1 ? `${count}; one would do while no availability zone is down` : "1";
    return [
      { ...nat, use: "used", monthly: aMonth(prices.prices.natGateway * count), remark },
      {
        ...address,
        use: "used",
        monthly: aMonth(prices.prices.publicAddress * count),
        remark: network.addresses.join(", "),
      },
    ];
  }
  const monthly = aMonth(prices.prices.natGateway + prices.prices.publicAddress);
  if (hasPublicWay(question)) {
    return [
      { ...nat, use: "used", monthly, remark: "one at least, with its address; other users of the VPC may share it" },
    ];
  }
  const far = question.services.find((each) => each.region !== question.region && isCut(each) && each.needed);
  if (far !== undefined && question.region !== undefined) {
    return [
      { ...nat, use: "missing", monthly, remark: `with its address: the usual way to ${far.service} of ${far.region}` },
    ];
  }
  return [{ ...nat, use: "other", monthly, remark: "with its address; it would reach every service" }];
}

/** Whether nothing answers at a public address, as without any way out. */
function isCut({ link, network }: ServiceFinding): boolean {
  return link === "route" && network !== "private";
}
