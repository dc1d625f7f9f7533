import type { MemberSync } from "#shared/fleet/api/fleet-member.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";

/**
 * What the objects of a rendering are to a cluster, as far as its rows tell: what it holds stays what it was, and what comes
 * is an install where nothing was ever applied whole (decision 36). A cluster that has its objects still, of rows that were
 * forgotten, is upgraded by the worker that finds them.
 */
export function eventOn(sync: Pick<MemberSync, "applied"> | undefined, renderDigest: string): ApplyEvent {
  const applied = sync?.applied;
  if (applied === undefined) return "install";
  return applied.renderDigest === renderDigest ? (applied.event ?? "upgrade") : "upgrade";
}
