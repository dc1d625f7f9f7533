import type { ZoneNetworkKind } from "#shared/fleet/api/zone-object.ts";
import { monthlyOf, type ZoneEndpoint } from "#shared/fleet/zone-endpoints.ts";

const kinds = { nat: "NAT gateway", address: "public address" } as const;

/** The rows of the table of endpoints. */
export function endpointRows(endpoints: readonly ZoneEndpoint[]): readonly (readonly string[])[] {
  return endpoints.map(({ endpoint, region, type, use, monthly, remark = "" }) => [
    endpoint === "nat" || endpoint === "address" ? kinds[endpoint] : endpoint === "eks" ? `eks ${region}` : endpoint,
    type === "gateway" || type === "interface" ? type : "-",
    use,
    monthly.toFixed(2),
    remark,
  ]);
}

interface Priced {
  readonly region?: string;
  readonly network: { readonly type: ZoneNetworkKind };
  readonly endpoints: readonly ZoneEndpoint[];
  readonly prices: { readonly region: string; readonly asOf: string; readonly availabilityZones: number };
}

/** The sums, and what the prices are. */
export function monthlyText({ region, network, endpoints, prices }: Priced): string {
  if (network.type === "none") return "the zone runs outside of every VPC, and pays for no endpoint and no NAT gateway";
  if (endpoints.length === 0) return "the monthly cost of the zone is not known, because no worker has run the check";
  const used = monthlyOf(endpoints, ["used", "saveable"]).toFixed(2);
  const saveable = monthlyOf(endpoints, ["saveable"]).toFixed(2);
  const saved = saveable === "0.00" ? "" : `, of which ${saveable} can be saved`;
  const zones = `${prices.availabilityZones} availability ${prices.availabilityZones === 1 ? "zone" : "zones"}`;
  const where =
    region === prices.region
      ? `prices of ${region}`
      : `prices of ${prices.region}, since those of ${region ?? "its region"} are not known`;
  return `the zone uses ${used} USD a month${saved}, in ${zones}, without the bytes; ${where}, as of ${prices.asOf}`;
}
