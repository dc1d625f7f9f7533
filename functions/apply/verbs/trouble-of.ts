import type { Health } from "#shared/domain/health/status.ts";
import { describeObject, type ObjectId } from "#shared/domain/object-id.ts";
import type { ObjectTrouble } from "#shared/domain/rows/sync-row.ts";

export function troubleOf(id: ObjectId, health: Health): ObjectTrouble {
  return { object: describeObject(id), reason: health.reason ?? health.status, message: health.message };
}
