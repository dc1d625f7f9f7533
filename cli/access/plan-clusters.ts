/** Writes Cluster documents for EKS clusters. A template makes their names, and two clusters never share a name. */
import type { FoundCluster } from "#cli/access/eks-accounts.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import { checkNameTemplate, clusterNameOf } from "#shared/fleet/kinds/cluster-name.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";

export interface PlannedCluster {
  readonly name: string;
  readonly eks: EksArn;
  /** Absent: Starling's own role enters the cluster. */
  readonly roleName?: string;
  /** The zone whose workers reach it. */
  readonly zone: string;
  readonly document: JsonObject;
}

export interface ClusterPlanOptions {
  /** Template of names, such as `{{ eks.name }}-{{ eks.region }}`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `starling.<account>.<region>` */
  readonly installationId: string;
  /** One role for all clusters, instead of a role for each in the installation's path. */
  readonly role?: string;
  /** The zone of all clusters. Absent: each cluster stays in the zone that it has. */
  readonly zone?: string;
  /** The registered clusters. */
  readonly known: readonly ClusterObject[];
}

const maxRoleName = 64;
const shorter = "starling cluster add ... --name '{{ eks.name }}-{{ eks.accountId }}-{{ eks.region }}'";

/** @throws CliFailure with each cluster that cannot have its name, and why. */
export function planClusters(
  clusters: readonly FoundCluster[],
  options: ClusterPlanOptions,
): readonly PlannedCluster[] {
  const problem = checkNameTemplate(options.name);
  if (problem !== undefined) throw usageFailure(`--name ${problem}`, shorter);
  const problems: string[] = [];
  const planned = clusters.flatMap((eks): readonly PlannedCluster[] => {
    const named = clusterNameOf(options.name, eks);
    if (!named.ok) problems.push(`${eks.arn}: ${named.message.replace("shorten spec.name", "give another --name")}`);
    return named.ok ? [plan(named.name, eks, options)] : [];
  });
  problems.push(...collisions(planned, options.known), ...longRoles(planned));
  const renamed = registeredElsewhere(planned, options.known);
  const lines = [...problems, ...renamed.map(({ line }) => line)];
  if (lines.length === 0) return planned;
  const message = `${lines.length} of ${clusters.length} clusters cannot be added; nothing was written`;
  const [first] = renamed;
  const next =
    problems.length > 0 || first === undefined ? shorter : `starling get cluster/${first.registered} -o yaml > FILE`;
  throw new CliFailure(message, { exit: "wrongInput", lines, next });
}

function plan(name: string, eks: FoundCluster, options: ClusterPlanOptions): PlannedCluster {
  const [installation = "", account] = options.installationId.split(".");
  const own = eks.accountId === account && options.role === undefined;
  const roleName = own ? undefined : (options.role ?? `${installation}/clusters/${name}`);
  const before = options.known.find(({ metadata }) => metadata.name === name);
  const labels = { ...before?.metadata.labels, ...options.labels };
  const { annotations } = before?.metadata ?? {};
  const { values, eks: known, access } = before?.spec ?? {};
  const zone = options.zone ?? access?.zone;
  const endpointOverride = known?.arn === eks.arn ? known.endpointOverride : undefined;
  const reached = { ...(roleName === undefined ? {} : { role: { name: roleName } }), ...defined({ zone }) };
  // A ClusterDiscovery keeps the version of its clusters current. A version in the document would outlive an upgrade.
  const found = before?.status.discovered === undefined ? eks.kubeVersion : undefined;
  const kubeVersion = found ?? before?.spec.kubeVersion;
  return {
    name,
    eks,
    ...(roleName === undefined ? {} : { roleName }),
    zone: zone ?? zoneOfObject(before),
    document: {
      apiVersion: ourApiVersion,
      kind: "Cluster",
      metadata: {
        name,
        ...(Object.keys(labels).length === 0 ? {} : { labels }),
        ...(annotations === undefined || Object.keys(annotations).length === 0
          ? {}
          : { annotations: { ...annotations } }),
      },
      spec: {
        eks: { arn: eks.arn, ...(endpointOverride === undefined ? {} : { endpointOverride: { ...endpointOverride } }) },
        ...(Object.keys(reached).length === 0 ? {} : { access: reached }),
        ...defined({ kubeVersion }),
        ...(values === undefined ? {} : { values: { ...values } }),
      },
    },
  };
}

/** A cluster that is not registered is in `home`. */
function zoneOfObject(object: ClusterObject | undefined): string {
  if (object === undefined) return homeZone;
  const { spec, status } = object;
  return zoneOf({ spec, ...defined({ discovered: status.discovered }) });
}

/** Clusters that are registered under another name. */
function registeredElsewhere(planned: readonly PlannedCluster[], known: readonly ClusterObject[]) {
  return planned.flatMap(({ name, eks }) => {
    const registered = known.find(({ spec }) => spec.eks?.arn === eks.arn)?.metadata.name;
    if (registered === undefined || registered === name) return [];
    const line = `${eks.arn} is already registered as Cluster ${registered}; a second name is refused: ${name}; to change the Cluster, edit and apply it`;
    return [{ registered, line }];
  });
}

/** Names that two of the planned clusters or a registered one would share. */
function collisions(planned: readonly PlannedCluster[], known: readonly ClusterObject[]): readonly string[] {
  const byName = Map.groupBy(planned, ({ name }) => name);
  const twice = [...byName].flatMap(([name, each]) => {
    if (each.length < 2) return [];
    return [`${each.map(({ eks }) => eks.arn).join(" and ")} would both have the name ${name}`];
  });
  const taken = planned.flatMap(({ name, eks }) => {
    const [same, other] = [
      known.find(({ spec }) => spec.eks?.arn === eks.arn),
      known.find(({ metadata }) => metadata.name === name),
    ];
    if (other === undefined || same !== undefined) return [];
    return [
      `${eks.arn} would have the name ${name}, which ${other.spec.eks?.arn ?? other.spec.endpoint?.server} already has`,
    ];
  });
  return [...twice, ...taken];
}

function longRoles(planned: readonly PlannedCluster[]): readonly string[] {
  return planned.flatMap(({ name, roleName }) => {
    const last = roleName?.split("/").at(-1) ?? "";
    if (last.length <= maxRoleName) return [];
    return [
      `${name}: the role name ${last} has ${last.length} characters; at most ${maxRoleName} are allowed; set --role`,
    ];
  });
}
