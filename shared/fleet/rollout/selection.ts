/** The selection that a list of members was made from. Pure. */

import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { type Member, type Relation, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The fleet or the selection changed since the list of members was made, or a cluster could not be read then. */
export function mayHaveOtherMembers(known: Known): boolean {
  const { by, fleet } = selectedNow(known);
  const { selected } = known.rolloutState;
  return selected?.by !== by || selected.fleet !== fleet || (selected.unread ?? []).length > 0;
}

export function selectedNow({ row, fleetVersion }: Known): NonNullable<RolloutStateRow["selected"]> {
  const relation = relationOf(row);
  return { by: selectionOf(relation, stageNames(relation)), fleet: fleetVersion };
}

/** @param names - names of the stages, in order. */
function selectionOf({ clusters, rollout }: Relation, names: readonly string[]): string {
  const stages = rollout.stages.map((stage, index) => ({ name: names[index], clusters: stage.clusters }));
  return digestOf({ clusters, stages });
}

export function stageNames({ rollout }: Relation): readonly string[] {
  return rollout.stages.map(({ name }) => name);
}

/**
 * Maps old names to new ones when only names of stages changed, and no stage had one of the new names: then they are
 * the same stages. After any other change, a stage is known by its name.
 */
export function renamedStages({ rolloutState, row }: Known): ReadonlyMap<string, string> {
  const relation = relationOf(row);
  const [before, names] = [rolloutState.stages.map(({ name }) => name), stageNames(relation)];
  const renamed = before.flatMap((name, index) => (names[index] === name ? [] : [[name, names[index] ?? ""] as const]));
  const areNew = renamed.every(([, name]) => !before.includes(name));
  return new Map(areNew && rolloutState.selected?.by === selectionOf(relation, before) ? renamed : []);
}

/** Nothing that depends on members would change: the changed clusters are no members, and were none. */
export function isSame(
  { before, members }: Readonly<Record<"before" | "members", readonly Member[]>>,
  { rolloutState }: Pick<Known, "rolloutState">,
  now: Pick<RolloutStateRow, "missing"> & NonNullable<RolloutStateRow["selected"]>,
): boolean {
  // Without a version, unreadable clusters are counted again.
  const isCounted =
    rolloutState.members !== undefined && rolloutState.selected?.by === now.by && rolloutState.selected.fleet !== "";
  return isCounted && canonicalJson([before, rolloutState.missing]) === canonicalJson([members, now.missing]);
}
