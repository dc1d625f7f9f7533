/** A zone as the API reports it: `GET /v1/zones`. */
import { namedTexts } from "#shared/base/named-texts.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

/** - `none`: outside of every VPC; `vpc`: a VPC of its own; `subnets`: subnets that existed before. */
export type ZoneNetworkKind = "none" | "vpc" | "subnets";

export interface ZoneObject {
  readonly kind: "Zone";
  readonly metadata: { readonly name: string };
  readonly network: {
    readonly type: ZoneNetworkKind;
    /** Public addresses from which its requests come, where they are fixed and known. */
    readonly addresses: readonly string[];
  };
  /** Sources are read from here. Absent: from elsewhere. */
  readonly readsSources?: true;
}

/** The zones besides `home` as the function api gets them: `fixed=192.0.2.1+192.0.2.2,spoke=`, by the addresses of each. */
export function parseZoneAddresses(text: string | undefined): readonly ZoneObject[] {
  return [...namedTexts(text)].map(([name, list]) => {
    const addresses = list.split("+").filter((address) => address !== "");
    return { kind: "Zone", metadata: { name }, network: { type: addresses.length > 0 ? "vpc" : "subnets", addresses } };
  });
}

/** @param others - the zones besides `home`. @param reading - the one that reads Sources. @returns all zones, `home` first. */
export function everyZone(others: readonly ZoneObject[], reading: string | undefined): readonly ZoneObject[] {
  const home: ZoneObject = { kind: "Zone", metadata: { name: homeZone }, network: { type: "none", addresses: [] } };
  return [home, ...others].map((zone) => (zone.metadata.name === reading ? { ...zone, readsSources: true } : zone));
}
