/**
 * Each assignment has a random token, and the cluster remembers the token of its last one. Rows that were restored from a
 * backup do not know the tokens of later assignments, even when their attempt numbers catch up. So a worker notices that
 * other rows have written to its cluster.
 */
import { defined } from "#shared/base/defined.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { type Assigned, type Desired, type Observed, orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** A cluster that was itself restored from a backup may be this many assignments behind. */
const keptTokens = 20;
const tokenLength = 12;

/**
 * The next assignment of a Sync, with what it must keep of the former one.
 * @param unique - an id that was never used before; its end becomes the token.
 */
export function nextDesired(
  assigned: Assigned,
  before: Pick<SyncRow, "desired" | "observed"> | undefined,
  unique: string,
): Desired {
  const earlier = before === undefined ? [] : tokensOf(before).slice(0, keptTokens);
  return {
    ...assigned,
    token: unique.slice(-tokenLength),
    ...(earlier.length === 0 ? {} : { earlier }),
    ...(mayBeGone(before) ? { anew: true } : {}),
    ...triedUntil(before, assigned.renderDigest),
    ...keptThrough(before),
  };
}

/** As many as the parent object in the cluster keeps. */
const keptTried = 20;

/**
 * The renderings of former assignments that were never seen applied completely: they may have left objects. A rendering
 * that was applied completely has an inventory instead.
 * @param next - the rendering that is assigned now, which is left out.
 */
function triedUntil(before: Pick<SyncRow, "desired" | "observed"> | undefined, next?: string): Pick<Desired, "tried"> {
  if (before === undefined || before.observed?.applied?.attempt === before.desired.attempt) return {};
  const { renderDigest, tried = [] } = before.desired;
  const all = [...tried.filter((digest) => digest !== renderDigest), renderDigest];
  const digests = all.flatMap((digest) => (digest === undefined || digest === next ? [] : digest)).slice(-keptTried);
  return digests.length === 0 ? {} : { tried: digests };
}

/** The last attempt before the objects were orphaned: the parent object still lists what was tried up to it. */
function keptThrough(before: Pick<SyncRow, "desired" | "observed"> | undefined): Pick<Desired, "keptThrough"> {
  if (before === undefined) return {};
  const { action, attempt, keptThrough } = before.desired;
  if (action === "orphan" && before.observed === undefined) return { keptThrough: attempt };
  return keptThrough === undefined ? {} : { keptThrough };
}

/** An assignment that forgets what was observed of a Sync, but keeps the tokens that the cluster may remember. */
export function forgotten(row: Pick<SyncRow, "desired" | "observed">, assignedAt: string): Desired {
  const { token, rollout } = row.desired;
  return { ...orphaning(row.desired, { rollout, assignedAt }), token, earlier: tokensOf(row), anew: true };
}

/**
 * The row after a person accepted what its cluster remembers of other rows. The assignment is forgotten, and the attempt
 * number continues above the one of the cluster. The row takes over the cluster's token and the inventory that was stored
 * when that attempt began. Together with the renderings that the cluster lists since, it names everything that was applied.
 */
export function accepted(
  { desired, observed }: SyncRow,
  act: { readonly by: string; readonly at: string; readonly reason?: string },
): Pick<SyncRow, "desired" | "observed" | "recovered"> {
  const { remembered, applied: _applied, claimed: _claimed, ...seen } = observed ?? {};
  if (observed === undefined || remembered === undefined) throw new Error("there is nothing to accept");
  const { token } = remembered;
  const inventory = remembered.inventory ?? observed.inventory;
  const next = forgotten({ desired, observed }, act.at);
  return {
    desired: {
      ...next,
      attempt: Math.max(next.attempt, remembered.attempt + 1),
      earlier: [...(token === undefined ? [] : [token]), ...(next.earlier ?? [])],
      ...triedUntil({ desired, observed }),
    },
    observed: { ...(seen as Observed), ...defined({ inventory }) },
    recovered: { ...act, remembered },
  };
}

/** The whole row after that: it is not due, and the state index lists it as orphaned until its next assignment. */
export function acceptedRow(row: SyncRow, act: Parameters<typeof accepted>[1]): SyncRow {
  return { ...due(row, undefined), ...accepted(row, act), stateSk: stateIndex.sk("Orphaned", row) };
}

/** Every token that the cluster may remember of a Sync, the newest first. */
export function tokensOf({ desired, observed }: Pick<SyncRow, "desired" | "observed">): readonly string[] {
  const claimed = observed?.claimed === undefined ? [] : [observed.claimed];
  return [...new Set([desired.token, ...claimed, ...(desired.earlier ?? [])])];
}

/** True when the cluster must remember something of the Sync: it was written there, and nobody has asked to delete it. */
export function mustBeRemembered({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (desired.action !== "apply" || observed?.claimed === undefined) return false;
  return desired.anew !== true || observed.claimed === desired.token;
}

function mayBeGone(before: Pick<SyncRow, "desired" | "observed"> | undefined): boolean {
  if (before === undefined || before.desired.action !== "apply") return true;
  return before.desired.anew === true && before.observed?.claimed !== before.desired.token;
}
