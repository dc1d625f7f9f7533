/** The assigned renderings, and those that a plan compares. */
import type { FleetView } from "#cli/seeing/fleet-view.ts";
import type { ReadRendering, Renderer } from "#cli/seeing/renderer.ts";
import type { Forecast } from "#shared/fleet/forecast/forecast.ts";

/** Digest of the assigned rendering by digest of its input. */
export function assignedDigests({ clusters }: Pick<FleetView, "clusters">): ReadonlyMap<string, string> {
  const assigned = new Map<string, string>();
  for (const { syncs } of clusters) {
    for (const { input, renderDigest } of syncs) {
      if (input !== undefined && renderDigest !== undefined) assigned.set(input, renderDigest);
    }
  }
  return assigned;
}

/** The renderings on both sides of each change, by their digests. */
export async function changedRenderings(
  renderer: Renderer,
  { differences }: Pick<Forecast, "differences">,
): Promise<ReadonlyMap<string, ReadRendering>> {
  const changes = differences.flatMap((difference) => difference.changes);
  const compared = changes.filter(({ how }) => how === "install" || how === "change" || how === "delete");
  const digests = [...new Set(compared.flatMap(({ before, after }) => [before ?? [], after ?? []].flat()))];
  const made = renderer.known();
  const stored = await renderer.stored(digests.filter((digest) => !made.has(digest)));
  return new Map([...stored, ...made]);
}
