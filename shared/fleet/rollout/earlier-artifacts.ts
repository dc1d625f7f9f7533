/** Sources of a plan whose used files did not change stay pinned to the artifact of the rollout before. Pure. */
import { defined } from "#shared/base/defined.ts";
import { pinnedSources } from "#shared/fleet/rollout/pinned-sources.ts";
import type { PinnedSource, Plan, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * The plan with earlier artifacts where the part that a template uses is the same, so that the inputs of its renderings
 * are those that are rendered already. Its hash is the same, because it covers the used parts.
 * @param lost - digests of earlier artifacts that are not used.
 */
export function withEarlierArtifacts(plan: Plan, before: Plan | undefined, lost?: ReadonlySet<string>): Plan {
  const earlier = new Map<string, PinnedSource>();
  for (const pin of before === undefined ? [] : pinnedSources(before)) {
    if (pin.counts !== undefined && lost?.has(pin.artifactDigest) !== true) earlier.set(placeOf(pin), pin);
  }
  const pinned = <Pin extends PinnedSource>(pin: Pin): Pin => {
    const found = pin.counts === undefined ? undefined : earlier.get(placeOf(pin));
    if (found === undefined || found.artifactDigest === pin.artifactDigest) return pin;
    return { ...pin, artifactDigest: found.artifactDigest, artifactRevision: artifactRevisionOf(found) };
  };
  const templates = plan.templates.map(
    (template): PlannedTemplate => ({ ...pinned(template), ...defined({ besides: template.besides?.map(pinned) }) }),
  );
  return { ...plan, templates };
}

/** The revision that has the artifact of a pin. */
export function artifactRevisionOf({ revision, artifactRevision = revision }: PinnedSource): string {
  return artifactRevision;
}

function placeOf({ source, counts }: PinnedSource): string {
  return `${source} ${counts}`;
}
