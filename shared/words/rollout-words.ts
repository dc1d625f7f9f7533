/** Texts about rollouts: their phases, what they wait for, and how to end a wait. */
import type { OverviewStageRun } from "#shared/fleet/api/rollout-overview.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { EndedPhase, StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import type { Clearing, Wait } from "#shared/fleet/waits/wait.ts";
import { formatTime } from "#shared/words/age.ts";

/** The STATE column of a stage run in progress. */
export const phaseWords = {
  Waiting: "waiting",
  Updating: "updating",
  Halted: "halted",
  NothingVerified: "nothing verified",
  TooManyUnreachable: "too many unreachable",
  Gated: "waits for approval",
  Baking: "baking",
  GateFailed: "gate failed",
  Rejected: "rejected",
} as const satisfies Record<Exclude<StageRunPhase, EndedPhase> | "Waiting", string>;

export type BudgetState = "Failed" | "Unreachable";

/**
 * The spent part of a stage run's budget, and the whole budget. After the stage has passed, only the number.
 */
export function budgetOf(
  { counts, preexistingFailures, allows, phase }: OverviewStageRun,
  state: BudgetState,
): { readonly spent: number; readonly allowed?: number } {
  if (phase === "Passed") return { spent: counts[state] };
  return state === "Failed"
    ? { spent: counts.Failed - preexistingFailures, allowed: allows.failures }
    : { spent: counts.Unreachable, allowed: allows.unreachable };
}

/** The argument of commands about rollouts: `shop -n payments`. */
export function rolloutArgument({ kind, namespace, name }: Owner): string {
  return `${kind === "Sync" ? "sync/" : ""}${name} -n ${namespace}`;
}

/** The part of a principal that is not shown. */
const principalHead = /\barn:\S+?:(?:assumed-role|role|user)\//g;

export function waitText({ reason, message, until }: Wait, now: Date): string {
  const text = message.replaceAll(principalHead, "");
  // The message of a window has its opening by the clock of its zone.
  return until === undefined || reason === "window" ? text : `${text}, until ${formatTime(until, now)}`;
}

export function clearWord(clearing: Clearing): string {
  if (clearing.verb === "pace") return clearing.field;
  if (clearing.verb === "uncordon") return `uncordon ${clearing.cluster}`;
  if (clearing.verb === "thaw") return `thaw ${clearing.freeze}`;
  if (clearing.verb === "approve") return `rollout approve --stage ${clearing.stage}`;
  if (clearing.verb === "promote") return `rollout promote --stage ${clearing.stage}`;
  if (clearing.verb === "refresh" || clearing.verb === "release" || clearing.verb === "exempt")
    return `rollout ${clearing.verb}`;
  if (clearing.verb === "retry" || clearing.verb === "skip")
    return `rollout ${clearing.verb}${clusterOption(clearing)}`;
  if (clearing.verb === "reject" || clearing.verb === "unreject") return `rollout ${clearing.verb} ${clearing.rollout}`;
  if (clearing.verb === "rollback") return `rollout rollback --to ${clearing.to}`;
  if (clearing.verb === "approveGuard") return "guard approve";
  if (clearing.verb === "unregister") return `unregister ${clearing.cluster}`;
  return clearing.verb === "orphan" ? "delete --cascade=orphan" : clearing.verb;
}

function clusterOption({ cluster }: { readonly cluster?: string }): string {
  return cluster === undefined ? "" : ` --cluster ${cluster}`;
}

/** The whole command, or what to change in the object. */
export function clearCommand(clearing: Clearing, owner: Owner): string {
  const { kind, namespace, name } = owner;
  const object = `${kind.toLowerCase()}/${name} -n ${namespace}`;
  switch (clearing.verb) {
    case "uncordon":
      return `starling uncordon ${clearing.cluster}`;
    case "thaw":
      return `starling thaw ${clearing.freeze}`;
    case "pace":
      return `raise spec.rollout.${clearing.field} of ${object}, and apply it`;
    case "optional":
      return `set optional: true on stage ${clearing.stage} of ${object}, and apply it`;
    case "refresh":
    case "release":
      return `starling rollout ${clearing.verb} ${rolloutArgument(owner)} --reason …`;
    case "exempt":
      return `starling rollout exempt ${rolloutArgument(owner)} --until 1h --reason …`;
    case "retry":
    case "skip":
      return `starling rollout ${clearing.verb} ${rolloutArgument(owner)}${clusterOption(clearing)} --reason …`;
    case "approve": {
      const { stage, plan } = clearing;
      return `starling rollout approve ${rolloutArgument(owner)} --stage ${stage} --plan ${plan} --reason …`;
    }
    case "promote": {
      const { stage, rollout } = clearing;
      return `starling rollout promote ${rolloutArgument(owner)} --stage ${stage} --number ${rollout} --reason …`;
    }
    case "rollback":
      return `starling rollout rollback ${rolloutArgument(owner)} --to ${clearing.to} --reason …`;
    case "reject":
    case "unreject":
      return `starling rollout ${clearing.verb} ${rolloutArgument(owner).replace(" ", ` ${clearing.rollout} `)} --reason …`;
    case "approveGuard":
      return `starling guard approve ${rolloutArgument(owner)} --hash ${clearing.hash} --reason …`;
    case "unregister":
      return `starling delete cluster/${clearing.cluster} --cascade=orphan`;
    case "orphan":
      return `starling delete ${object} --cascade=orphan`;
    case "resume":
    case "reconcile":
      return `starling ${clearing.verb} ${object}`;
  }
}

/** People who choose between several commands read what each does; undefined where its name says it all. */
export function clearEffect(clearing: Clearing, { reason }: Pick<Wait, "reason">): string | undefined {
  switch (clearing.verb) {
    case "reconcile":
      return "tries the failed clusters again";
    case "retry":
      if (clearing.cluster !== undefined) return "gives it its turn";
      return `tries the failed clusters again${reason === "gate" ? ", and the gates anew" : ""}`;
    case "refresh":
      return "tries all clusters of the stage again, as they are now";
    case "rollback":
      return `takes the stages back to rollout ${clearing.to}, and holds the group`;
    case "reject":
      return "gives it to no further cluster; those that have it keep it";
    case "unreject":
      return `rollout ${clearing.rollout} goes out again`;
    case "promote":
      return `passes stage ${clearing.stage} as it is`;
    case "approve":
      return `as ${clearing.by.map((one) => one.replace(principalHead, "")).join(", ")}`;
    case "skip":
      return clearing.of === undefined ? "goes on without it" : `goes on without these ${clearing.of}`;
    case "unregister":
      return clearing.of === undefined ? "leaves its objects there" : `all ${clearing.of} are needed`;
    case "orphan":
      return "leaves the objects in all clusters";
    default:
      return undefined;
  }
}
