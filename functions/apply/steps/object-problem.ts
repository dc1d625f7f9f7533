import type { ObjectProblem } from "#shared/fleet/rows/sync-row.ts";
import type { Health } from "#shared/kube/health/status.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

export function problemOfObject(id: ObjectId, health: Health): ObjectProblem {
  return { object: describeObject(id), reason: health.reason ?? health.status, message: health.message };
}
