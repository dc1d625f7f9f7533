/** How each cluster would change if a plan were rolled out now; clusters with the same difference are together. Pure. */
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { FleetMember, MemberSync } from "#shared/fleet/api/fleet-member.ts";
import type { DesiredCluster, DesiredTarget } from "#shared/fleet/forecast/desired-clusters.ts";
import { eventOn } from "#shared/fleet/forecast/event-on.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { overridden } from "#shared/fleet/rollout/cluster-inputs.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";

export interface ForecastFacts {
  /** The selected clusters. */
  readonly desired: readonly DesiredCluster[];
  /** Every registered cluster, with its assignments of the owner. */
  readonly fleet: readonly (Pick<FleetMember, "syncs"> & { readonly name: string })[];
  /** Digest of the rendering, by digest of its input. */
  readonly renderings: ReadonlyMap<string, string>;
  /** Why there is no rendering, by digest of the input. */
  readonly failures: ReadonlyMap<string, string>;
  /** Names of the stages, in order. */
  readonly stages: readonly string[];
  /** Digests of renderings whose objects differ between an install and an upgrade. */
  readonly apart?: ReadonlySet<string>;
}

/**
 * - `install`: the cluster has nothing of it yet; `change`: another rendering; `options`: only other options of
 *   `apply`;
 * - `delete`: the template is removed, with its objects; `leave`: the cluster no longer gets it, its objects stay;
 * - `fail`: there would be no rendering.
 */
export interface TargetChange {
  readonly sync: string;
  readonly how: "install" | "change" | "options" | "delete" | "leave" | "fail";
  /** Digests of renderings. */
  readonly before?: string;
  readonly after?: string;
  /** The event whose objects `before` and `after` have, when a rendering has several. */
  readonly had?: ApplyEvent;
  readonly event?: ApplyEvent;
  readonly apply?: ApplyOptions;
  readonly reason?: string;
}

/** A difference that is equal on all of these clusters. */
export interface ClusterDifference {
  readonly clusters: readonly string[];
  readonly changes: readonly TargetChange[];
}

export interface Forecast {
  /** Digest of what would change, and where: equal for equal plans, whatever their sources. */
  readonly hash: string;
  readonly selected: number;
  readonly unchanged: number;
  /** Number of Syncs on clusters that get another rendering. */
  readonly applies: { readonly installs: number; readonly upgrades: number };
  /** Differences of the most clusters first. */
  readonly differences: readonly ClusterDifference[];
  readonly stages: readonly { readonly name: string; readonly clusters: number; readonly changing: number }[];
}

export function forecast(facts: ForecastFacts): Forecast {
  const before = new Map(facts.fleet.map(({ name, syncs }) => [name, syncs]));
  const found = new Map<string, { readonly clusters: string[]; readonly changes: readonly TargetChange[] }>();
  const stages = new Map(facts.stages.map((name) => [name, { name, clusters: 0, changing: 0 }]));
  const note = (cluster: string, changes: readonly TargetChange[]) => {
    if (changes.length === 0) return;
    const key = canonicalJson(changes);
    const known = found.get(key) ?? { clusters: [], changes };
    found.set(key, known);
    known.clusters.push(cluster);
  };
  let unchanged = 0;
  for (const desired of facts.desired) {
    const changes = changesOf(desired, before.get(desired.cluster) ?? [], facts);
    note(desired.cluster, changes);
    if (changes.length === 0) unchanged++;
    const stage = stages.get(desired.stage);
    if (stage === undefined) continue;
    const changing = stage.changing + (changes.length === 0 ? 0 : 1);
    stages.set(desired.stage, { ...stage, clusters: stage.clusters + 1, changing });
  }
  const selected = new Set(facts.desired.map(({ cluster }) => cluster));
  for (const { name, syncs } of facts.fleet) {
    if (!selected.has(name))
      note(
        name,
        syncs.map((sync) => leaving(sync, "leave")),
      );
  }
  const differences = [...found.values()]
    .map(({ clusters, changes }) => ({ clusters: clusters.sort(compareText), changes }))
    .sort((a, b) => b.clusters.length - a.clusters.length || compareText(a.clusters[0] ?? "", b.clusters[0] ?? ""));
  return {
    hash: digestOf(differences),
    selected: facts.desired.length,
    unchanged,
    applies: appliesOf(differences, before),
    differences,
    stages: [...stages.values()],
  };
}

function appliesOf(
  differences: readonly ClusterDifference[],
  before: ReadonlyMap<string, readonly MemberSync[]>,
): Forecast["applies"] {
  const applies = { installs: 0, upgrades: 0 };
  for (const { clusters, changes } of differences) {
    for (const { sync, after } of changes.filter(({ how }) => how === "install" || how === "change")) {
      for (const cluster of clusters) {
        const had = before.get(cluster)?.find(({ name }) => name === sync);
        applies[eventOn(had, after ?? "") === "install" ? "installs" : "upgrades"]++;
      }
    }
  }
  return applies;
}

function changesOf(
  { targets }: DesiredCluster,
  syncs: readonly MemberSync[],
  facts: ForecastFacts,
): readonly TargetChange[] {
  const names = new Set(targets.map(({ sync }) => sync));
  return [
    ...targets.flatMap(
      (target) =>
        changeOf(
          target,
          syncs.find(({ name }) => name === target.sync),
          facts,
        ) ?? [],
    ),
    ...syncs
      .filter(({ name }) => !names.has(name))
      .map((sync) => ({ ...leaving(sync, "delete"), ...hadOf(sync, sync.renderDigest, facts) })),
  ];
}

function changeOf(
  { sync, input, template }: DesiredTarget,
  before: MemberSync | undefined,
  facts: ForecastFacts,
): TargetChange | undefined {
  const { renderings, failures, apart } = facts;
  if ("disabled" in input) return before && leaving(before, "leave");
  const had = before?.action === "apply" ? before : undefined;
  const old = had?.renderDigest === undefined ? {} : { before: had.renderDigest };
  if ("problem" in input) return { sync, how: "fail", ...old, reason: input.problem };
  const after = renderings.get(input.digest);
  if (after === undefined) return { sync, how: "fail", ...old, reason: failures.get(input.digest) ?? "no rendering" };
  const { apply } = overridden(template, input.overrides);
  const event = apart?.has(after) === true ? { event: eventOn(before, after) } : {};
  if (had === undefined) return { sync, how: "install", after, ...event, apply };
  if (had.renderDigest !== after)
    return { sync, how: "change", ...old, after, ...hadOf(had, had.renderDigest, facts), ...event, apply };
  return canonicalJson(had.apply) === canonicalJson(apply) ? undefined : { sync, how: "options", ...old, after, apply };
}

function hadOf(sync: MemberSync, digest: string | undefined, { apart }: ForecastFacts): Pick<TargetChange, "had"> {
  return digest !== undefined && apart?.has(digest) === true ? { had: eventOn(sync, digest) } : {};
}

function leaving({ name, renderDigest }: MemberSync, how: "leave" | "delete"): TargetChange {
  return { sync: name, how, ...(renderDigest === undefined ? {} : { before: renderDigest }) };
}
