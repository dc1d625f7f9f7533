/** A zone as the API reports it: `GET /v1/zones`. */
import { defined } from "#shared/base/defined.ts";
import { namedTexts } from "#shared/base/named-texts.ts";
import { accountOfQueue, regionOfQueue } from "#shared/base/queue-place.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";

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
  /** The account and the region of its workers, where their queue names them. */
  readonly account?: string;
  readonly region?: string;
  /** In another account or region than `home`: the log group of its workers, which is there. */
  readonly logGroup?: string;
  /** Patterns of the names of its clusters; absent when it serves every name. */
  readonly clusterNames?: readonly string[];
  /** Absent when none has run, and where `home` is the only zone. */
  readonly workers?: {
    /** When one of them last said that it runs. */
    readonly ranAt: string;
    /** Version of Starling; absent from versions that do not say it. */
    readonly version?: string;
    /** Present while they reach none of its clusters (`ZoneSilent`): since when. */
    readonly silentSince?: string;
  };
}

/** The zones besides `home` as the function api gets them: `fixed=vpc+192.0.2.1+192.0.2.2,spoke=subnets,far=none`. */
export function parseZoneNetworks(
  text: string | undefined,
  { queues = new Map(), served = new Map() }: ZonePlaces = {},
): readonly ZoneObject[] {
  return [...namedTexts(text)].map(([name, list]) => {
    const [type, ...addresses] = list.split("+") as [ZoneNetworkKind, ...string[]];
    const queue = queues.get(name) ?? "";
    const place = { account: accountOfQueue(queue), region: regionOfQueue(queue), clusterNames: served.get(name) };
    return { kind: "Zone", metadata: { name }, network: { type, addresses }, ...defined(place) };
  });
}

interface ZonePlaces {
  /** URLs of queues by zone. */
  readonly queues?: ReadonlyMap<string, string>;
  readonly served?: ServedNames;
}

/**
 * The zones as `GET /v1/zones` lists them.
 * @param others - the zones besides `home`.
 * @param reading - the one that reads Sources.
 * @returns all zones, `home` first.
 */
export function everyZone(
  others: readonly ZoneObject[],
  { installation, reading }: { readonly installation: string; readonly reading: string | undefined },
): readonly ZoneObject[] {
  // A local installation has neither.
  const [name, account, region] = installation.split(".");
  const place = region === undefined ? {} : defined({ account, region });
  const home: ZoneObject = {
    kind: "Zone",
    metadata: { name: homeZone },
    network: { type: "none", addresses: [] },
    ...place,
  };
  const zones = others.map((zone) => {
    const isHere = zone.region === undefined || (zone.account === account && zone.region === region);
    return isHere ? zone : { ...zone, logGroup: `/starling/${name}-zone-${zone.metadata.name}` };
  });
  return [home, ...zones].map((zone) => (zone.metadata.name === reading ? { ...zone, readsSources: true } : zone));
}
