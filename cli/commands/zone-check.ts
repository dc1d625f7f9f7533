import { type CheckedCluster, checkOne, linkRows } from "#cli/commands/cluster-check.ts";
import { noSuchZone, zoneOfObject } from "#cli/commands/get-zones.ts";
import { endpointRows, monthlyText } from "#cli/format/endpoints-text.ts";
import { printTable } from "#cli/format/print-table.ts";
import { requireReadable } from "#cli/format/require-readable.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { awaitCheck, patienceSeconds } from "#cli/seeing/await-check.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ApiList, ClusterObject } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import type { CheckResult } from "#shared/fleet/cluster-links.ts";
import { usualZones, type ZoneEndpoint, zoneEndpoints } from "#shared/fleet/zone-endpoints.ts";
import { networkPrices, pricesAsOf } from "#shared/fleet/zone-prices.ts";
import { resultOfServices, type ServiceFinding, type ZoneCheck } from "#shared/fleet/zone-services.ts";

export interface ZoneCheckOptions {
  /** The cluster to which the rest of the way is gone. Default: the first of the zone. */
  readonly cluster?: string;
}

interface Asked {
  readonly id: string;
  readonly clusters: number;
  readonly cluster?: string;
}

interface Stored {
  readonly answer?: ZoneCheck;
  readonly workedAt?: string;
}

