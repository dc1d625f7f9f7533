/**
 * Prices of the networks of zones in USD, on demand. docs/cost.md has the same prices with their source. Prices of further
 * regions go into the same table.
 */
const monthHours = 730;
export const pricesAsOf = "2026-11-23";

interface NetworkPrices {
  /** For each hour. */
  readonly natGateway: number;
  /** For each hour and availability zone. */
  readonly interfaceEndpoint: number;
  /** For each hour. */
  readonly publicAddress: number;
}

const knownRegion = "us-east-1";
const known: NetworkPrices = { natGateway: 0.045, interfaceEndpoint: 0.01, publicAddress: 0.005 };
const regions: Readonly<Record<string, NetworkPrices>> = { [knownRegion]: known };

export interface PricesOfRegion {
  /** The region of these prices; another one than asked for when its own are not known. */
  readonly region: string;
  readonly prices: NetworkPrices;
}

/** @param region - undefined when nobody knows where the zone is. */
export function networkPrices(region: string | undefined): PricesOfRegion {
  const own = region === undefined ? undefined : regions[region];
  return own === undefined || region === undefined ? { region: knownRegion, prices: known } : { region, prices: own };
}

/** USD a month, in whole cents. */
export function aMonth(hourly: number): number {
  return Math.round(hourly * monthHours * 100) / 100;
}
