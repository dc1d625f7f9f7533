/** What a subject's clusters may wait for, and what says so. */
import type { FreezeStateReading } from "#shared/fleet/rows/freezes-row.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutStateRow, SlotRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** What is waited for, in the order in which it is told. */
export const waitReasons = [
  "suspended",
  "frozen",
  "newer",
  "asked",
  "budget",
  "evidence",
  "unreachable",
  "catchUps",
  "slots",
  "worker",
  "rendering",
  "reconcile",
  "source",
  "stage",
] as const;
export type WaitReason = (typeof waitReasons)[number];

/** What somebody can do about it; what has none ends by itself. */
export type Clearing =
  | { readonly verb: "resume" | "reconcile" | "refresh" | "orphan" }
  | { readonly verb: "unregister"; readonly cluster: string }
  | { readonly verb: "thaw"; readonly freeze: string }
  | { readonly verb: "pace"; readonly field: "maxConcurrent" | "maxFailures" | "maxUnreachable" };

export interface Wait {
  readonly reason: WaitReason;
  /** Absent: every stage. */
  readonly stage?: string;
  readonly rollout?: number;
  readonly clusters?: { readonly count: number; readonly names: readonly string[] };
  /** Who or what is in the way, by name. */
  readonly blocker?: string;
  /** For people, in one line. */
  readonly message: string;
  readonly since?: string;
  readonly until?: string;
  readonly clear: readonly Clearing[];
}

export interface WaitFacts {
  readonly now: Date;
  readonly row: OwnerRow;
  readonly rolloutState: RolloutStateRow;
  /** At least those that are under way. */
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  /** What is wanted and was not taken by the first stage, by its revision. */
  readonly desired?: string | undefined;
  /** Why nobody can say what is wanted. */
  readonly unready?: string | undefined;
  /** Its Sources that were asked to be looked at, or changed, and were not looked at since. */
  readonly askedSources?: readonly string[];
  readonly freezeState: FreezeStateReading;
  /** The oldest first; of the first `checkedSlots`, Syncs and leases were read. */
  readonly slots: readonly SlotRow[];
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  readonly leases: ReadonlyMap<string, LeaseRow>;
  /** Some of those that failed. */
  readonly failedCatchUps: readonly CatchUpRow[];
}

/** Of so many slots, the oldest, is known what their workers say. */
export const checkedSlots = 25;

/** Named in a message; the rest is counted. */
export const namesShown = 3;

export function namesText({ count, names }: NonNullable<Wait["clusters"]>): string {
  const shown = names.slice(0, namesShown);
  if (shown.length === 0) return "";
  return `: ${shown.join(", ")}${count > shown.length ? ` and ${count - shown.length} more` : ""}`;
}