/** Whether a worker of the zone ran the check. */
interface WorkerFinding {
  readonly state: "ok" | "unknown";
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

/** The answer in the form of `-o json`. */
interface CheckedZone {
  readonly kind: "ZoneCheck";
  readonly metadata: { readonly name: string };
  readonly result: CheckResult;
  readonly checkedAt?: string;
  readonly region?: string;
  readonly network: ZoneObject["network"];
  readonly clusters: number;
  readonly worker: WorkerFinding;
  readonly services: readonly ServiceFinding[];
  /** Absent for a zone without clusters. */
  readonly cluster?: CheckedCluster;
  readonly endpoints: readonly ZoneEndpoint[];
  readonly prices: {
    readonly currency: "USD";
    readonly region: string;
    readonly asOf: string;
    readonly availabilityZones: number;
  };
}

/** Has a worker of the zone go the way to each service of AWS and to one cluster, and lists endpoints with their cost. */
export async function zoneCheck(session: Session, name: string, options: ZoneCheckOptions): Promise<ExitReason> {
  const zone = await zoneNamed(session, name);
  if (options.cluster !== undefined) await requireMember(session, { zone: name, cluster: options.cluster });
  const path = `/v1/zones/${name}/check`;
  const { id: _id, ...first } = await session.api.call<Asked>({ method: "POST", path });
  const cluster = options.cluster ?? first.cluster;
  const [awaited, checked] = await Promise.all([
    awaitCheck<Asked, Stored>(session, path),
    cluster === undefined ? undefined : checkOne(session, cluster),
  ]);
  const { stored, isAnswered } = awaited;
  const answer = isAnswered ? stored.answer : undefined;
  const found = judged(zone, { answer, checked, clusters: first.clusters, workedAt: stored.workedAt });
  print(session, found);
  if (found.result === "broken") return "no";
  return found.result === "unknown" ? "unknown" : "done";
}

async function zoneNamed(session: Session, name: string): Promise<ZoneObject> {
  const { items } = await session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" });
  const found = items.find(({ metadata }) => metadata.name === name);
  if (found !== undefined) return found;
  throw noSuchZone(name, items);
}

async function requireMember(
  session: Session,
  { zone, cluster }: { readonly zone: string; readonly cluster: string },
): Promise<void> {
  const path = pathOfObject({ kind: "Cluster", name: cluster }, "");
  const own = zoneOfObject(requireReadable(await session.api.call<ClusterObject>({ method: "GET", path })));
  if (own === zone) return;
  const message = `--cluster is ${cluster}, which is in the zone ${own}; expected a cluster of the zone ${zone}`;
  throw usageFailure(message, `starling zone check ${quoted(own)} --cluster ${quoted(cluster)}`);
}

interface Answers {
  readonly answer: ZoneCheck | undefined;
  readonly checked: CheckedCluster | undefined;
  readonly clusters: number;
  readonly workedAt: string | undefined;
}

function judged(zone: ZoneObject, { answer, checked, clusters, workedAt }: Answers): CheckedZone {
  const { metadata } = zone;
  const { network } = answer ?? zone;
  const services = answer?.services ?? [];
  const worker: WorkerFinding = answer === undefined ? untaken(zone, workedAt) : { state: "ok" };
  const results = [worker.state, resultOfServices(services), checked?.result];
  const region = answer?.region ?? zone.region;
  const prices = networkPrices(region);
  const place = defined({ region, subnets: answer?.subnets });
  // Only a worker sees what existing subnets have, and the gateways of a network in another account or region.
  const isSeen = answer !== undefined || network.type === "none" || network.addresses.length > 0;
  return {
    kind: "ZoneCheck",
    metadata,
    result: (["broken", "unknown", "limited"] as const).find((state) => results.includes(state)) ?? "ok",
    ...defined({ checkedAt: answer?.at, region }),
    network,
    clusters,
    worker,
    services,
    ...defined({ cluster: checked }),
    endpoints: isSeen ? zoneEndpoints({ network, services, prices, ...place }) : [],
    prices: {
      currency: "USD",
      region: prices.region,
      asOf: pricesAsOf,
      availabilityZones: network.type === "none" ? 0 : (answer?.subnets ?? usualZones),
    },
  };
}

/** The finding for a check that no worker of the zone ran in time. */
function untaken({ metadata: { name }, network, logGroup }: ZoneObject, workedAt: string | undefined): WorkerFinding {
  const since = workedAt === undefined ? "" : `; the last sign of one is of ${workedAt}`;
  const message = `no worker of the zone ${name} has run the check within ${patienceSeconds} s${since}`;
  const isFar = logGroup !== undefined;
  const ways: Readonly<Record<ZoneObject["network"]["type"], string>> = {
    none: "",
    subnets: isFar
      ? "; the subnets of the zone need a way to STS of their region and to DynamoDB of Starling's region, which a gateway endpoint of another region is not"
      : "; in subnets without a NAT gateway, the VPC needs a gateway endpoint of DynamoDB, or no worker reads a row",
    vpc: isFar
      ? "; look at the NAT gateway of the VPC in the zone's account and region"
      : "; look at the NAT gateway and the gateway endpoint of DynamoDB in the VPC of the zone",
  };
  const log = isFar ? `; its workers log in ${logGroup}, in the zone's account and region` : "";
  const remedy = `see whether the function apply of the zone is throttled or fails, and look at its oldest message and its dead letters: \`starling doctor\`${ways[network.type]}${log}`;
  return { state: "unknown", code: "NotTaken", message, remedy };
}

function print(session: Session, found: CheckedZone): void {
  const { output } = session.options;
  const { name } = found.metadata;
  if (isData(output)) {
    session.io.out(serialise(found, output));
    return;
  }
  if (output === "name") {
    session.io.out(`zone/${name} ${found.result}\n`);
    return;
  }
  const columns = ["LINK", "STATE", "VALUE", ""];
  printTable(session, { columns, rows: wayRows(found, output === "wide") });
  const { endpoints } = found;
  if (endpoints.length > 0) {
    session.io.out("\n");
    printTable(session, { columns: ["ENDPOINT", "TYPE", "USE", "USD/MONTH", ""], rows: endpointRows(endpoints) });
  }
  for (const line of remedies(found)) session.note(line);
  session.note(monthlyText(found));
}

function wayRows({ worker, region, services, cluster, clusters }: CheckedZone, isWide: boolean) {
  const said = (code: string | undefined, message = "") => (code === undefined ? message : `${code}: ${message}`);
  return [
    ["worker", worker.state, region ?? "-", said(worker.code, worker.message)],
    ...services.map(({ state, host, addresses, network, link, code, message, needed, ...of }) => [
      nameOf(of, region),
      state,
      network === undefined ? host : `${host} ${network}${isWide ? ` ${addresses.join(",")}` : ""}`,
      [link, said(code, message), needed ? "" : "no cluster of the zone needs it"].filter(Boolean).join(", "),
    ]),
    ...(cluster === undefined
      ? [["cluster", "skipped", "-", clusters === 0 ? "the zone has no clusters" : ""]]
      : linkRows(cluster, isWide).map(([of = "", link = "", ...rest]) => [`cluster/${of} ${link}`, ...rest])),
  ];
}

/** The service, with a region that may be another one than that of the workers. */
function nameOf({ service, region }: Pick<ServiceFinding, "service" | "region">, own: string | undefined): string {
  return service === "eks" || region !== own ? `${service} ${region}` : service;
}

function remedies({ metadata: { name }, region, worker, services, cluster }: CheckedZone): readonly string[] {
  return [
    ...(worker.remedy === undefined ? [] : [`${name}, worker: ${worker.remedy}`]),
    ...services.flatMap(({ remedy, ...of }) =>
      remedy === undefined ? [] : [`${name}, ${nameOf(of, region)}: ${remedy}`],
    ),
    ...(cluster?.links ?? []).flatMap(({ link, state, remedy }) =>
      remedy === undefined || state === "ok" ? [] : [`${cluster?.cluster}, ${link}: ${remedy}`],
    ),
  ];
}
