/** The hash that people approve: everything that a stage run would do, and nothing that only names a commit. Pure. */

import { digestOf, hexOf } from "#shared/base/digest.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Plan, SnapshotTarget, StageGates, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";

export interface Planned {
  readonly owner: Owner;
  readonly stage: string;
  readonly targets: readonly SnapshotTarget[];
  readonly plan: Pick<Plan, "planHash" | "templates">;
  /** Templates that clusters may have. Those that the plan lacks are deleted. */
  readonly templates: readonly string[];
  readonly gates: StageGates;
  /** The identity of the stage's current rollout; undefined without one. */
  readonly current: string | undefined;
}

/** Number of hexadecimal digits: enough that nobody finds another plan with the same hash. */
const digits = 32;

/**
 * Equal hashes mean equal changes: the same objects for the same clusters, under the same gates, from the same current
 * rollout. The plan's own hash covers the files and options of its templates.
 */
export function planHashOf({ owner, stage, targets, plan, templates, gates, current }: Planned): string {
  const kept = new Set(plan.templates.map(({ name }) => name));
  const removed = templates.filter((name) => !kept.has(name)).toSorted(compareText);
  const clusters = targets
    .map(({ cluster, uid, inputs }) => ({ cluster, uid, inputs: inputs.map(ownInput) }))
    .toSorted((a, b) => compareText(a.cluster, b.cluster));
  const plans = { owner, stage, clusters, plan: plan.planHash, removed, gates, current: current ?? "" };
  return hexOf(digestOf(plans)).slice(0, digits);
}

/** The part of an input that depends on its cluster. Its digest also names the commit's other files. */
function ownInput(input: TargetInput): object {
  if (!("digest" in input)) return input;
  const { digest: _digest, ...own } = input;
  return own;
}
