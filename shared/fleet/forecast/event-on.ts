import type { MemberSync } from "#shared/fleet/api/fleet-member.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";

/**
 * Whether a rendering is an install or an upgrade for a cluster, as far as its rows know. The rendering that was applied
 * keeps its event. Another one is an install when none was ever applied completely (decision 36). When rows were forgotten
 * but the cluster still has the objects, the worker that finds them upgrades instead.
 */
export function eventOn(sync: Pick<MemberSync, "applied"> | undefined, renderDigest: string): ApplyEvent {
  const applied = sync?.applied;
  if (applied === undefined) return "install";
  return applied.renderDigest === renderDigest ? (applied.event ?? "upgrade") : "upgrade";
}
