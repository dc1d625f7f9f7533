/** The hash that people approve: everything that a stage run would do, and nothing that only names a commit. Pure. */

import { digestOf, hexOf } from "#shared/base/digest.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type {
  AskedPlan,
  Plan,
  PlanParts,
  SnapshotTarget,
  StageGates,
  TargetInput,
} from "#shared/fleet/rows/rollout-rows.ts";

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
export function planHashOf(planned: Planned): string {
  const { owner, stage, plan, gates, current } = planned;
  const clusters = planned.targets
    .map(({ cluster, uid, inputs }) => ({ cluster, uid, inputs: inputs.map(ownInput) }))
    .toSorted((a, b) => compareText(a.cluster, b.cluster));
  const removed = removedBy(planned);
  const plans = { owner, stage, clusters, plan: plan.planHash, removed, gates, current: current ?? "" };
  return hexOf(digestOf(plans)).slice(0, digits);
}

/** The hash, and digests of what it consists of. */
export function askedPlan(planned: Planned): AskedPlan {
  const { targets, plan, gates, current } = planned;
  const sorted = targets.toSorted((a, b) => compareText(a.cluster, b.cluster));
  const parts = {
    size: targets.length,
    clusters: shortDigest(sorted.map(({ cluster, uid }) => [cluster, uid])),
    inputs: shortDigest(sorted.map(({ inputs }) => inputs.map(ownInput))),
    files: shortDigest(plan.planHash),
    removed: shortDigest(removedBy(planned)),
    gates: shortDigest(gates),
    current: shortDigest(current ?? ""),
  };
  return { planHash: planHashOf(planned), parts };
}

/** The differences of a plan from one that was approved, such as `other clusters (2 before, 3 now)`. */
export function differenceText(before: PlanParts, now: PlanParts): string {
  // Other clusters have other inputs as well.
  const isSameClusters = before.clusters === now.clusters;
  const differences = [
    isSameClusters ? "" : `other clusters (${before.size} before, ${now.size} now)`,
    isSameClusters && before.inputs !== now.inputs ? "other values or options of clusters" : "",
    before.files === now.files ? "" : "other files or options",
    before.removed === now.removed ? "" : "other templates that are deleted",
    before.gates === now.gates ? "" : "other gates",
    before.current === now.current ? "" : "another current rollout of its stage",
  ];
  return differences.filter((text) => text !== "").join(", ");
}

function removedBy({ plan, templates }: Planned): readonly string[] {
  const kept = new Set(plan.templates.map(({ name }) => name));
  return templates.filter((name) => !kept.has(name)).toSorted(compareText);
}

function shortDigest(part: unknown): string {
  return hexOf(digestOf(part)).slice(0, 16);
}

/** The part of an input that depends on its cluster. Its digest also names the commit's other files. */
function ownInput(input: TargetInput): object {
  if (!("digest" in input)) return input;
  const { digest: _digest, ...own } = input;
  return own;
}
