import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { isThere } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { youngSince } from "#shared/fleet/blob-life.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The artifacts of a rollout, for as long as its row exists. */
export async function renewArtifacts(
  rollouts: readonly Pick<RolloutRow, "plan">[],
  { blobs, clock }: Pick<PlannerPorts, "blobs" | "clock">,
): Promise<void> {
  const pins = rollouts.flatMap(({ plan }) => plan.templates.flatMap((one) => [one, ...(one.besides ?? [])]));
  const before = youngSince(clock.now());
  for (const digest of new Set(pins.map(({ artifactDigest }) => artifactDigest)))
    await isThere(blobs.renew(blobKeys.artifact(digest), before));
}
