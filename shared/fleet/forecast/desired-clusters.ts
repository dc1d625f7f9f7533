/** The desired Syncs of an owner on each cluster that it selects, equal to those in a stage run's snapshot. Pure. */
import { type BuildInput, buildOf } from "#shared/fleet/rollout/cluster-inputs.ts";
import { membersOf, type PlannedOwner, relationOf, snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Plan, PlannedTemplate, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";

export interface DesiredTarget {
  readonly template: PlannedTemplate;
  /** Name of the Sync. */
  readonly sync: string;
  readonly input: TargetInput;
}

export interface DesiredCluster {
  readonly cluster: string;
  readonly stage: string;
  /** In the templates' order. */
  readonly targets: readonly DesiredTarget[];
}

/** The clusters that are selected, by name. @param fleet - with the values that count. */
export function desiredClusters(
  owner: PlannedOwner,
  plan: Plan,
  fleet: readonly Pick<FleetRow, "name" | "uid" | "labels" | "values">[],
): readonly DesiredCluster[] {
  const { namespace, type: kind, name } = owner;
  const names = plan.templates.map((template) => syncName({ namespace, kind, name }, template.name));
  return membersOf(relationOf(owner), fleet, 0).map((member) => {
    const { inputs } = snapshotTarget(member, plan);
    const targets = plan.templates.map((template, index) => ({
      template,
      sync: names[index] ?? "",
      input: inputs[index] as TargetInput,
    }));
    return { cluster: member.cluster, stage: member.stage, targets };
  });
}

/** One rendering's input, with the clusters that share it. */
export interface DistinctInput {
  readonly template: PlannedTemplate;
  readonly sync: string;
  readonly digest: string;
  readonly build: BuildInput;
  /** Indexes of the template's overrides that apply. */
  readonly overrides: readonly number[];
  readonly clusters: readonly string[];
}

export interface Inputs {
  readonly distinct: readonly DistinctInput[];
  /** Clusters that cannot be specialised, by the text of the error. */
  readonly problems: readonly { readonly template: string; readonly problem: string; readonly cluster: string }[];
  readonly disabled: readonly { readonly template: string; readonly clusters: readonly string[] }[];
}

/** Groups the desired Syncs by equal input; ordered by template, then by the first cluster that has the input. */
export function distinctInputs(clusters: readonly DesiredCluster[]): Inputs {
  const distinct = new Map<string, Omit<DistinctInput, "clusters"> & { readonly clusters: string[] }>();
  const problems: Inputs["problems"][number][] = [];
  const disabled = new Map<string, string[]>();
  for (const { cluster, targets } of clusters) {
    for (const { template, sync, input } of targets) {
      if ("problem" in input) problems.push({ template: template.name, problem: input.problem, cluster });
      else if ("disabled" in input) {
        const without = disabled.get(template.name) ?? [];
        disabled.set(template.name, without);
        without.push(cluster);
      } else {
        const key = `${template.name} ${input.digest}`;
        const known = distinct.get(key);
        if (known !== undefined) known.clusters.push(cluster);
        else {
          const { digest, overrides = [] } = input;
          const build = buildOf(template, input);
          distinct.set(key, { template, sync, digest, build, overrides, clusters: [cluster] });
        }
      }
    }
  }
  return {
    distinct: [...distinct.values()],
    problems,
    disabled: [...disabled].map(([template, without]) => ({ template, clusters: without })),
  };
}
