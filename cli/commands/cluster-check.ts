import { explained } from "#cli/access/denied-role.ts";
import { EksAccounts } from "#cli/access/eks-accounts.ts";
import { requireReadable } from "#cli/format/require-readable.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { awaitCheck, patienceSeconds } from "#cli/seeing/await-check.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import { usageFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";
import { type CheckResult, type ClusterCheck, type LinkFinding, resultOf } from "#shared/fleet/cluster-links.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

export interface CheckOptions {
  readonly all?: boolean;
  readonly selector?: string;
  /** Read the trust policy of roles that refuse Starling, with the caller's own rights. */
  readonly asMe?: boolean;
  readonly assumeRole?: string;
}

interface Asked {
  readonly id: string;
  /** Absent from an API that knows no zones. */
  readonly zone?: string;
}

/** One cluster of the answer, in the form of `-o json`. */
export interface CheckedCluster {
  readonly cluster: string;
  readonly result: CheckResult;
  readonly checkedAt?: string;
  readonly links: readonly LinkFinding[];
}

const allOfThem = 100_000;
const concurrency = 16;

/** Has the apply function check the access to each cluster link by link. The clusters are checked side by side. */
export async function clusterCheck(
  session: Session,
  names: readonly string[],
  options: CheckOptions,
): Promise<ExitReason> {
  const ways = [names.length > 0, options.all === true, options.selector !== undefined].filter(Boolean).length;
  if (ways !== 1) {
    const given =
      ways === 0 ? "no cluster is given" : "more than one of names, -l and --all is given; expected one of them";
    throw usageFailure(given, "starling cluster check NAME..., -l SELECTOR or --all");
  }
  const clusters = names.length > 0 ? [...new Set(names)] : await clustersOf(session, options);
  const checked = new Map<string, CheckedCluster>();
  const accounts = options.asMe === true ? new EksAccounts(session, options) : undefined;
  await runConcurrently(clusters, concurrency, async (cluster) => {
    const found = await checkOne(session, cluster);
    checked.set(cluster, accounts === undefined ? found : await followedInto(session, found, accounts));
  });
  const items = clusters.flatMap((cluster) => checked.get(cluster) ?? []);
  print(session, items);
  if (items.some(({ result }) => result === "broken")) return "no";
  return items.some(({ result }) => result === "unknown") ? "unknown" : "done";
}

async function clustersOf(session: Session, { selector }: CheckOptions): Promise<readonly string[]> {
  const query = selector === undefined ? {} : { query: { labelSelector: selector } };
  const { items } = await readList<ClusterObject>(session, { path: "/v1/clusters", limit: allOfThem, ...query });
  return items.map(({ metadata }) => metadata.name);
}

/** The check of one cluster by a worker of its zone. */
export async function checkOne(session: Session, cluster: string): Promise<CheckedCluster> {
  const path = `${pathOfObject({ kind: "Cluster", name: cluster }, "")}/check`;
  const { asked, stored, isAnswered } = await awaitCheck<Asked, { readonly answer?: ClusterCheck }>(session, path);
  if (!isAnswered || stored.answer === undefined) return untaken(cluster, asked.zone);
  const { at, links } = stored.answer;
  return { cluster, result: resultOf(links), checkedAt: at, links };
}

/** Replaces a refused role's finding by a narrower one. The link stays broken. */
async function followedInto(session: Session, found: CheckedCluster, accounts: EksAccounts): Promise<CheckedCluster> {
  const finding = found.links.find(({ link, code }) => link === "role" && code === "RoleDenied");
  if (finding === undefined) return found;
  const path = pathOfObject({ kind: "Cluster", name: found.cluster }, "");
  const { externalId = "" } = requireReadable(await session.api.call<ClusterObject>({ method: "GET", path })).status;
  const narrowed = await explained({ finding, externalId }, accounts);
  if (narrowed.link === "role")
    return { ...found, links: found.links.map((one) => (one === finding ? narrowed : one)) };
  const links = found.links.map((one): LinkFinding => {
    if (one === finding) return { link: "role", state: "ok", ...defined({ value: finding.value }) };
    return one.link === narrowed.link ? narrowed : one;
  });
  return { ...found, links };
}

/** The finding for a check that no worker of the cluster's zone ran in time. */
function untaken(cluster: string, zone = homeZone): CheckedCluster {
  const message = `no worker of the zone ${zone} has run the check within ${patienceSeconds} s`;
  const remedy = `check the oldest message, the dead letters and the errors of the zone's function apply on the dashboard: \`starling doctor\`${networkHint(zone)}`;
  const finding = { link: "cluster", state: "unknown", code: "NotTaken", message, remedy } as const;
  return { cluster, result: "unknown", links: [finding] };
}

/** A function that has no way to the table, the queues and the blobs cannot answer. */
function networkHint(zone: string): string {
  return zone === homeZone
    ? ""
    : "; in subnets without a NAT gateway, the zone needs endpoints for DynamoDB, S3, SQS, STS and EKS";
}

function print(session: Session, items: readonly CheckedCluster[]): void {
  const { output, headers } = session.options;
  if (isData(output)) {
    session.io.out(serialise({ kind: "ClusterCheckList", metadata: {}, items }, output));
    return;
  }
  if (output === "name") {
    for (const { cluster, result } of items) session.io.out(`cluster/${cluster} ${result}\n`);
    return;
  }
  const sorted = [...items].sort((a, b) => rank(a) - rank(b));
  const rows = sorted.flatMap((item) => linkRows(item, output === "wide"));
  session.io.out(
    formatTable(
      { columns: ["CLUSTER", "LINK", "STATE", "VALUE", ""], rows },
      { headers: headers === false ? "hide" : "show" },
    ),
  );
  for (const { cluster, links } of sorted) {
    for (const { link, state, remedy } of links) {
      if (remedy !== undefined && state !== "ok") session.note(`${cluster}, ${link}: ${remedy}`);
    }
  }
}

function rank({ result }: CheckedCluster): number {
  return ["broken", "unknown", "limited", "ok"].indexOf(result);
}

/** The links that are not ok, or one line for a cluster where all are ok. `-o wide` prints each link. */
export function linkRows({ cluster, result, links }: CheckedCluster, isWide: boolean): readonly (readonly string[])[] {
  const shown = isWide ? links : links.filter(({ state }) => state !== "ok" && state !== "skipped");
  if (shown.length === 0) return [[cluster, "all", result, `${links.length} links`, ""]];
  return shown.map(({ link, state, value = "-", code, message = "" }) => {
    const said = code === undefined ? message : `${code}: ${message}`;
    return [cluster, link, state, value, said];
  });
}
