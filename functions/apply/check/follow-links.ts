/** Checks the way from Starling's own role to the cluster's version, link by link. A broken link ends the check. */

import { awsLinks } from "#functions/apply/check/aws-links.ts";
import type { CheckedWay } from "#functions/apply/check/checked-way.ts";
import { kubeLinks } from "#functions/apply/check/kube-links.ts";
import { unknownZone } from "#functions/apply/cluster/unknown-zone.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { type ClusterLink, clusterLinks, type LinkFinding } from "#shared/fleet/cluster-links.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { specOf, zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { notServedText, servesName } from "#shared/fleet/served-names.ts";

/** @returns a finding for each link that this Cluster has, in the order of the way. */
export async function followLinks(cluster: ClusterRow, way: CheckedWay): Promise<readonly LinkFinding[]> {
  const found: LinkFinding[] = [];
  for (const step of [specLink, zoneLink, awsLinks, kubeLinks]) {
    found.push(...(await step(cluster, way)));
    if (found.some(({ state }) => state === "broken" || state === "unknown")) break;
  }
  return linksOf(cluster).map((link) => found.find((one) => one.link === link) ?? { link, state: "skipped" });
}

async function specLink(cluster: ClusterRow, { connector }: CheckedWay): Promise<readonly LinkFinding[]> {
  const { name } = cluster;
  const spec = specOf(cluster);
  const value = spec.eks?.arn ?? spec.endpoint?.server ?? name;
  try {
    connector.targetOf(cluster);
    return [{ link: "cluster", state: "ok", value }];
  } catch (error) {
    const remedy = `starling describe cluster/${name}`;
    const said = { code: errorCode(error), message: errorMessage(error), remedy };
    return [{ link: "cluster", state: "broken", value, ...said }];
  }
}

/** Another zone's workers do not get this far: only a zone that does not exist, or does not serve the name, is found here. */
async function zoneLink(
  cluster: ClusterRow,
  { zone: { own, others, served = new Map() } }: CheckedWay,
): Promise<readonly LinkFinding[]> {
  const value = zoneOf(cluster);
  if (!servesName(served, value, cluster.name)) {
    const message = `zone ${value} ${notServedText(served, value, cluster.name)}`;
    const remedy = `name another zone in spec.access.zone of Cluster ${cluster.name}, or add the name to clusterNames of zone ${value} in the setting zones and deploy`;
    return [{ link: "zone", state: "broken", value, code: "NameNotServed", message, remedy }];
  }
  if (value === own) return [{ link: "zone", state: "ok", value }];
  const { message, remedy } = unknownZone(cluster);
  const known = `it has ${[homeZone, ...others].join(", ")}`;
  return [{ link: "zone", state: "broken", value, code: "ZoneNotFound", message: `${message}; ${known}`, remedy }];
}

function linksOf(cluster: ClusterRow): readonly ClusterLink[] {
  const spec = specOf(cluster);
  const others: readonly ClusterLink[] =
    spec.eks === undefined ? ["region", "role", "externalId", "eks", "accessEntry"] : ["secret"];
  const roleless: readonly ClusterLink[] = spec.access?.role === undefined ? ["role", "externalId"] : [];
  const homely: readonly ClusterLink[] = zoneOf(cluster) === homeZone ? ["zone"] : [];
  const absent = new Set([...others, ...roleless, ...homely]);
  return clusterLinks.filter((link) => !absent.has(link));
}
