/** Makes the drift of a row: the number of objects, their names, the changed fields and their managers. */

import type { StatedProblem } from "#shared/fleet/rows/stated-reason.ts";
import { type Drift, maxProblems, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { isDrifted } from "#shared/fleet/sync/conditions.ts";
import type { DriftedObject } from "#shared/kube/engine/detect-drift.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import { undoing } from "#shared/kube/undone-fields.ts";

export interface DriftSeen {
  readonly drifted: readonly DriftedObject[];
  readonly at: Date;
  readonly corrected: boolean;
  /** The applied rendering; undefined when it is lost, and then no fields are named. */
  readonly rendering: readonly ManifestObject[] | undefined;
}

/** Drift that stays as it was found is reported once. Fields are named, their values never. */
export function driftFound({ desired, observed }: Pick<SyncRow, "desired" | "observed">, seen: DriftSeen): Drift {
  const { drifted, at, corrected, rendering = [] } = seen;
  const before = observed?.attempt === desired.attempt && isDrifted(observed) ? observed.drift : undefined;
  if (!corrected && before?.corrected === false && before.objects === drifted.length) return before;
  const manifests = new Map(
    rendering.flatMap((manifest) =>
      placesOf(objectIdOf(manifest), desired.apply.defaultNamespace).map((id) => [objectIdKey(id), manifest] as const),
    ),
  );
  const named = drifted
    .slice(0, maxProblems)
    .map((object) => problemOfObject(object, manifests.get(objectIdKey(object.id))));
  return { at: at.toISOString(), objects: drifted.length, corrected, named };
}

function problemOfObject(found: DriftedObject, manifest: ManifestObject | undefined): StatedProblem {
  const object = describeObject(found.id);
  const { how, live, lastWriter } = found;
  if (how === "missing") return { object, reason: "Missing", message: "it was deleted, or its label was removed" };
  if (how === "replaced") return { object, reason: "Replaced", message: "another object has its name" };
  if (how === "terminating") return { object, reason: "Terminating", message: "it is being deleted" };
  if (manifest === undefined || live === undefined) {
    return { object, reason: "Changed", message: `last written by ${lastWriter ?? "somebody"}` };
  }
  const { by, fields } = undoing(manifest, live);
  return { object, reason: "Changed", message: `${fields}, by ${by}` };
}
