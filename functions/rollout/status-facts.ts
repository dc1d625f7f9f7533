import type { Known } from "#functions/rollout/read-subject.ts";
import { defined } from "#shared/base/defined.ts";
import type { StatusFacts } from "#shared/fleet/rollout/subject-status.ts";

type Facts = Pick<Known, "unit" | "legs" | "contents" | "desired" | "row">;

/** What every step knows of a subject's status. */
export function statusFacts({ unit, legs, contents, desired, row }: Facts, now: Date): StatusFacts {
  const asked = row.operations.reconcile?.number;
  const isAnswered = asked === unit.handledReconcile && unit.looking === undefined;
  return {
    now,
    unit,
    legs,
    missing: unit.missing ?? [],
    unreadable: unit.unreadable ?? [],
    ...defined({ revision: contents.get(unit.last)?.revision }),
    ...(desired.ok ? {} : { waiting: desired }),
    ...(asked === undefined ? {} : { reconcile: { number: asked, answered: isAnswered } }),
  };
}
