/** Templates that the spec drops, and that a guard keeps in the plan. Pure. */

import { canonicalJson } from "#shared/base/json.ts";
import { type KeptTemplate, type PlannedOwner, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import {
  afterChanges,
  afterRead,
  type Change,
  type GuardFacts,
  type Judgement,
  judgeChange,
  withTemplatesWithheld,
} from "#shared/fleet/rollout/guard.ts";
import { withoutPast } from "#shared/fleet/rollout/guarded-objects.ts";
import { membersOfAll } from "#shared/fleet/rollout/slots.ts";
import type { GuardState, Plan, RolloutRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface TemplateFacts {
  readonly row: PlannedOwner;
  readonly rolloutState: Pick<RolloutStateRow, "guard" | "last" | "stages">;
  /** At least the newest one. */
  readonly rollouts: ReadonlyMap<number, Pick<RolloutRow, "plan">>;
  readonly now: Date;
}

function factsOf({ row, rolloutState: { guard }, now }: TemplateFacts): GuardFacts {
  return { row, guard, now };
}

/** The newest rollout's templates that are not among these, as a change. Every member counts. */
function dropped(templates: Iterable<string>, { rolloutState, rollouts }: TemplateFacts): Change {
  const names = new Set(templates);
  const before = rollouts.get(rolloutState.last)?.plan.templates ?? [];
  const members = membersOfAll(rolloutState);
  const gone = before.map(({ name }) => name).filter((name) => !names.has(name));
  return { kind: "templates", names: gone, count: members, members };
}

function judgeSpec(facts: TemplateFacts): { readonly change: Change; readonly judgement: Judgement } {
  const change = dropped(
    relationOf(facts.row).templates.map(({ name }) => name),
    facts,
  );
  return { change, judgement: judgeChange(change, factsOf(facts)) };
}

/** The templates that stay planned as the newest rollout has them, in its order. */
export function templatesKept(facts: TemplateFacts): readonly KeptTemplate[] {
  const { change, judgement } = judgeSpec(facts);
  if (judgement.passes) return [];
  const before = facts.rollouts.get(facts.rolloutState.last)?.plan.templates ?? [];
  return before.flatMap((template, at) => (change.names.includes(template.name) ? [{ template, at }] : []));
}

/** Whether the plan may have templates that the spec has not: only then does `templatesKept` need the newest rollout. */
export function keepsTemplates({ guard }: Pick<RolloutStateRow, "guard">): boolean {
  return guard?.withheld.some(({ kind }) => kind === "templates") === true;
}

/** The guard's state now, with what is withheld of the templates. Undefined when the owner has no guard. */
export function guardNow(facts: TemplateFacts): GuardState | undefined {
  const state = afterRead(factsOf(facts));
  if (state === undefined) return undefined;
  const { judgement } = judgeSpec({ ...facts, rolloutState: { ...facts.rolloutState, guard: state } });
  const next = withTemplatesWithheld(
    withoutPast(state, facts.rolloutState),
    judgement.passes ? [] : [judgement.withheld],
  );
  return canonicalJson(next) === canonicalJson(facts.rolloutState.guard) ? facts.rolloutState.guard : next;
}

/** The guard's state after a rollout with this plan got its number. */
export function afterPlan(plan: Plan, facts: TemplateFacts): GuardState | undefined {
  const state = facts.rolloutState.guard;
  if (state === undefined || plan.deletion !== undefined) return state;
  const change = dropped(
    plan.templates.map(({ name }) => name),
    facts,
  );
  if (change.names.length === 0) return state;
  return afterChanges(state, [{ change, judgement: judgeChange(change, factsOf(facts)) }], factsOf(facts));
}
