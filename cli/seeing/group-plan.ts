/** Compares the renderings of a group with the assigned ones: which objects would change, and on which clusters. */

import { assignedDigests, changedRenderings } from "#cli/seeing/changed-renderings.ts";
import { type FleetView, fleetOf } from "#cli/seeing/fleet-view.ts";
import { isApart, Renderer } from "#cli/seeing/renderer.ts";
import type { Session } from "#cli/session/session.ts";
import { desiredClusters, distinctInputs } from "#shared/fleet/forecast/desired-clusters.ts";
import { type Forecast, forecast, type TargetChange } from "#shared/fleet/forecast/forecast.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";
import { inTheSamePlace } from "#shared/kube/same-place.ts";

export interface GroupPlan {
  readonly found: Forecast;
  /** Objects before and after a change, if both are known. */
  sidesOf(change: TargetChange): readonly [readonly ManifestObject[], readonly ManifestObject[]] | undefined;
}

export async function groupPlan(session: Session, view: FleetView): Promise<GroupPlan> {
  const renderer = new Renderer(session, view);
  const desired = desiredClusters(view.desired, view.plan, fleetOf(view));
  const { distinct } = distinctInputs(desired);
  const assigned = assignedDigests(view);
  // The digest of an assigned rendering is known. Its objects are read only for a comparison.
  const made = await renderer.made(distinct.filter(({ digest }) => !assigned.has(digest)));
  const renderings = new Map([
    ...assigned,
    ...[...made.renderings].map(([input, { digest }]) => [input, digest] as const),
  ]);
  const { stages } = relationOf(view.desired).rollout;
  const facts = {
    desired,
    fleet: view.clusters,
    renderings,
    failures: made.failures,
    stages: stages.map(({ name }) => name),
  };
  const alike = forecast(facts);
  const compared = await changedRenderings(renderer, alike);
  const apart = new Set([...compared].flatMap(([digest, rendering]) => (isApart(rendering) ? [digest] : [])));
  const found = apart.size === 0 ? alike : forecast({ ...facts, apart });
  const objectsOf = (digest: string | undefined, event: ApplyEvent) => compared.get(digest ?? "")?.objects[event] ?? [];
  return {
    found,
    sidesOf({ how, before, after, had = "upgrade", event = "upgrade", apply }) {
      if (how === "leave" || how === "options" || how === "fail") return undefined;
      const [was, is] = [objectsOf(before, had), objectsOf(after, event)];
      return [inTheSamePlace(was, is, apply?.defaultNamespace), is];
    },
  };
}
