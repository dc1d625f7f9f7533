import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";

/** Operations that the version before does not know: its planner would act against them. */
const newOperations = ["hold"] as const satisfies readonly (keyof Operations)[];

/** The schema that an owner's row needs, so that no function acts on it that does not know its operations. */
export function neededSchema(operations: Operations): number {
  return newOperations.some((name) => operations[name] !== undefined) ? newestRowSchema : rowSchema;
}
