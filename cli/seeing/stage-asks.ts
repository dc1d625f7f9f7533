/** The hashes of a plan that people can approve in advance. */
import { type FleetView, fleetOf } from "#cli/seeing/fleet-view.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import type { RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { askedPlans, type PlanBase, type StageAsks } from "#shared/fleet/forecast/asked-plans.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";

/** A plan of one cluster, or of a part of the fleet, has another hash than the stage will ask about. */
export async function stageAsks(
  session: Session,
  view: FleetView,
  { cluster }: { readonly cluster?: string },
): Promise<readonly StageAsks[]> {
  const isAsking = relationOf(view.desired).rollout.stages.some(({ before }) => before !== undefined);
  if (!isAsking || cluster !== undefined || view.unreadable.length > 0) return [];
  const base = view.present === undefined ? none : await baseOf(session, view);
  return askedPlans(view.desired, { plan: view.plan, fleet: fleetOf(view), base });
}

const none: PlanBase = { templates: [], current: new Map() };

async function baseOf(session: Session, { owner: { kind, name, namespace } }: FleetView): Promise<PlanBase> {
  const path = `${pathOfObject({ kind, name }, namespace)}/rollout`;
  try {
    const { status } = await session.api.call<RolloutOverview>({ method: "GET", path });
    const current = status.stages.flatMap(({ name: stage, identity }) =>
      identity === undefined ? [] : [[stage, identity] as const],
    );
    return { templates: status.templates, current: new Map(current) };
  } catch (error) {
    // It has no rollout yet.
    if (isNotFound(error)) return none;
    throw error;
  }
}
