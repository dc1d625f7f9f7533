/** What goes through the stages, what is waited for, and what clears it. */
import type { OverviewStageRun } from "#shared/fleet/api/rollout-overview.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Clearing, Wait } from "#shared/fleet/waits/wait.ts";
import { formatTime } from "#shared/words/age.ts";

/** What stands in STATE columns for a leg that is under way. */
export const phaseWords = {
  Waiting: "waiting",
  Updating: "updating",
  Halted: "halted",
  NothingVerified: "nothing verified",
  TooManyUnreachable: "too many unreachable",
} as const;

export type BudgetState = "Failed" | "Unreachable";

/** What of a stage's budget was spent, and what it allows; of what has passed, how many there were. */
export function budgetOf(
  { counts, preexistingFailures, allows, phase }: OverviewStageRun,
  state: BudgetState,
): { readonly spent: number; readonly allowed?: number } {
  if (phase === "Passed") return { spent: counts[state] };
  return state === "Failed"
    ? { spent: counts.Failed - preexistingFailures, allowed: allows.failures }
    : { spent: counts.Unreachable, allowed: allows.unreachable };
}

/** As verbs about rollouts take it: `shop -n payments`. */
export function rolloutArgument({ kind, namespace, name }: Owner): string {
  return `${kind === "Sync" ? "sync/" : ""}${name} -n ${namespace}`;
}

/** Of a principal the last parts, as everywhere. */
const principalHead = /\barn:\S+?:(?:assumed-role|role|user)\//g;

export function waitText({ message, until }: Wait, now: Date): string {
  const text = message.replaceAll(principalHead, "");
  return until === undefined ? text : `${text}, until ${formatTime(until, now)}`;
}

export function clearWord(clearing: Clearing): string {
  if (clearing.verb === "pace") return clearing.field;
  if (clearing.verb === "thaw") return `thaw ${clearing.freeze}`;
  if (clearing.verb === "refresh") return "rollout refresh";
  if (clearing.verb === "unregister") return `unregister ${clearing.cluster}`;
  return clearing.verb === "orphan" ? "delete --cascade=orphan" : clearing.verb;
}

/** The whole command, or what to change. */
export function clearCommand(clearing: Clearing, owner: Owner): string {
  const { kind, namespace, name } = owner;
  const object = `${kind.toLowerCase()}/${name} -n ${namespace}`;
  switch (clearing.verb) {
    case "thaw":
      return `starling thaw ${clearing.freeze}`;
    case "pace":
      return `raise spec.rollout.${clearing.field} of ${object}, and apply it`;
    case "refresh":
      return `starling rollout refresh ${rolloutArgument(owner)} --reason …`;
    case "unregister":
      return `starling delete cluster/${clearing.cluster} --cascade=orphan`;
    case "orphan":
      return `starling delete ${object} --cascade=orphan`;
    case "resume":
    case "reconcile":
      return `starling ${clearing.verb} ${object}`;
  }
}
