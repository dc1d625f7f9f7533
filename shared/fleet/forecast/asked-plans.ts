/** The hashes that stages will ask people to approve, if a plan is rolled out. Pure. */
import { defined } from "#shared/base/defined.ts";
import { membersOf, type PlannedOwner, relationOf, snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { planHashOf } from "#shared/fleet/rollout/plan-hash.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Plan } from "#shared/fleet/rows/rollout-rows.ts";

/** The facts of the planner about an owner. */
export interface PlanBase {
  /** Templates that clusters may have. */
  readonly templates: readonly string[];
  /** Identity of the current rollout, by stage; a stage without one is absent. */
  readonly current: ReadonlyMap<string, string>;
}

export interface StageAsks {
  readonly stage: string;
  /** Absent: a cluster of the stage is not registered, so that it has no uid yet. */
  readonly plan?: string;
  readonly clusters: number;
  readonly count: number;
  readonly by: readonly string[];
}

/** @param fleet - every cluster, with the values that count. */
export function askedPlans(
  desired: PlannedOwner,
  {
    plan,
    fleet,
    base,
  }: {
    readonly plan: Plan;
    readonly fleet: readonly Pick<FleetRow, "name" | "uid" | "labels" | "values">[];
    readonly base: PlanBase;
  },
): readonly StageAsks[] {
  const { namespace, type: kind, name } = desired;
  const relation = relationOf(desired);
  const members = membersOf(relation, fleet, 0);
  return relation.rollout.stages.flatMap(({ name: stage, before, after }) => {
    const terms = before?.[0]?.approval;
    const own = members.filter((member) => member.stage === stage);
    if (terms === undefined || own.length === 0 || plan.deletion !== undefined) return [];
    const hash = planHashOf({
      owner: { namespace, kind, name },
      stage,
      targets: own.map((member) => snapshotTarget(member, plan)),
      plan,
      templates: base.templates,
      gates: defined({ before, after }),
      current: base.current.get(stage),
    });
    const { count, by } = terms;
    const isKnown = own.every(({ uid }) => uid !== "");
    return [{ stage, ...(isKnown ? { plan: hash } : {}), clusters: own.length, count, by }];
  });
}
