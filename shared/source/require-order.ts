import { planSteps } from "#shared/kube/apply-steps.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { applyEvents } from "#shared/kube/order-marks.ts";
import type { ByEvent } from "#shared/source/helm/both-events.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/**
 * @throws ManifestError `OrderRefused` when waves, hooks and dependencies define no order for an install or an upgrade.
 */
export function requireOrder(byEvent: ByEvent<readonly Manifest[]>): void {
  for (const event of applyEvents) {
    const manifests = byEvent[event];
    const objects = manifests.map(({ object }) => object);
    const plan = planSteps(objects, { event });
    if (!("problems" in plan)) continue;
    const [first, ...others] = plan.problems;
    const found = manifests.find(({ object }) => object === first?.object);
    if (first === undefined || found === undefined) throw new Error("an order is refused for nothing");
    const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
    throw new ManifestError(
      "OrderRefused",
      { ...found.place, object: describeObject(found.id), field: `metadata.annotations["${first.annotation}"]` },
      `${first.reason}${more}`,
    );
  }
}
