/**
 * By what a cluster knows whose assignments it was given: each has a token that nobody could have guessed. Rows that were
 * restored from a backup do not know the tokens that were given out after it, however far their numbers catch up.
 */
import { defined } from "#shared/base/defined.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { type Assigned, type Desired, type Observed, orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** A cluster that was itself restored may be so many assignments behind. */
const keptTokens = 20;
const tokenLength = 12;

/**
 * What is assigned next to a Sync, whatever it was given before.
 * @param unique - that nothing was ever called.
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

/** As many as a cluster remembers. */
const keptTried = 20;

/**
 * What was assigned before and never seen applied whole may have left objects; what was, has an inventory.
 * @param next - what is assigned now, which is named as that.
 */
function triedUntil(before: Pick<SyncRow, "desired" | "observed"> | undefined, next?: string): Pick<Desired, "tried"> {
  if (before === undefined || before.observed?.applied?.attempt === before.desired.attempt) return {};
  const { renderDigest, tried = [] } = before.desired;
  const all = [...tried.filter((digest) => digest !== renderDigest), renderDigest];
  const digests = all.flatMap((digest) => (digest === undefined || digest === next ? [] : digest)).slice(-keptTried);
  return digests.length === 0 ? {} : { tried: digests };
}

/** The cluster still remembers what was tried before its objects were left to nobody. */
function keptThrough(before: Pick<SyncRow, "desired" | "observed"> | undefined): Pick<Desired, "keptThrough"> {
  if (before === undefined) return {};
  const { action, attempt, keptThrough } = before.desired;
  if (action === "orphan" && before.observed === undefined) return { keptThrough: attempt };
  return keptThrough === undefined ? {} : { keptThrough };
}

/** The assignment by which all that was seen of a Sync is forgotten, but for what the cluster may remember of it. */
export function forgotten(row: Pick<SyncRow, "desired" | "observed">, assignedAt: string): Desired {
  const { token, rollout } = row.desired;
  return { ...orphaning(row.desired, { rollout, assignedAt }), token, earlier: tokensOf(row), anew: true };
}

/**
 * The row after somebody accepted what its cluster remembers of other rows. What was assigned is forgotten; the numbers
 * go on above those of the cluster, its token is known, and the inventory that was stored when it was begun is this
 * row's: with the renderings that the cluster remembers since, it has everything that was ever applied.
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

/** The whole row after that: nothing is due of it, and the state index has it as forgotten until it is assigned anew. */
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
