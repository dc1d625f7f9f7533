/** The waits of an owner's clusters, and the facts behind them. */
import type { Cordon } from "#shared/fleet/rows/cordons-row.ts";
import type { FreezeStateReading } from "#shared/fleet/rows/freezes-row.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutStateRow, SlotRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { NamedWindow } from "#shared/fleet/rows/windows-row.ts";

/** Reasons of waits, in the order in which they are shown. */
export const waitReasons = [
  "suspended",
  "held",
  "rejected",
  "guard",
  "cordoned",
  "frozen",
  "window",
  "newer",
  "asked",
  "budget",
  "evidence",
  "unreachable",
  "gate",
  "approval",
  "catchUps",
  "skipped",
  "slots",
  "worker",
  "rendering",
  "reconcile",
  "source",
  "bake",
  "stage",
] as const;
export type WaitReason = (typeof waitReasons)[number];

/** A command by which people can end a wait; a wait without one ends by itself. */
export type Clearing =
  | { readonly verb: "resume" | "reconcile" | "refresh" | "release" | "orphan" }
  /** It ends after an hour, or when a person says. */
  | { readonly verb: "exempt" }
  /** It names one cluster, or every one that failed. */
  | { readonly verb: "retry"; readonly cluster?: string }
  /** `of`, when present, is the number of such commands that are needed together. */
  | { readonly verb: "skip"; readonly cluster: string; readonly of?: number }
  /** `by` are the principals who may. */
  | { readonly verb: "approve"; readonly stage: string; readonly plan: string; readonly by: readonly string[] }
  | { readonly verb: "promote"; readonly stage: string; readonly rollout: number }
  /** To the rollout with this number. */
  | { readonly verb: "rollback"; readonly to: number }
  | { readonly verb: "reject" | "unreject"; readonly rollout: number }
  | { readonly verb: "approveGuard"; readonly hash: string }
  | { readonly verb: "unregister"; readonly cluster: string; readonly of?: number }
  | { readonly verb: "uncordon"; readonly cluster: string }
  | { readonly verb: "thaw"; readonly freeze: string }
  /** An edit of the spec: the stage may have no cluster. */
  | { readonly verb: "optional"; readonly stage: string }
  | { readonly verb: "pace"; readonly field: "maxConcurrent" | "maxFailures" | "maxUnreachable" };

export interface Wait {
  readonly reason: WaitReason;
  /** When absent, every stage. */
  readonly stage?: string;
  readonly rollout?: number;
  readonly clusters?: { readonly count: number; readonly names: readonly string[] };
  /** The name of the obstacle. */
  readonly blocker?: string;
  /** One line for people. */
  readonly message: string;
  readonly since?: string;
  readonly until?: string;
  readonly clear: readonly Clearing[];
}

export interface WaitFacts {
  readonly now: Date;
  readonly row: OwnerRow;
  readonly rolloutState: RolloutStateRow;
  /** At least the stage runs in progress. */
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  /** The desired revision that the first stage has not taken. */
  readonly desired?: string | undefined;
  /** Why the desired state is unknown. */
  readonly unready?: string | undefined;
  /** Its Sources that were changed, or asked to be polled, and were not polled since. */
  readonly askedSources?: readonly string[];
  readonly freezeState: FreezeStateReading;
  readonly windows: readonly NamedWindow[];
  readonly cordons: readonly Cordon[];
  /** The oldest first; Syncs and leases were read for the first `checkedSlots`. */
  readonly slots: readonly SlotRow[];
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  readonly leases: ReadonlyMap<string, LeaseRow>;
  /** Some of the failed catch-ups. */
  readonly failedCatchUps: readonly CatchUpRow[];
}

/** Number of slots, the oldest, whose workers' reports are read. */
export const checkedSlots = 25;

/** Number of names in a message; the rest is counted. */
export const namesShown = 3;

/** `1 cluster waits`, `3 clusters wait`. */
export function waitingText(count: number): string {
  return count === 1 ? "1 cluster waits" : `${count} clusters wait`;
}

export function namesText({ count, names }: NonNullable<Wait["clusters"]>): string {
  const shown = names.slice(0, namesShown);
  if (shown.length === 0) return "";
  return `: ${shown.join(", ")}${count > shown.length ? ` and ${count - shown.length} more` : ""}`;
}
